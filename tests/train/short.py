"""The shortest runs of each engine. A test lays over them what it needs otherwise."""

from __future__ import annotations

from typing import Any

LAB: dict[str, Any] = {
    "backend": "numpy",
    "family": "mlp",
    "depth": 3,
    "width": 4,
    "activation": "tanh",
    "init": "gaussian",
    "data": "spiral",
    "data_options": {"points_per_arm": 8},
    "optimizer": "adam",
    "lr": 0.01,
}
"""In NumPy; without a length."""

NET: dict[str, Any] = {
    "backend": "torch",
    "family": "cifar_resnet",
    "depth": 8,
    "width": 4,
    "norm": "batch",
    "activation": "relu",
    "init": "he_fan_in",
    "data": "images",
}
"""In torch; without a length."""

TRAINED: dict[str, Any] = {
    **NET,
    "data_options": {"num_train": 64, "num_test": 32},
    "augment": "crop_flip",
    "padding": 1,
    "batch_size": 24,  # 24, 24 and 16: the last batch is smaller
    "epochs": 2,
}
"""Six updates in torch, augmented."""
