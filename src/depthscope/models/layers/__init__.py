"""Layers: weighted ones, normalisers, activations; `make.Layers` makes those of one network."""
