"""Normalisers, activations, DenseNet and NFNet: what their papers say, measured through the layers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.conformance.case import Case
from torch import Tensor, nn

from depthscope.core.depth import tat_slope
from depthscope.models import densenet, nfnet
from depthscope.models.layers import activations, make, norms, weighted
from depthscope.models.layers.make import Layers

Array = NDArray[np.float64]
Alter = Callable[[pytest.MonkeyPatch], None]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(module: nn.Module, seed: int = 0) -> Any:
    """The module in float64, with every parameter from N(0, 1)."""
    module = module.double()
    source = generator(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=source))
    return module


# Normalisers: y = (x - mean) / sqrt(variance + 1e-5) * weight + bias over the sets that each averages over.


def normalised(x: Array, sets: Sequence[Any], weight: Array, bias: Array) -> Array:
    """Every set of places by itself; they must cover x once. `weight` and `bias` are one a channel."""
    out = np.full_like(x, np.nan)
    for each in sets:
        values = x[each]
        out[each] = (values - values.mean()) / math.sqrt(values.var() + 1e-5)
    per_channel = (1, -1, *[1] * (x.ndim - 2))
    return out * weight.reshape(per_channel) + bias.reshape(per_channel)


def examples_by_groups(num_examples: int, num_channels: int, groups: int) -> Iterator[Any]:
    size = num_channels // groups
    for example, group in itertools.product(range(num_examples), range(groups)):
        yield example, slice(group * size, (group + 1) * size)


def normaliser_check(
    name: str, *, spatial: tuple[bool, ...], groups: dict[int, int], options: dict[str, Any] | None = None
) -> Callable[[], None]:
    """Args:
    groups: channels -> groups of one example; 0: over the batch, a channel by itself.
    """

    def check() -> None:
        for images, (num, in_groups) in itertools.product(spatial, groups.items()):
            layers = Layers(norm=name, spatial=images, norm_options=options or {})
            layer, norm = drawn(layers.weighted(5, num)), drawn(layers.normaliser(num), 1)
            x = layer(torch.randn(4, 5, *([3, 6] if images else []), generator=generator(2), dtype=torch.float64) + 1)
            sets = [np.s_[:, at] for at in range(num)] if in_groups == 0 else examples_by_groups(4, num, in_groups)
            parameters = [norm.weight.detach().numpy(), norm.bias.detach().numpy()]
            assert [len(each) for each in parameters] == [num, num]
            wanted = normalised(x.detach().numpy(), list(sets), *parameters)
            np.testing.assert_allclose(norm(x).detach().numpy(), wanted, rtol=1e-10, atol=1e-10)

    return check


def other_normaliser(name: str, wrong: Callable[..., nn.Module]) -> Alter:
    def alter(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(make.NORMS, name, replace(make.NORMS[name], normaliser=wrong))

    return alter


# Weight standardisation: what a layer multiplies with, read from its answers to unit inputs.


def effective_weight(layer: Any, images: bool) -> Array:
    """[O, N]: what the layer's centre (an image of 3x3) gives for each unit input, less what it gives for 0."""
    num = layer.weight[0].numel()
    unit = torch.eye(num, dtype=torch.float64)
    with torch.no_grad():
        if not images:
            return np.asarray((layer(unit) - layer(torch.zeros_like(unit))).T)
        unit = unit.view(num, -1, 3, 3)
        return np.asarray((layer(unit) - layer(torch.zeros_like(unit)))[:, :, 1, 1].T)


def check_standardised() -> None:
    for images in (True, False):
        layers = Layers(norm="ws", spatial=images)
        layer = drawn(layers.weighted(7, 12))
        assert layer.bias is not None
        weight = effective_weight(layer, images)
        fan_in = 63 if images else 7
        assert weight.shape == (12, fan_in)
        np.testing.assert_allclose(weight.mean(axis=1), 0, atol=1e-14)
        np.testing.assert_allclose(weight.var(axis=1), 1 / fan_in, rtol=1e-4)
        raw = layer.weight.detach().numpy().reshape(12, fan_in)
        np.testing.assert_allclose([np.corrcoef(*rows)[0, 1] for rows in zip(weight, raw, strict=True)], 1)
    # Through layers of unequal widths: the variance of white noise stays, whatever scale the weights have.
    h = torch.randn(512, 100, generator=generator(3), dtype=torch.float64)
    for num_in, num_out in itertools.pairwise((100, 160, 80, 200)):
        layer = drawn(Layers(norm="ws", spatial=False).weighted(num_in, num_out))
        with torch.no_grad():
            layer.weight *= 7.0
            layer.bias.zero_()
            h = layer(h)
        assert h.var().item() == pytest.approx(1, rel=0.1)


