"""What `profile_model` reads, against plain hooks with `retain_grad`, for every trait that a model may have."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from depthscope.core.errors import UserError
from depthscope.core.readings import ModelProfile
from depthscope.probes.measure.profile import profile_model

if TYPE_CHECKING:
    from tests.probes.measure.conftest import Case, Measured

    Make = Callable[[str], Case]
    Twin = Callable[[Case], Measured]


def profiled(case: Case, **options: Any) -> ModelProfile:
    return profile_model(case.model, case.batch, case.loss_fn, **options)


def multipliers(profile: ModelProfile) -> dict[str, float]:
    return {**profile.values("block", "grad_multiplier"), **profile.values("model", "grad_multiplier")}


def test_as_plain_hooks_read_it(case: Case, twin: Twin) -> None:
    """Norms of boundaries, gradients and weights' gradients, by a copy with `retain_grad` and `backward`."""
    torch.manual_seed(0)
    profile = profiled(case)  # leaves the generator where the twin's dropout is to start
    expected = twin(case)
    assert profile.conditions[0].silent == ""
    norms, gradients = profile.values("boundary", "norm"), profile.values("boundary", "grad_norm")
    for name in case.boundaries:
        assert norms[name] == pytest.approx(expected.norms[name], rel=1e-5), name
        assert gradients[name] == pytest.approx(expected.gradients[name], rel=1e-5), name
    weights = profile.values("parameter", "weight_grad_norm")
    assert weights == pytest.approx(expected.weights, rel=1e-5, abs=1e-12)
    assert profile.value("grad_norm") == pytest.approx(math.hypot(*expected.weights.values()), rel=1e-6)
    assert profile.value("loss") == pytest.approx(expected.loss, rel=1e-6)


def test_the_multipliers_of_the_body_multiply_out_to_the_total(case: Case) -> None:
    profile = profiled(case)
    body = [profile.values("block", "grad_multiplier").get(block.name) for block in profile.structure.body]
    if body and None not in body:
        assert math.prod(body) == pytest.approx(profile.value("grad_multiplier"), rel=1e-14)  # type: ignore[arg-type]
    norms = profile.values("boundary", "grad_norm")
    names = [boundary.name for boundary in profile.structure.boundaries]
    for block in profile.structure.blocks:
        if block.name in profile.values("block", "grad_multiplier"):
            found = profile.values("block", "grad_multiplier")[block.name]
            assert found == pytest.approx(norms[names[block.index]] / norms[names[block.index + 1]], rel=1e-15)


def test_a_layer_that_runs_three_times_is_three_blocks(make: Make) -> None:
    profile = profiled(make("repeated"))
    assert [block.name for block in profile.structure.body] == ["layer", "layer#1", "layer#2"]
    assert len(profile.values("parameter", "weight_norm")) == 4


def test_additions_in_place_example_by_example(make: Make) -> None:
    """|F|/|x|, cosine and share of `out += identity`, from the operands kept by hand."""
    case = make("in place")
    assert case.twin is not None
    profile = profiled(case)
    kept: dict[str, tuple[Tensor, Tensor]] = {}
    for index in (1, 2, 3):
        block = case.twin.get_submodule(str(index))
        block.register_forward_pre_hook(lambda m, args, index=index: kept.update({f"x{index}": (args[0], args[0])}))
        block.get_submodule("norm2").register_forward_hook(
            lambda m, args, out, index=index: kept.update({f"f{index}": (out, out)})
        )
    case.twin(case.batch[0])
    ratios, cosines = profile.values("addition", "residual_ratio"), profile.values("addition", "cosine")
    shares = profile.values("addition", "share")
    assert len(ratios) == 3
    for index, name in enumerate(ratios, 1):
        f, x = (kept[f"{which}{index}"][0].detach().double().flatten(1) for which in "fx")
        assert ratios[name] == pytest.approx((f.norm(dim=1) / x.norm(dim=1)).mean().item(), rel=1e-5)
        assert cosines[name] == pytest.approx(torch.cosine_similarity(f, x).mean().item(), abs=1e-6)
        y = f + x
        assert shares[name] == pytest.approx(((f * y).sum(1) / (y * y).sum(1)).mean().item(), rel=1e-5)


def test_tied_weights_count_once(make: Make) -> None:
    profile = profiled(make("tied"))
    assert profile.statuses["embed.weight"] == "ok"
    assert profile.statuses["head.weight"] == "shared"
    assert "head.weight" not in profile.values("parameter", "weight_norm")
    assert profile.structure.num_parameters == 11 * 6 + 2 * (6 * 6 + 6)


