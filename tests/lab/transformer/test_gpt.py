"""The whole transformer: gradient check of every parameter, bugs that are planted, and training of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.lab import (
    Adam,
    Gpt,
    GradcheckRow,
    Memory,
    Report,
    StopRule,
    evaluate,
    fit,
    gradient_check,
    gradients,
    init_params,
    layer_table,
    layers,
    parameter_shapes,
    profile,
)
from depthscope.lab.transformer import layers as own

Array = NDArray[Any]

MICRO = Gpt(
    depth=1,
    width=16,
    num_tokens=27,
    length=16,
    norm="rms",
    norm_scale=False,
    tied=False,
    bias=False,
    norm_embedding=True,
    norm_end=False,
)
SMALL = Gpt(depth=2, width=8, num_tokens=7, length=6, heads=2, activation="tanh")
FORMS: dict[str, Gpt] = {
    "micro": MICRO,
    "micro_plain": replace(MICRO, shortcut="none"),
    "gpt2": SMALL,
    "gpt2_plain": replace(SMALL, shortcut="none"),
    "post": replace(SMALL, placement="post", norm_embedding=True),
    "post_plain": replace(SMALL, placement="post", shortcut="none"),
    "rms": replace(SMALL, norm="rms", norm_embedding=True, activation="relu"),
    "layer_without_bias": replace(SMALL, bias=False, tied=False),
    "no_norm": replace(SMALL, norm="none", activation="linear"),
}


def text(form: Gpt, seeds: Sequence[int], num: int = 6) -> tuple[Array, Array]:
    """Tokens [S, N, T] and labels; of each example the last places ask nothing, as behind the end of a name."""
    x, y = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x.append(rng.integers(0, form.num_tokens, size=(num, form.length)))
        asked = np.arange(form.length) < rng.integers(2, form.length, size=(num, 1))
        y.append(np.where(asked, rng.integers(0, form.num_tokens, size=(num, form.length)), -1))
    return np.stack(x), np.stack(y)


def start(form: Gpt, seeds: Sequence[int], **settings: Any) -> dict[str, Array]:
    """Weights at which every gradient is alive: norms and biases too are drawn."""
    params = init_params(form, seeds, **settings)
    for row, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        for name in params:
            if params[name].ndim == 2:
                params[name][row] += 0.3 * rng.normal(size=params[name].shape[1:])
    return params


def check(form: Gpt, seed: int = 0, **settings: Any) -> list[GradcheckRow]:
    x, y = text(form, [seed])
    return gradient_check(form, start(form, [seed]), x, y, seed=seed, **settings)


@pytest.mark.parametrize("name", FORMS)
def test_every_parameter(name: str) -> None:
    """Every entry of every tensor, by the complex step; a part of them by differences."""
    form = FORMS[name]
    rows = check(form, entries=None, step_sizes={"complex": (1e-20,)})
    assert [row.tensor for row in rows[:-1]] == list(parameter_shapes(form))
    assert rows[-1].count == sum(int(np.prod(shape)) for shape in parameter_shapes(form).values())
    for row in rows:
        assert row.median <= 1e-13, row
    assert rows[-1].median <= 1e-14
    five = check(form, entries=200, step_sizes={"five_point": (3e-3,), "central": (1e-6,)})
    found = {row.method: row.median for row in five if row.tensor is None}
    assert found["five_point"] <= (1e-10 if form.activation != "relu" else 1e-8)  # a ReLU has a kink
    assert found["central"] <= 1e-6


def planted_embedding(dh: Array, tokens: Array, num_tokens: int) -> tuple[Array, Array]:
    table, positions = EMBEDDING(dh, tokens, num_tokens)
    kept = np.zeros_like(table)
    by_place = dh.swapaxes(-1, -2)
    for seed in range(len(dh)):
        kept[seed][tokens[seed].reshape(-1)] = by_place[seed]  # assigns where it should add
    return kept, positions


def planted_rms(dy: Array, cache: own.NormCache, scale: Array | None = None) -> own.NormGrads:
    dxhat = dy if scale is None else dy * scale[..., None]
    return own.NormGrads(dxhat * cache.inv_root, None if scale is None else (dy * cache.xhat).sum(axis=-1), None)


def planted_layer(dy: Array, cache: own.NormCache, scale: Array, *, has_shift: bool = True) -> own.NormGrads:
    dx, dscale, _ = RMS(dy, cache, scale)
    return own.NormGrads(dx, dscale, dy.sum(axis=-1) if has_shift else None)


def planted_attention(do: Array, cache: own.AttentionCache) -> Array:
    """The queries' gradient without 1/sqrt(E)."""
    dqkv = ATTENTION(do, cache)
    dqkv[:, : dqkv.shape[1] // 3] *= np.sqrt(cache.q.shape[-1])
    return dqkv


def planted_skip(dh: Array, dx_branch: Array, *, out: Array | None = None) -> Array:
    return dx_branch


def planted_cross_entropy(p: Array, y: Array) -> Array:
    """The mean is over all places, and not over those that are asked."""
    grad: Array = CROSS_ENTROPY(p, y) * ((y >= 0).sum(axis=-1) / y.shape[-1])[:, None, None]
    return grad


EMBEDDING, RMS, ATTENTION = own.embedding_backward, own.rms_norm_backward, own.attention_backward
CROSS_ENTROPY = layers.cross_entropy_backward
BUGS: dict[str, tuple[Any, str, Any, str, str]] = {
    "embedding": (own, "embedding_backward", planted_embedding, "micro", "tokens.weight"),
    "rms": (own, "rms_norm_backward", planted_rms, "micro", "positions.weight"),
    "layer": (own, "layer_norm_backward", planted_layer, "gpt2", "positions.weight"),
    "attention": (own, "attention_backward", planted_attention, "micro", "blocks.0.attention.qkv.weight"),
    "skip": (layers, "skip_backward", planted_skip, "micro", "positions.weight"),
    "ignored": (layers, "cross_entropy_backward", planted_cross_entropy, "micro", "head.weight"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, planted, form, tensor = BUGS[bug]
    settings: dict[str, Any] = {"entries": 400, "step_sizes": {"complex": (1e-20,)}}

    def worst() -> float:
        return next(row.worst for row in check(FORMS[form], **settings) if row.tensor == tensor)

    assert worst() < 1e-9
    monkeypatch.setattr(module, name, planted)
    assert worst() > 1e-3


def test_a_tied_table_has_both_gradients() -> None:
    """Of the same network untied, with the same values: the sum of its table's and its head's."""
    tied, free = SMALL, replace(SMALL, tied=False)
    x, y = text(tied, [3])
    params = start(tied, [3])
    _, one = gradients(tied, params, x, y)
    _, two = gradients(free, {**params, "head.weight": params["tokens.weight"]}, x, y)
    np.testing.assert_allclose(one["tokens.weight"], two["tokens.weight"] + two["head.weight"], rtol=1e-12)
    for name in set(one) - {"tokens.weight"}:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-12)


def test_counts_and_starts() -> None:
    assert sum(int(np.prod(shape)) for shape in parameter_shapes(MICRO).values()) == 4192
    gpt2 = Gpt(depth=12, width=768, num_tokens=50257, length=1024, heads=12)
    assert sum(int(np.prod(shape)) for shape in parameter_shapes(gpt2).values()) == 124_439_808
    assert parameter_shapes(FORMS["gpt2"]) == parameter_shapes(FORMS["gpt2_plain"])
    plain, residual = (init_params(FORMS[name], [5], init="gpt2") for name in ("gpt2_plain", "gpt2"))
    assert all(plain[name].tobytes() == residual[name].tobytes() for name in plain)
    zero = init_params(SMALL, [5], init="zero_projection")
    assert {name for name, each in zero.items() if each.ndim == 3 and not each.any()} == {
        f"blocks.{at}.{part}.weight" for at in range(2) for part in ("attention.proj", "mlp.down")
    }
    scaled = init_params(SMALL, [5], init="depth_scaled")
    np.testing.assert_allclose(
        scaled["blocks.1.mlp.down.weight"], residual["blocks.1.mlp.down.weight"] / 2, rtol=1e-15
    )  # four branches


def test_an_untrained_net_knows_nothing() -> None:
    x, y = text(MICRO, [0, 1], 50)
    params = {name: value * 1e-6 if name == "head.weight" else value for name, value in start(MICRO, [0, 1]).items()}
    np.testing.assert_allclose(evaluate(MICRO, params, x, y)[0], np.log(27), rtol=1e-5)


def test_evaluated_in_parts() -> None:
    x, y = text(MICRO, [0, 1], 10)
    params = start(MICRO, [0, 1])
    for whole, parts in zip(evaluate(MICRO, params, x, y), evaluate(MICRO, params, x, y, at_once=3), strict=True):
        np.testing.assert_allclose(parts, whole, rtol=1e-13)


def batches(seeds: Sequence[int], num: int, size: int) -> Any:
    def at(step: int) -> Array:
        return np.stack([np.random.default_rng((seed, step)).permutation(num)[:size] for seed in seeds])

    return at


def train(
    form: Gpt, seeds: Sequence[int], *, size: int | None = 3, num_steps: int = 12, **settings: Any
) -> list[Report]:
    x, y = text(form, seeds, 9)
    params = init_params(form, seeds, init="gpt2", gain=4.0, dtype=np.float32)
    found = []
    reports = fit(
        form,
        settings.pop("params", params),
        x,
        y,
        optimizer=Adam(beta1=0.85, beta2=0.99),
        lr=lambda step: 0.01,
        num_steps=num_steps,
        batches=batches(seeds, 9, size) if size else None,
        **{"every": 5, **settings},
    )
    for report in reports:
        memory = replace(
            report.memory,
            optimizer={name: each.copy() for name, each in report.memory.optimizer.items()},
            tally=None if report.memory.tally is None else report.memory.tally.copy(),
        )
        params = {name: value.copy() for name, value in report.params.items()}
        found.append(replace(report, params=params, memory=memory))
    return found


@pytest.mark.parametrize("size", [1, 3, None])
@pytest.mark.parametrize("name", ["micro", "micro_plain", "gpt2", "post"])
def test_alone_equals_in_a_group(name: str, size: int | None) -> None:
    seeds = (0, 4, 9)
    group = train(FORMS[name], seeds, size=size)
    for row, seed in enumerate(seeds):
        alone = train(FORMS[name], [seed], size=size)
        assert [report.step for report in alone] == [report.step for report in group] == [0, 5, 10, 12]
        for one, all_ in zip(alone, group, strict=True):
            assert one.loss[0] == all_.loss[row]
            for tensor, value in one.params.items():
                assert value.tobytes() == all_.params[tensor][row].tobytes(), tensor


def test_goes_on_from_any_report_with_the_same_bits() -> None:
    whole = train(MICRO, (0, 1), at=(3,))
    for at, begun in enumerate(whole[:-1]):
        rest = train(MICRO, (0, 1), params=begun.params, memory=begun.memory, at=(3,))
        assert [report.step for report in rest] == [report.step for report in whole[at + 1 :]]
        for one, other in zip(rest, whole[at + 1 :], strict=True):
            assert one.loss.tolist() == other.loss.tolist()
            assert all(one.params[name].tobytes() == value.tobytes() for name, value in other.params.items())


def test_reported_losses_are_means_over_batches() -> None:
    """By hand: each batch's loss before its update, from a run that reports every step."""
    each = train(MICRO, [2], at=range(13), every=1)
    chosen, (x, y) = batches([2], 9, 3), text(MICRO, [2], 9)
    own_loss = []
    for step, report in enumerate(each):
        rows = chosen(step)[0]
        own_loss.append(evaluate(MICRO, report.params, x[:, rows], y[:, rows])[0][0])
    seldom = {report.step: report.loss[0] for report in train(MICRO, [2])}
    assert seldom[0] == pytest.approx(own_loss[0], rel=1e-5)
    assert seldom[5] == pytest.approx(np.mean(own_loss[:5]), rel=1e-5)
    assert seldom[10] == pytest.approx(np.mean(own_loss[5:10]), rel=1e-5)
    assert seldom[12] == pytest.approx(np.mean(own_loss[10:12]), rel=1e-5)


def test_a_batch_of_all_is_the_full_batch() -> None:
    x, y = text(MICRO, [0], 9)
    params = init_params(MICRO, [0], init="gpt2", gain=4.0)
    settings: dict[str, Any] = {"optimizer": Adam(), "lr": lambda step: 0.01, "num_steps": 5, "every": 1}
    full = [report.params["head.weight"].copy() for report in fit(MICRO, params, x, y, **settings)]
    one = fit(MICRO, params, x, y, batches=lambda step: np.arange(9)[None], **settings)
    assert [report.params["head.weight"].tobytes() for report in one] == [each.tobytes() for each in full]


def test_a_stop_rule_wants_the_full_batch() -> None:
    with pytest.raises(UserError, match="full batch"):
        train(MICRO, [0], stop=StopRule(loss=0.1))


def test_memory_without_a_tally_is_the_full_batch() -> None:
    assert Memory(step=0, optimizer={}, streak=np.zeros(1, np.int64)).tally is None


@pytest.mark.parametrize("name", ["micro", "micro_plain", "post"])
def test_profile_by_definition(name: str) -> None:
    """Of h and its gradient from the network's own tensors, |F|/|x| example by example over all its positions."""
    form = FORMS[name]
    x, y = text(form, [0, 1])
    params = start(form, [0, 1])
    found = profile(form, params, x, y, 3)[1]
    net, grads = gradients(form, params, x, y)
    assert found.layers == layer_table(form)
    width = 2 * form.depth
    assert [layer.weight for layer in found.layers][1:3] == [
        "blocks.0.attention.proj.weight",
        "blocks.0.mlp.down.weight",
    ]
    dw = found.values("dw_norm", 3)
    assert dw[1] == pytest.approx(np.linalg.norm(grads["blocks.0.attention.proj.weight"][1]), rel=1e-12)
    assert found.values("h_norm", 3)[0] == pytest.approx(np.linalg.norm(net.inputs[1][1]), rel=1e-12)
    ratios = found.values("f_over_x", 3)
    assert set(ratios) == (set() if form.shortcut == "none" else set(range(1, width + 1)))
    if form.shortcut == "identity" and form.placement == "pre":
        at_0, at_1 = (each[1].reshape(form.width, -1, form.length) for each in net.inputs[1:3])
        f = np.linalg.norm(at_1 - at_0, axis=(0, 2)) / np.linalg.norm(at_0, axis=(0, 2))
        assert ratios[1] == pytest.approx(f.mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 0}, "depth: wanted an integer of 1 or more, got 0"),
        ({"depth": 1.5}, "depth: wanted an integer of 1 or more, got 1.5"),
        ({"width": 10}, "width 10 cannot be shared by 4 heads"),
        ({"norm": "batch"}, "norm"),
        ({"placement": "middle"}, "placement"),
        ({"shortcut": "A"}, "shortcut"),
    ],
)
def test_bad_shapes(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        replace(MICRO, **change)


def test_bad_starts() -> None:
    with pytest.raises(UserError, match="init"):
        init_params(MICRO, [0], init="xavier")
    with pytest.raises(UserError, match="one gain"):
        init_params(MICRO, [0], stem_gain=2.0)