def check_standardised_with_groups() -> None:
    layers = Layers(norm="ws_group", norm_options={"groups": 3})
    layer, norm = drawn(layers.weighted(7, 12)), layers.normaliser(12).double()
    assert layer.bias is None
    assert effective_weight(layer, True).mean(axis=1) == pytest.approx(0, abs=1e-14)
    out = norm(layer(torch.randn(2, 7, 5, 5, generator=generator(), dtype=torch.float64)))
    assert out.view(2, 3, -1).mean(dim=2).flatten().tolist() == pytest.approx([0] * 6, abs=1e-12)
    assert out.view(2, 3, -1).var(dim=2, correction=0).flatten().tolist() == pytest.approx([1] * 6, rel=1e-4)


def uncentred(weight: Tensor) -> Tensor:
    return nn.functional.normalize(weight.flatten(1)).view_as(weight)


def alter_standardised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(weighted, "standardised", uncentred)


def check_scaled() -> None:
    z = np.linspace(-12, 12, 200_001)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    for activation in ("relu", "gelu", "silu", "tanh"):
        layers = Layers(norm="scaled_ws", activation=activation, spatial=False)
        phi = layers.act()(torch.from_numpy(z)).numpy()
        deviation = math.sqrt((phi**2 * density).sum() - (phi * density).sum() ** 2)
        assert layers.activation_scale() * deviation == pytest.approx(1, rel=1e-3)
        h = torch.randn(512, 120, generator=generator(3), dtype=torch.float64)
        variances = []
        for at, (num_in, num_out) in enumerate(itertools.pairwise((120, 200, 96, 240, 128, 180, 100, 220))):
            layer = drawn(layers.weighted(num_in, num_out), at)
            with torch.no_grad():
                layer.gain.fill_(1)
                layer.bias.zero_()
                h = layer(layers.act()(h))
            variances.append(h.var(dim=0).mean().item())
        assert np.mean(variances) == pytest.approx(1, rel=0.06), activation
    for images in (True, False):
        layer = drawn(Layers(norm="scaled_ws", activation="silu", spatial=images).weighted(7, 12))
        with torch.no_grad():
            layer.weight[3] *= 1e-4  # under the floor of N var
        raw = layer.weight.detach().numpy().reshape(12, -1)
        floored = np.maximum(raw.shape[1] * raw.var(axis=1), 1e-4)
        assert floored[3] == 1e-4
        gain = layer.gain.detach().numpy() / np.sqrt(floored)
        wanted = 1.7881293297 * gain[:, None] * (raw - raw.mean(axis=1, keepdims=True))
        np.testing.assert_allclose(effective_weight(layer, images), wanted, rtol=1e-9, atol=1e-12)
    stem = Layers(norm="scaled_ws").weighted(3, 8, activated=False)
    assert isinstance(stem, weighted.ScaledConv2d)
    assert stem.scale == 1


def alter_scales(patch: pytest.MonkeyPatch) -> None:
    second_moments = {"relu": 1.414214, "gelu": 1.533530, "silu": 1.676532, "tanh": 1.592537}
    patch.setattr(weighted, "ACTIVATION_SCALES", second_moments)


def alter_scaled(patch: pytest.MonkeyPatch) -> None:
    right = weighted.scaled

    def wrong(weight: Tensor, gain: Tensor, scale: float) -> Tensor:
        return right(weight, gain, scale) * math.sqrt(1 - 1 / weight[0].numel())  # the unbiased variance

    patch.setattr(weighted, "scaled", wrong)


# Fixup's scalars.


def check_fixup() -> None:
    layers = Layers(norm="fixup")
    assert isinstance(layers.head(5, 3), weighted.ShiftedLinear)
    conv, middle, end = (
        drawn(each, at) for at, each in enumerate((layers.weighted(5, 7), layers.normaliser(7), layers.branch_end(7)))
    )
    shapes = [{name: tuple(each.shape) for name, each in part.named_parameters()} for part in (conv, middle, end)]
    assert shapes == [{"weight": (7, 5, 3, 3), "shift": (1,)}, {"shift": (1,)}, {"multiplier": (1,), "shift": (1,)}]
    x = torch.randn(2, 5, 4, 6, generator=generator(9), dtype=torch.float64)
    padded = nn.functional.pad(x + conv.shift, (1, 1, 1, 1))  # the scalar is added to pixels, not to the padding
    wanted = nn.functional.conv2d(padded, conv.weight) + middle.shift
    wanted = end.multiplier * wanted + end.shift
    assert torch.allclose(end(middle(conv(x))), wanted, rtol=1e-12, atol=1e-12)


