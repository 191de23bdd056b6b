"""A program from source to report: run, differentiated, compiled into functions of arrays."""
