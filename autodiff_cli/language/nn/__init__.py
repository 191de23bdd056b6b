"""Modules, optimizers and data sets, and the library written in the language itself."""
