"""Data sets and their augmentation."""

from __future__ import annotations

from collections.abc import Mapping

from depthscope.study.entries.entry import Entry, both

_DRAWN = {"num_train": 10_000, "num_test": 1_000, "validation": 0}
_DRAWN_LIMITS = {"num_train": "[1, 1000000]", "num_test": "[0, 1000000]", "validation": "[0, 999999]"}

DATA: Mapping[str, Entry] = {
    "spiral": Entry(
        summary="interleaved arms in the plane; the seed draws the points",
        targets=both("depthscope.data.synthetic:spiral"),
        by_seed=True,
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
    "shakespeare": Entry(
        summary="Shakespeare's plays, a character at a time: the next one is asked",
        targets=both("depthscope.data.text:shakespeare"),
        options={"length": 64, "num_train": 15_685, "num_test": 1_742, "validation": 0},
        follows={"num_train": ("length", 1_003_853), "num_test": ("length", 111_539)},
        untested={"num_test": 0},
        by_position=True,
        limits={
            "length": "[1, 100000]",
            "num_train": "[1, 1003853]",
            "num_test": "[0, 111539]",
            "validation": "[0, 1003852]",
        },
        sources=("karpathy2015charrnn",),
    ),
    "names": Entry(
        summary="first names, a letter at a time: the next one is asked",
        targets=both("depthscope.data.text:names"),
        options={"num_train": 28_829, "num_test": 3_204, "validation": 0},
        untested={"num_test": 0},
        by_position=True,
        limits={"num_train": "[1, 32033]", "num_test": "[0, 32032]", "validation": "[0, 32032]"},
        sources=("karpathy2022makemore",),
    ),
    "adding": Entry(
        summary="the sum of two marked numbers in a sequence of `depth`, asked at its end",
        targets=both("depthscope.data.sequences:adding"),
        options=_DRAWN,
        untested={"num_test": 0},
        by_depth=True,
        regression=True,
        limits=_DRAWN_LIMITS,
        sources=("hochreiter1997lstm", "arjovsky2016unitary"),
    ),
    "copy": Entry(
        summary="ten symbols, to be told again after `depth` steps",
        targets=both("depthscope.data.sequences:copy"),
        options=_DRAWN,
        untested={"num_test": 0},
        by_position=True,
        by_depth=True,
        limits=_DRAWN_LIMITS,
        sources=("hochreiter1997lstm", "arjovsky2016unitary"),
    ),
    "nth_farthest": Entry(
        summary="which vector of a set is the nth farthest from vector m?",
        targets=both("depthscope.data.sequences:nth_farthest"),
        options={**_DRAWN, "num_vectors": 8, "vector_size": 8},
        untested={"num_test": 0},
        limits={**_DRAWN_LIMITS, "num_vectors": "[2, 100]", "vector_size": "[1, 1000]"},
        sources=("santoro2018relational",),
    ),
    "identity_task": Entry(
        summary="the answer is the input; the seed draws the points",
        targets={"torch": "depthscope.data.sequences:identity_task"},
        options={**_DRAWN, "num_train": 256, "num_test": 256, "size": 8},
        untested={"num_test": 0},
        by_seed=True,
        regression=True,
        limits={**_DRAWN_LIMITS, "size": "[1, 10000]"},
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
