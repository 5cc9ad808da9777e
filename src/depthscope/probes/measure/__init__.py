"""Measure a model as it is: in its own dtype and mode, by one forward and one backward pass."""
