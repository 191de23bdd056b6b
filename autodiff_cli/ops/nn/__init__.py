"""Layers: windows, normalization, attention, resampling."""