def test_frozen_unused_and_cut_off_parameters_have_a_status_and_no_norm(make: Make) -> None:
    profile = profiled(make("parts"))
    assert profile.statuses == {
        f"{layer}.{each}": status
        for layer, status in {
            "frozen": "frozen", "used": "ok", "idle": "unused", "cut": "no grad", "head": "ok",
        }.items()
        for each in ("weight", "bias")
    }  # fmt: skip
    assert {name.partition(".")[0] for name in profile.values("parameter", "weight_grad_norm")} == {"used", "head"}
    # A frozen layer passes the gradient on all the same.
    assert min(profile.values("boundary", "grad_norm").values()) > 0


def test_a_frozen_embedding_hides_no_boundary(make: Make) -> None:
    """Without tricks the gradient would end at the first trainable layer, since tokens have none."""
    case = make("tied")
    expected = profiled(case)
    case.model.get_parameter("embed.weight").requires_grad_(False)
    profile = profiled(case)
    assert profile.statuses["embed.weight"] == "frozen"
    assert "embed.weight" not in profile.values("parameter", "weight_grad_norm")
    assert profile.values("boundary", "grad_norm") == pytest.approx(expected.values("boundary", "grad_norm"), rel=1e-6)


def test_the_losss_scale_moves_no_multiplier(case: Case) -> None:
    assert case.loss_fn is not None
    loss_fn = case.loss_fn
    base = profiled(case)
    for factor in (1e-6, 1e6):
        scaled = profiled(replace(case, loss_fn=lambda *given, factor=factor: loss_fn(*given) * factor))
        assert multipliers(scaled) == pytest.approx(multipliers(base), rel=1e-6)
        assert scaled.value("grad_norm") == pytest.approx(base.value("grad_norm") * factor, rel=1e-5)


def test_gradients_of_1e_minus_24_keep_their_digits(make: Make) -> None:
    """A norm in float32 would be 0: their squares are below its range."""
    case = make("stack")
    base = profiled(case)
    tiny = profiled(replace(case, loss_fn=lambda output, targets: F.cross_entropy(output, targets) * 1e-24))
    for place, quantity in (("boundary", "grad_norm"), ("parameter", "weight_grad_norm")):
        found, expected = (each.values(place, quantity) for each in (tiny, base))  # type: ignore[arg-type]
        assert {name: math.log10(value) + 24 for name, value in found.items()} == pytest.approx(
            {name: math.log10(value) for name, value in expected.items()}, abs=1e-5
        )
    assert multipliers(tiny) == pytest.approx(multipliers(base), rel=1e-5)


