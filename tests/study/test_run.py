from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from depthscope.study.faults import found_in
from depthscope.study.run import RunSpec

Fields = dict[str, Any]


def run_id(fields: Fields, **more: Any) -> str:
    return RunSpec.model_validate({**fields, **more}).run_id


def faults(fields: Fields, **more: Any) -> dict[str, str]:
    with pytest.raises(ValidationError) as told:
        RunSpec.model_validate({**fields, **more})
    return {".".join(fault.path): fault.message or fault.kind for fault in found_in(told.value)}


# ---- identity ----------------------------------------------------------------------------------------


def test_golden_identities(lab: Fields, torch_run: Fields) -> None:
    # Records lie under these names. If one changes, every record made so far is orphaned: count MATHEMATICS up on
    # purpose, or give a new field's default no place in the identity.
    assert run_id(lab, seed=3) == "2c1e95ece3e63ff1"
    assert run_id(torch_run, shortcut="A", optimizer_options={"weight_decay": 1e-4}) == "93552f6c843165f6"


def test_measures_are_no_part_of_the_identity(lab: Fields) -> None:
    assert run_id(lab, measures=["layers", "gradcheck"]) == run_id(lab)
    spec = RunSpec.model_validate({**lab, "measures": ["layers", "gradcheck", "layers"]})
    assert spec.measures == ("gradcheck", "layers")


def test_all_else_is(lab: Fields) -> None:
    changes: list[Fields] = [
        {"seed": 1},
        {"precision": "float64"},
        {"depth": 6},
        {"width": 9},
        {"shortcut": "identity"},
        {"norm": "batch"},
        {"activation": "relu"},
        {"init": "orthogonal"},
        {"gain": 0.5},
        {"stem_gain": 1.0},
        {"data_options": {"noise": 0.2}},
        {"data_options": {"validation": 30}},
        {"data_options": {"without_test": True}},
        {"steps": 11},
        {"optimizer": "adam"},
        {"optimizer_options": {"momentum": 0.0}},
        {"lr": 0.2},
        {"schedule": "step"},
        {"warmup_steps": 1},
        {"stop_loss": 0.1},
    ]
    ids = [run_id(lab), *(run_id(lab, **change) for change in changes)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "same",
    [
        {"optimizer": "sgd"},
        {"optimizer_options": {}},
        {"optimizer_options": {"momentum": 0.9}},
        {"optimizer_options": {"weight_decay": 0, "momentum": 0.9}},
        {"data_options": {"noise": 0.1, "arms": 3}},
        {"data_options": {"validation": 0, "without_test": False}},
        {"gain": 1},
        {"lr": 0.1},
        {"stem_gain": None, "shortcut": "none", "precision": "float32"},
    ],
)
def test_a_default_written_out_is_the_same_run(lab: Fields, same: Fields) -> None:
    assert run_id(lab, **same) == run_id(lab)


def test_integers_and_floats_are_one_value(lab: Fields) -> None:
    one = {"lr": 1, "schedule": "step", "schedule_options": {"factor": 1, "milestones": [0.5]}}
    assert run_id(lab, **one) == run_id(
        lab, lr=1.0, schedule="step", schedule_options={"factor": 1.0, "milestones": [0.5]}
    )


def test_options_of_user_code_are_kept_as_they_came(torch_run: Fields) -> None:
    options = {"heads": 4, "rate": 0.5, "name": "x", "flag": True, "sizes": [1, 2]}
    spec = RunSpec.model_validate({**torch_run, "family": "mine.models:net", "model_options": options})
    assert spec.model_options == options
    assert faults(torch_run, family="mine.models:net", model_options={"a": {"b": 1}, "c": ["x"]}).keys() == {
        "model_options.a",
        "model_options.c",
    }


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "seed": st.integers(0, 2**31 - 1),
            "depth": st.integers(1, 500).map(lambda half: 2 * half),
            "shortcut": st.sampled_from(["none", "identity", "identity_2"]),
            "gain": st.floats(1e-6, 1e6),
            "lr": st.floats(1e-12, 1e6),
            "data_options": st.fixed_dictionaries({}, optional={"noise": st.floats(0, 1), "arms": st.integers(2, 9)}),
            "measures": st.lists(st.sampled_from(["layers", "gradcheck"])),
        },
    )
)
def test_json_round_trip_keeps_the_identity(change: Fields) -> None:
    base: Fields = {
        "backend": "numpy",
        "family": "mlp",
        "depth": 4,
        "width": 8,
        "activation": "tanh",
        "init": "gaussian",
        "data": "spiral",
        "steps": 10,
    }
    spec = RunSpec.model_validate({**base, **change})
    again = RunSpec.model_validate_json(spec.model_dump_json())
    assert again == spec
    assert again.run_id == spec.run_id


def test_a_spec_is_frozen(lab: Fields) -> None:
    spec = RunSpec.model_validate(lab)
    with pytest.raises(ValidationError, match="frozen"):
        spec.lr = 0.5


