"""Measure any `torch.nn.Module`, in float64, and leave it exactly as it was found."""
