"""Keyword arguments in, `torch.nn.Module` out: families of networks, their shortcuts and initialisers."""
