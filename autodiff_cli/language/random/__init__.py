"""Random numbers: generators, draws, initial values, layers that draw."""