def test_forty_tanh_layers_at_half_the_gain_vanish_though_first_and_last_gradients_are_alike() -> None:
    """ORACLES 10: std .5/sqrt(w), so about .5 a layer; |dW| is a forward signal times a backward one, and is flat."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(40):
        layers += [nn.Linear(64, 64, bias=False), nn.Tanh()]
        nn.init.normal_(layers[-2].weight, std=0.5 / 8)  # type: ignore[arg-type]
    profile = profile_model(nn.Sequential(*layers, nn.Linear(64, 2)), torch.randn(64, 64))
    weights = list(profile.values("parameter", "weight_grad_norm").values())[:40]
    assert 0.1 < weights[0] / weights[39] < 10
    assert max(weights) < 1e-8
    assert profile.value("grad_multiplier") == pytest.approx(0.5**40, rel=0.9)
    assert profile.value("grad_multiplier") ** (1 / 40) == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize("masked", [False, True])
def test_fused_attention_as_the_plain_one(masked: bool, make: Make) -> None:
    case = make("attention")
    if not masked:
        case = replace(case, batch={"x": case.batch["x"]})
    found = {}
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with sdpa_kernel([backend]):
            found[backend] = profiled(case)
    plain, fused = found.values()
    assert len(fused.structure.additions) == 1
    assert len(multipliers(fused)) == 3
    assert multipliers(fused) == pytest.approx(multipliers(plain), rel=1e-5)
    assert fused.value("grad_norm") == pytest.approx(plain.value("grad_norm"), rel=1e-5)


@dataclass
class Result:
    scores: Tensor
    note: str = "text"


WRAPPINGS: dict[str, Callable[[Tensor], Any]] = {
    "dict": lambda out: {"scores": out, "n": 3},
    "tuple": lambda out: (out, None),
    "list in dict": lambda out: {"all": [out]},
    "dataclass": lambda out: Result(out),
}


class Wrapping(nn.Module):
    def __init__(self, body: nn.Module, wrapping: str) -> None:
        super().__init__()
        self.body, self.wrapping = body, wrapping

    def forward(self, x: Tensor) -> Any:
        return WRAPPINGS[self.wrapping](self.body(x))


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_outputs_of_every_make(wrapping: str, make: Make) -> None:
    case = make("stack")
    expected = profile_model(case.model, case.batch[0])
    found = profile_model(Wrapping(case.model, wrapping), case.batch[0])
    assert list(multipliers(found).values()) == pytest.approx(list(multipliers(expected).values()), rel=1e-6)
    assert found.conditions[0].objective == expected.conditions[0].objective == "cotangent"
    assert "loss" not in {each.quantity for each in found.readings if each.place == "model"}


class WithLoss(nn.Module):
    def __init__(self, body: nn.Module, as_dict: bool) -> None:
        super().__init__()
        self.body, self.as_dict = body, as_dict

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Any:
        logits = self.body(x)
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits} if self.as_dict else HasLoss(loss, logits)


@dataclass
class HasLoss:
    loss: Tensor | None
    logits: Tensor


@pytest.mark.parametrize("as_dict", [True, False])
def test_a_models_own_loss_is_used_where_it_gives_one_and_none_is_invented(as_dict: bool, make: Make) -> None:
    case = make("stack")
    x, labels = case.batch
    model = WithLoss(case.model, as_dict)
    own = profile_model(model, {"x": x, "labels": labels})
    assert own.conditions[0].objective == "model loss"
    assert own.conditions[0].num_classes == 3
    assert own.value("loss") == pytest.approx(profiled(case).value("loss"), rel=1e-6)
    assert own.value("grad_norm") == pytest.approx(profiled(case).value("grad_norm"), rel=1e-6)
    without = profile_model(model, {"x": x})
    assert without.conditions[0].objective == "cotangent"
    assert math.isnan(without.value("loss"))


def test_the_random_direction_is_of_standard_normal_entries_from_its_seed(make: Make) -> None:
    x = make("stack").batch[0]
    layer = nn.Linear(6, 400, bias=False)
    found = profile_model(layer, x, seed=1)
    drawn = torch.randn(7, 400, generator=torch.Generator().manual_seed(1))
    assert found.values("boundary", "grad_norm")["output"] == pytest.approx(drawn.double().norm().item(), rel=1e-6)
    by_hand = (drawn @ layer.weight).detach().double().norm().item()
    assert found.values("boundary", "grad_norm")["input"] == pytest.approx(by_hand, rel=1e-5)
    assert profile_model(layer, x, seed=2).values("boundary", "grad_norm") != found.values("boundary", "grad_norm")


@pytest.mark.parametrize("context", ["no_grad", "inference_mode"])
def test_the_callers_grad_mode_does_not_matter(context: str, make: Make) -> None:
    case = make("stack")
    expected = profiled(case)
    with getattr(torch, context)():
        assert profiled(case) == expected


def test_autocast_and_low_precision_are_measured_as_they_are(make: Make) -> None:
    case = make("stack")
    x, targets = case.batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = profiled(case)
    assert cast != profiled(case)
    assert cast.conditions[0].dtype == "float32"
    assert multipliers(cast) == pytest.approx(multipliers(profiled(case)), rel=0.1)
    low = profile_model(case.model.bfloat16(), (x.bfloat16(), targets), case.loss_fn)
    assert low.conditions[0].dtype == "bfloat16"
    assert multipliers(low) == pytest.approx(multipliers(cast), rel=0.1)


def test_what_is_not_finite_is_told_as_it_is(make: Make) -> None:
    case = make("stack")
    with torch.no_grad():
        case.model.get_parameter("4.weight").fill_(math.inf)
    profile = profiled(case)
    counts = profile.values("boundary", "nonfinite")
    assert counts["3"] == 0
    assert not math.isfinite(profile.value("loss"))
    assert profile.values("boundary", "grad_nonfinite")["3"] > 0


def test_the_batch_is_left_as_it_was(make: Make) -> None:
    case = make("dropout and batch norm")
    before = case.batch[0].clone()
    profiled(case)
    assert torch.equal(case.batch[0], before)
    assert not case.batch[0].requires_grad


def test_a_model_without_weights() -> None:
    profile = profile_model(nn.Tanh(), torch.ones(2, 3))
    assert profile.conditions[0].silent == ""
    assert profile.values("boundary", "norm")["output"] == pytest.approx(math.tanh(1) * math.sqrt(6), rel=1e-6)
    assert profile.statuses == {}


class Freezing(nn.Module):
    """Freezes its first layer in its forward pass."""

    def __init__(self, freezes: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.freezes = freezes

    def forward(self, x: Tensor) -> Tensor:
        if self.freezes:
            for parameter in self.layers[0].parameters():
                parameter.requires_grad_(False)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def test_what_a_forward_pass_freezes_is_frozen() -> None:
    free, frozen = (profile_model(Freezing(each), images_of_six(), F.cross_entropy) for each in (False, True))
    assert {name for name, each in frozen.statuses.items() if each == "frozen"} == {"layers.0.weight", "layers.0.bias"}
    first = set(free.values("parameter", "weight_grad_norm")) - set(frozen.values("parameter", "weight_grad_norm"))
    assert first == {"layers.0.weight", "layers.0.bias"}
    assert multipliers(frozen) == multipliers(free)


def images_of_six() -> tuple[Tensor, Tensor]:
    return torch.linspace(-1, 1, 24).reshape(4, 6), torch.arange(4)


class Demanding(nn.Module):
    """Sets the flag of its input, as Wav2Vec2 does in train mode; torch lets it where the input depends on no leaf."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x.requires_grad = False
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