def alter_fixup(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(norms.ScaleShift, "forward", lambda self, x: self.multiplier * (x + self.shift))


# Activations: E[phi] and E[phi^2] at N(0, 1), shared/ORACLES.md section 3.


def moments_check(name: str, first: float, second: float) -> Callable[[], None]:
    def check() -> None:
        z = np.linspace(-12, 12, 200_001)
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        phi = Layers(activation=name).act()(torch.from_numpy(z)).numpy()
        assert [(phi * density).sum(), (phi**2 * density).sum()] == pytest.approx([first, second], abs=1e-6)

    return check


def other_activation(name: str, wrong: Callable[[Tensor], Tensor]) -> Alter:
    class Wrong(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return wrong(x)

    def alter(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(make.ACTIVATIONS, name, lambda depth: Wrong())

    return alter


def check_tat() -> None:
    """Through 20 layers the cosine of two orthogonal inputs ends at .9, and q = |h|^2/n stays 1 where n changes."""
    slopes = [tat_slope(depth) for depth in (21, 51, 101)]
    assert slopes == pytest.approx([0.18138, 0.430523, 0.57044], abs=1e-5)
    layers = Layers(norm="none", activation="tat", spatial=False, depth=21)
    source = generator(1)
    cosines, growths = [], []
    for _ in range(4):
        h = torch.linalg.qr(torch.randn(360, 40, generator=source, dtype=torch.float64))[0].T * math.sqrt(360)
        for num_in, num_out in [(360, 440), (440, 360)] * 10:
            layer: Any = layers.weighted(num_in, num_out).double()
            with torch.no_grad():
                layer.bias.zero_()
                layer.weight.copy_(torch.randn(num_out, num_in, generator=source) / math.sqrt(num_in))
                before, h = h, layers.act()(layer(h))
            growths.append(math.log((h * h).mean() / (before * before).mean()))
        gram = nn.functional.cosine_similarity(h[:, None], h[None], dim=2)
        cosines.append(gram[torch.triu_indices(40, 40, 1).unbind()].mean().item())
    assert len(growths) == 4 * 20
    assert np.mean(cosines) == pytest.approx(0.9, abs=0.015)
    for at in (0, 1):  # to wider layers, to narrower ones
        assert np.mean(growths[at::2]) == pytest.approx(0, abs=0.03)


def alter_tat_scale(patch: pytest.MonkeyPatch) -> None:
    forward = activations.TailoredReLU.forward
    patch.setattr(activations.TailoredReLU, "forward", lambda self, x: forward(self, x) / self.scale)


def alter_tat_slope(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(activations, "tat_slope", lambda depth: tat_slope(2 * depth))


# Families.


def check_densenet() -> None:
    with torch.device("meta"):
        published = densenet.cifar_densenet(depth=100, width=12)
    assert sum(each.numel() for each in published.parameters()) == 769_162
    model = densenet.cifar_densenet(depth=16, width=5)
    seen: dict[str, tuple[Tensor, Tensor]] = {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _m, args, out, name=name: seen.update({name: (args[0], out)}))
    model(torch.randn(2, 3, 8, 8, generator=generator()))
    num = 10
    for index, block in enumerate(model.blocks):
        before, after = seen[f"blocks.{index}"]
        if isinstance(block, densenet.DenseLayer):
            assert torch.equal(after, torch.cat([before, seen[f"blocks.{index}.conv2"][1]], dim=1))
            num += 5
        else:
            num //= 2
        assert after.shape[1] == num


def alter_densenet(patch: pytest.MonkeyPatch) -> None:
    right = densenet.DenseLayer.forward
    patch.setattr(densenet.DenseLayer, "forward", lambda self, x: right(self, x).roll(1, dims=1))


def measured_variances(model: nfnet.NFNet) -> list[float]:
    """After each block, of white noise and gains of 1: the mean over channels of each one's variance."""
    source = generator(4)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                module.weight.copy_(torch.randn(module.weight.shape, generator=source))
                assert module.bias is not None
                module.bias.zero_()
                # Zeros at the edges would take a share of the variance, which the paper's prediction leaves out.
                module.padding_mode = "circular"
                module._reversed_padding_repeated_twice = [int(module.padding[0])] * 4
        h = model.stem(torch.randn(16, 3, 16, 16, generator=source))
        variances = []
        for block in model.blocks:
            join: Any = block.join
            join.gain.fill_(1)
            h = block(h)
            variances.append(h.var(dim=(0, 2, 3)).mean().item())
    return variances


def check_nfnet() -> None:
    for activation, alpha in (("relu", 0.2), ("gelu", 0.2), ("silu", 0.2), ("relu", 1.0)):
        model = nfnet.cifar_nfnet(depth=20, width=40, activation=activation, shortcut_options={"alpha": alpha})
        square = alpha * alpha
        wanted = [1 + square, 1 + 2 * square, 1 + 3 * square] * 3
        assert model.predicted_variances() == pytest.approx(wanted)
        blocks: Any = model.blocks
        assert [block.deviation**2 for block in blocks] == pytest.approx([1, *wanted[:-1]])
        assert measured_variances(model) == pytest.approx(wanted, rel=0.08), (activation, alpha)


def alter_nfnet_reset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(nfnet, "predicted_variances", lambda n, alpha: tuple(1 + alpha**2 * at for at in range(1, 3 * n + 1)))


def alter_nfnet_block(patch: pytest.MonkeyPatch) -> None:
    right = nfnet.GainedAdd.forward
    patch.setattr(nfnet.GainedAdd, "forward", lambda self, s, f: right(self, s, f / self.alpha))


CASES = [
    Case(
        kind="norm",
        name="batch",
        check=normaliser_check("batch", spatial=(True, False), groups={6: 0}),
        alter=other_normaliser("batch", norms.layer),
    ),
    Case(
        kind="norm",
        name="layer",
        check=normaliser_check("layer", spatial=(True, False), groups={6: 1, 9: 1}),
        alter=other_normaliser("layer", norms.batch),
    ),
    Case(
        kind="norm",
        name="group",
        check=normaliser_check("group", spatial=(True, False), groups={6: 3, 12: 3}, options={"groups": 3}),
        alter=other_normaliser("group", lambda num, groups, **place: norms.group(num, groups=2, **place)),
    ),
    Case(
        kind="norm",
        name="instance",
        check=normaliser_check("instance", spatial=(True,), groups={6: 6, 9: 9}),
        alter=other_normaliser("instance", norms.batch),
    ),
    Case(kind="norm", name="ws", check=check_standardised, alter=alter_standardised),
    Case(kind="norm", name="ws_group", check=check_standardised_with_groups, alter=alter_standardised),
    Case(kind="norm", name="scaled_ws", check=check_scaled, alter=alter_scales),
    Case(kind="norm", name="scaled_ws", check=check_scaled, alter=alter_scaled),
    Case(kind="norm", name="fixup", check=check_fixup, alter=alter_fixup),
    Case(
        kind="activation",
        name="tanh",
        check=moments_check("tanh", 0, 0.394294),
        alter=other_activation("tanh", lambda x: 1.7159 * torch.tanh(2 * x / 3)),
    ),
    Case(
        kind="activation",
        name="relu",
        check=moments_check("relu", 0.398942, 0.5),
        alter=other_activation("relu", lambda x: nn.functional.leaky_relu(x, 0.01)),
    ),
    Case(
        kind="activation",
        name="gelu",
        check=moments_check("gelu", 0.282095, 0.425221),
        alter=other_activation("gelu", lambda x: x * torch.sigmoid(1.702 * x)),
    ),
    Case(
        kind="activation",
        name="silu",
        check=moments_check("silu", 0.206621, 0.355776),
        alter=other_activation("silu", lambda x: torch.nn.functional.hardswish(x)),
    ),
    Case(kind="activation", name="tat", check=check_tat, alter=alter_tat_scale),
    Case(kind="activation", name="tat", check=check_tat, alter=alter_tat_slope),
    Case(kind="family", name="densenet", check=check_densenet, alter=alter_densenet),
    Case(kind="family", name="nfnet", check=check_nfnet, alter=alter_nfnet_reset),
    Case(kind="shortcut", name="nfnet", check=check_nfnet, alter=alter_nfnet_block),
]
