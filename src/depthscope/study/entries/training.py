"""Update rules, clipping, schedules, and what is measured."""

from __future__ import annotations

from collections.abc import Mapping

from depthscope.study.entries.entry import Entry, both

TEXT = ("shakespeare", "names")
"""Data sets whose tokens are text."""

_OPTIMIZERS = "depthscope.lab.optimizers:Adam"

OPTIMIZER: Mapping[str, Entry] = {
    "sgd": Entry(
        summary="stochastic gradient descent with momentum; weight decay on all parameters",
        targets={"numpy": "depthscope.lab.optimizers:Momentum", "torch": "torch.optim:SGD"},
        options={"momentum": 0.9, "weight_decay": 0.0},
        limits={"momentum": "[0, 1)", "weight_decay": "[0, inf)"},
    ),
    "adam": Entry(
        summary="Adam with bias correction",
        targets={"numpy": "depthscope.lab.optimizers:Adam", "torch": "torch.optim:Adam"},
        options={"beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
        limits={"beta1": "[0, 1)", "beta2": "[0, 1)", "eps": "(0, inf)"},
        sources=("kingma2015adam",),
    ),
    "adamw": Entry(
        summary="Adam with decoupled weight decay: each update also takes lr x weight_decay x W off all parameters",
        targets={"torch": "torch.optim:AdamW"},
        options={"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01},
        limits={"beta1": "[0, 1)", "beta2": "[0, 1)", "eps": "(0, inf)", "weight_decay": "[0, inf)"},
        sources=("loshchilov2019decoupled",),
    ),
}

CLIP: Mapping[str, Entry] = {
    "none": Entry(
        summary="gradients as they are", targets={"numpy": _OPTIMIZERS, "torch": "depthscope.train.clip:clipper"}
    ),
    "norm": Entry(
        summary="all gradients times max_norm / |g| where their joint norm |g| is larger",
        targets={"torch": "depthscope.train.clip:clip_norm"},
        options={"max_norm": 1.0},
        limits={"max_norm": "(0, inf)"},
        sources=("pascanu2013difficulty",),
    ),
    "agc": Entry(
        summary="adaptive gradient clipping: each output unit's |G| at most factor max(|W|, eps); not the last layer",
        targets={"torch": "depthscope.train.clip:adaptive"},
        options={"factor": 0.01, "eps": 1e-3},
        limits={"factor": "(0, inf)", "eps": "(0, inf)"},
        sources=("brock2021nfnet",),
    ),
}

SCHEDULE: Mapping[str, Entry] = {
    "constant": Entry(summary="one learning rate", targets=both("depthscope.train.schedules:constant")),
    "step": Entry(
        summary="times `factor` at each milestone, given as a fraction of the run",
        targets=both("depthscope.train.schedules:step"),
        options={"milestones": [0.5, 0.75], "factor": 0.1},
        limits={"milestones": "(0, 1)", "factor": "(0, inf)"},
    ),
    "linear": Entry(
        summary="a straight line from the peak at the first update to 0 after the last",
        targets=both("depthscope.train.schedules:linear"),
    ),
    "cosine": Entry(
        summary="half a cosine from the peak at the first update to the share `final` of it after the last",
        targets=both("depthscope.train.schedules:cosine"),
        options={"final": 0.0},
        limits={"final": "[0, 1]"},
        sources=("loshchilov2017sgdr",),
    ),
}

MEASURE: Mapping[str, Entry] = {
    "layers": Entry(
        summary="|h|, |dL/dh|, |dW|, |dW|/|W|, |F|/|x| by layer at steps 0, 1, 2, 4, ... and each epoch's end",
        targets={
            "numpy": "depthscope.lab.measure:profile",
            "torch": "depthscope.probes.watch:Probe",
        },
    ),
    "gradcheck": Entry(
        summary="the hand-derived gradient against central, five-point and complex-step differences",
        targets={"numpy": "depthscope.lab.gradcheck:gradient_check"},
    ),
    "lesion": Entry(
        summary="training loss and accuracy with one residual branch, or block of several, taken out at a time",
        targets={"torch": "depthscope.probes.lesion:lesions"},
        sources=("srivastava2015highway", "veit2016ensembles"),
    ),
    "weights": Entry(
        summary="weights and buffers kept at step 0, at each epoch's end (of many epochs, at 50) and at measure_steps",
        targets={"torch": "depthscope.train.keeping:weights_of"},
    ),
    "smoothness": Entry(
        summary="the range of the loss and of its gradient along the gradient's direction, as far as 4 learning rates; "
        "at step 0, the end and measure_steps",
        targets={"torch": "depthscope.probes.step:along_step"},
        sources=("santurkar2018how",),
    ),
    "sharpness": Entry(
        summary="the largest and smallest eigenvalue of the loss's Hessian, against 2 / learning rate; "
        "at step 0, the end and measure_steps",
        targets={"torch": "depthscope.probes.curvature:extremes"},
        sources=("cohen2021gradient",),
    ),
    "samples": Entry(
        summary="text that the trained network writes, token by token, drawn from its probabilities at temperature 1",
        targets={"numpy": "depthscope.train.samples:written", "torch": "depthscope.train.samples:written_by"},
        accepts={"data": TEXT},
    ),
}
