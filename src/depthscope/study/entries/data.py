"""Data sets and their augmentation."""

from __future__ import annotations

from collections.abc import Mapping

from depthscope.study.entries.entry import Entry, both

DATA: Mapping[str, Entry] = {
    "spiral": Entry(
        summary="interleaved arms in the plane; the seed draws the points",
        targets=both("depthscope.data.synthetic:spiral"),
        options={
            "arms": 3,
            "points_per_arm": 50,
            "turns": 0.64,
            "noise": 0.1,
            "start_radius": 0.1,
            "validation": 0,
            "without_test": False,
        },
        later=("validation", "without_test"),
        untested={"without_test": True},
        limits={
            "arms": "[2, 1000]",
            "points_per_arm": "[2, 1000000]",
            "noise": "[0, inf)",
            "start_radius": "[0, 1)",
            "validation": "[0, 1000000000]",
        },
    ),
    "images": Entry(
        summary="synthetic images of ten classes, for tests",
        targets=both("depthscope.data.synthetic:images"),
        options={"num_train": 256, "num_test": 128, "image_size": 8, "validation": 0},
        later=("validation",),
        untested={"num_test": 0},
        limits={
            "num_train": "[1, 1000000]",
            "num_test": "[0, 1000000]",
            "image_size": "[1, 1024]",
            "validation": "[0, 999999]",
        },
    ),
    "cifar10": Entry(
        summary="CIFAR-10, the real images",
        targets=both("depthscope.data.cifar10:cifar10"),
        options={"num_train": 50_000, "num_test": 10_000, "image_size": 32, "validation": 0},
        untested={"num_test": 0},
        limits={
            "num_train": "[1, 50000]",
            "num_test": "[0, 10000]",
            "image_size": "[1, 32]",
            "validation": "[0, 49999]",
        },
        sources=("krizhevsky2009cifar",),
    ),
}

AUGMENT: Mapping[str, Entry] = {
    "none": Entry(summary="examples as they are", targets=both("depthscope.data.batches:order")),
    "crop_flip": Entry(
        summary="pad with zeros, crop at random, flip left-right with probability 1/2",
        targets={"torch": "depthscope.data.batches:augmentation"},
        sources=("he2016resnet",),
    ),
}
