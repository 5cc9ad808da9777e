"""Depthscope: the instrument that shows what depth does to a neural network."""