# ---- coherence ---------------------------------------------------------------------------------------

INCOHERENT: list[tuple[str, Fields, str, str]] = [
    ("lab", {"steps": None}, "epochs", "missing; give epochs or steps."),
    ("lab", {"epochs": 3}, "epochs", "give epochs or steps, not both."),
    ("torch", {"backend": "numpy"}, "backend", "'cifar_resnet' runs on torch, not on numpy."),
    ("lab", {"family": "mine:net"}, "backend", "'mine:net' runs on torch, not on numpy."),
    ("lab", {"shortcut": "A"}, "shortcut", "'mlp' takes 'none' or 'identity' or 'identity_2' or"),
    ("lab", {"init": "he_fan_in"}, "init", "'he_fan_in' is not there for numpy."),
    ("lab", {"norm": "layer"}, "norm", "'layer' is not there for numpy in 'mlp', only in gpt."),
    ("lab", {"shortcut": "rezero"}, "shortcut", "'rezero' is not there for numpy."),
    ("lab", {"data": "images"}, "data", "'mlp' takes 'spiral' or 'identity_task', not 'images'."),
    ("lab", {"augment": "crop_flip"}, "augment", "'mlp' takes 'none'"),
    ("torch", {"norm": "scaled_ws"}, "norm", "'cifar_resnet' takes 'none' or 'batch'"),
    ("torch", {"shortcut": "identity"}, "shortcut", "'cifar_resnet' takes 'none' or 'A'"),
    ("torch", {"stem_gain": 0.5}, "stem_gain", "'cifar_resnet' has no such setting; leave it away."),
    ("lab", {"zero_last_gamma": True, "shortcut": "identity"}, "zero_last_gamma", "'mlp' has no such setting"),
    (
        "lab",
        {"zero_last_gamma": True, "shortcut": "identity", "backend": "torch"},
        "zero_last_gamma",
        "no branch of 'mlp'",
    ),
    ("lab", {"model_options": {"norm_ends_branch": True}}, "model_options.norm_ends_branch", "NumPy laboratory has no"),
    (
        *("lab", {"backend": "torch", "norm": "batch", "model_options": {"norm_ends_branch": True}}),
        *("model_options.norm_ends_branch", "wants shortcut identity_2"),
    ),
    ("lab", {"model_options": {"bare": True}}, "model_options.bare", "NumPy laboratory's networks have a stem"),
    (
        *("lab", {"backend": "torch", "shortcut": "dense", "model_options": {"bare": True}}),
        *("model_options.bare", "the layers of 'dense' are not square"),
    ),
    (
        *("lab", {"backend": "torch", "stem_gain": 1.0, "model_options": {"bare": True}}),
        *("stem_gain", "a bare network has no stem"),
    ),
    (
        *("lab", {"backend": "torch", "model_options": {"linear_end": True}}),
        *("model_options.linear_end", "the head is linear already"),
    ),
    (
        *("lab", {"backend": "torch", "shortcut": "identity_2", "model_options": {"bare": True, "linear_end": True}}),
        *("model_options.linear_end", "the last layer of identity_2 is linear already"),
    ),
    ("lab", {"backend": "torch", "init": "zero_branch"}, "init", "'zero_branch' needs a shortcut that adds"),
    (
        *("lab", {"backend": "torch", "init": "zero_branch", "shortcut": "rezero"}),
        *("init", "'rezero' starts at 0 too; a branch with both"),
    ),
    ("torch", {"depth": 21}, "depth", "depth 21 is not 6n+2. The nearest are 20 and 26."),
    ("torch", {"depth": 2}, "depth", "The smallest are 8 and 14."),
    ("lab", {"shortcut": "identity_2", "depth": 7}, "depth", "The nearest are 6 and 8."),
    ("lab", {"shortcut": "identity_2", "depth": 1}, "depth", "The smallest is 2."),
    ("torch", {"zero_last_gamma": True}, "zero_last_gamma", "needs a shortcut"),
    ("torch", {"zero_last_gamma": True, "shortcut": "rezero"}, "zero_last_gamma", "'rezero' starts at 0 too"),
    ("torch", {"init": "fixup", "shortcut": "skipinit"}, "init", "'skipinit' starts at 0 too; a branch with both"),
    (
        *("torch", {"family": "preact_resnet", "shortcut": "A", "zero_last_gamma": True}),
        *("zero_last_gamma", "'preact_resnet' has no such setting"),
    ),
    ("lab", {"steps": 10, "warmup_steps": 11}, "warmup_steps", "wanted 10 or less, the run's steps; got 11."),
    ("lab", {"precision": "bfloat16"}, "precision", "float32 and float64, no bfloat16"),
    ("lab", {"batch_size": 10, "stop_loss": 0.1}, "stop_loss", "judges the full batch; leave it away, or batch_size."),
    ("lab", {"optimizer_options": {"weight_decay": 0.1}}, "optimizer_options.weight_decay", "has no weight decay"),
    ("torch", {"stop_loss": 0.1}, "stop_loss", "only the NumPy laboratory stops early"),
    ("torch", {"measures": ["gradcheck"]}, "measures", "'gradcheck' is not there for torch."),
]