class Open(Demanding):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def test_a_model_that_sets_its_inputs_flag_is_measured_without_the_inputs_gradient() -> None:
    found, expected = (profile_model(each, images_of_six(), F.cross_entropy) for each in (Demanding(), Open()))
    assert not found.conditions[0].silent
    assert found.values("boundary", "norm") == expected.values("boundary", "norm")
    assert found.values("parameter", "weight_grad_norm") == expected.values("parameter", "weight_grad_norm")
    gradients = dict(expected.values("boundary", "grad_norm"))
    del gradients["input"]
    assert found.values("boundary", "grad_norm") == gradients


TABLES: dict[int, Tensor] = {}


class Remembering(nn.Module):
    """Computes a table in its first pass and keeps it where nobody looks, as `lru_cache` does."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        if 6 not in TABLES:
            TABLES[6] = torch.arange(6.0).cos()
        out: Tensor = self.second(torch.tanh(self.first(x)) + TABLES[6])
        return out


def test_a_model_that_keeps_what_its_first_pass_computed_is_traced_again() -> None:
    TABLES.clear()
    anew = profile_model(Remembering(), torch.ones(4, 6))
    assert not anew.conditions[0].silent
    assert anew == profile_model(Remembering(), torch.ones(4, 6))
    assert len(anew.values("boundary", "grad_norm")) == len(anew.structure.boundaries)


class Leaving(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise SystemExit(0)


def test_a_model_that_ends_the_program_is_bad_input() -> None:
    with pytest.raises(UserError, match=r"raised SystemExit on this batch .*: 0"):
        profile_model(Leaving(), torch.ones(4, 6))

    def leaving(_output: Tensor, _targets: Tensor) -> Tensor:
        raise SystemExit(0)

    with pytest.raises(UserError, match="loss_fn raised SystemExit"):
        profile_model(Open(), images_of_six(), leaving)


class Nested(nn.Module):
    """Measures a part of itself in its own forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.head = Open(), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        NESTED.append(profile_model(self.part, x.detach()))
        out: Tensor = self.head(self.part(x))
        return out


NESTED: list[ModelProfile] = []


def test_a_measurement_inside_a_measured_pass() -> None:
    found = profile_model(Nested(), torch.ones(4, 6))
    assert found.values("parameter", "weight_grad_norm")
    assert NESTED[-1] == profile_model(Open(), torch.ones(4, 6))


def test_a_scripted_model_is_measured_as_its_source() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scripted = torch.jit.script(model)
    found, expected = (profile_model(each, images_of_three(), F.cross_entropy) for each in (scripted, model))
    assert found.values("parameter", "weight_grad_norm") == expected.values("parameter", "weight_grad_norm")
    assert found.values("model", "loss") == expected.values("model", "loss")


def images_of_three() -> tuple[Tensor, Tensor]:
    return images_of_six()[0], torch.arange(4) % 3


class Wayward(nn.Module):
    """Takes another way each time, by what no generator of the program tells."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        WAYS.append(len(WAYS))
        h = torch.tanh(self.first(x))
        h = torch.sigmoid(h) if len(WAYS) % 2 else torch.tanh(h)
        out: Tensor = self.second(h)
        return out


WAYS: list[int] = []


def test_a_pass_that_departs_from_the_traced_one_is_told() -> None:
    profile = profile_model(Wayward(), torch.ones(2, 6))
    assert "takes another way from pass to pass" in profile.conditions[0].silent
    assert set(profile.values("boundary", "norm")) == {"input"}
    assert set(profile.values("parameter", "weight_grad_norm")) == {
        "first.weight", "first.bias", "second.weight", "second.bias",
    }  # fmt: skip
