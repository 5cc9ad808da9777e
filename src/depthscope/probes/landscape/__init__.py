"""Loss landscapes: directions in the space of the weights, and figures of a model moved along them."""