@pytest.mark.parametrize(("base", "change", "field", "says"), INCOHERENT)
def test_incoherent(lab: Fields, torch_run: Fields, base: str, change: Fields, field: str, says: str) -> None:
    told = faults(lab if base == "lab" else torch_run, **change)
    assert list(told) == [field]
    assert says in told[field]


def test_a_warm_up_may_last_as_long_as_the_run_and_an_untrained_network_has_none(lab: Fields) -> None:
    for steps, warmup in ((10, 10), (0, 5)):
        assert RunSpec.model_validate({**lab, "steps": steps, "warmup_steps": warmup}).warmup_steps == warmup


def test_all_incoherences_at_once(lab: Fields) -> None:
    told = faults(lab, epochs=1, precision="bfloat16", batch_size=4, stop_loss=0.1, shortcut="B")
    assert set(told) == {"epochs", "precision", "stop_loss", "shortcut"}


@pytest.mark.parametrize(
    "change",
    [
        {"data": "mine.data:points"},
        {"measures": ["layers"]},
        {"shortcut": "identity_2"},
        {"steps": 0},
        {"steps": None, "epochs": 1},
        {"batch_size": 4},
    ],
)
def test_coherent(lab: Fields, change: Fields) -> None:
    RunSpec.model_validate({**lab, **change})


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("depth", "8", "wanted an integer, got '8'."),
        ("depth", True, "wanted an integer, got True."),
        ("depth", 8.0, "wanted an integer, got 8.0."),
        ("depth", 0, "wanted 1 or more, got 0."),
        ("depth", 10**30, "wanted 100000 or less"),
        ("width", 2**20, "wanted 65536 or less"),
        ("seed", -1, "wanted 0 or more"),
        ("seed", 2**31, "wanted less than 2147483648"),
        ("lr", 0, "wanted more than 0"),
        ("lr", "0.1", "wanted a number, got '0.1'."),
        ("lr", float("inf"), "wanted a finite number, got inf."),
        ("gain", True, "wanted a number, got True."),
        ("zero_last_gamma", 1, "wanted true or false, got 1."),
        ("backend", "pytorch", "wanted 'numpy' or 'torch', got 'pytorch'. Did you mean 'torch'?"),
        ("precision", "float16", "Did you mean 'bfloat16'?"),
        ("shortcut", "identiy", "unknown shortcut 'identiy'. Did you mean 'identity'?"),
        ("family", "resnet", "unknown family 'resnet'. Did you mean 'cifar_resnet' (the CIFAR family"),
        ("family", "no module:f", "unknown family"),
        ("measures", "layers", "wanted a list, got 'layers'."),
        ("measures", ["layer"], "unknown measure 'layer'. Did you mean 'layers'?"),
        ("data_options", 3, "wanted a table, got 3."),
        ("data_options.nois", 3, "unknown option of spiral 'nois'. Did you mean 'noise'?"),
        ("data_options.arms", 2.5, "wanted an integer, got 2.5."),
        ("data_options.arms", 1, "wanted a value in [2, 1000], got 1."),
        ("data_options.noise", "much", "wanted a number, got 'much'."),
        ("data_options.noise", float("nan"), "wanted a number, got nan."),
        ("data_options.noise", 10**400, "wanted a number, got 1000"),
        ("data_options.start_radius", 1.0, "wanted a value in [0, 1), got 1.0."),
        ("optimizer_options.momentum", 1, "wanted a value in [0, 1), got 1.0."),
        ("model_options.heads", 4, "unknown option of mlp 'heads'. Known: bare, linear_end, norm_ends_branch."),
        ("schedule_options.milestones", [0.5], "unknown option of constant 'milestones'. There are none."),
    ],
)
def test_faulty_values(lab: Fields, field: str, value: object, says: str) -> None:
    head, dot, tail = field.partition(".")
    told = faults(lab, **{head: {tail: value} if dot else value})
    [path] = told
    assert path.startswith(field)
    assert says in told[path]
    assert "\n" not in told[path]


@pytest.mark.parametrize("milestones", [[0.5, 30], [0.0], ["half"], 0.5, [True]])
def test_milestones_are_fractions(lab: Fields, milestones: object) -> None:
    # An epoch number in their place would silently mean "never".
    told = faults(lab, schedule="step", schedule_options={"milestones": milestones})
    assert list(told) == ["schedule_options.milestones"]


def test_all_faulty_options_at_once(lab: Fields) -> None:
    told = faults(lab, data_options={"nois": 1, "arms": 0}, optimizer_options={"momentum": 2}, depth=0)
    assert set(told) == {"data_options.nois", "data_options.arms", "optimizer_options.momentum", "depth"}
