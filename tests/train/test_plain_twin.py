"""The engine against the loop of a textbook: channels last, crops by windows, groups of parameters and all that."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from tests.train.short import TRAINED

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from depthscope.data.batches import augmentation, order  # noqa: E402
from depthscope.models.convnet import cifar_resnet  # noqa: E402
from depthscope.models.init import build  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.build import Context, load_data  # noqa: E402
from depthscope.train.feed import taken  # noqa: E402
from depthscope.train.state import Standing  # noqa: E402
from depthscope.train.torch_loop import Run  # noqa: E402

MOMENTUM, DECAY = 0.9, 1e-3


class Block(nn.Module):
    """Two 3x3 convolutions, and option A around them, by an index with steps."""

    def __init__(self, num_in: int, num_out: int, stride: int, *, residual: bool) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(num_in, num_out, 3, stride, 1, bias=False), nn.BatchNorm2d(num_out)
        self.conv2, self.bn2 = nn.Conv2d(num_out, num_out, 3, 1, 1, bias=False), nn.BatchNorm2d(num_out)
        self.stride, self.extra, self.residual = stride, num_out - num_in, residual

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.residual:
            out = out + F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.extra))
        return F.relu(out)


class Plain(nn.Module):
    """He et al.'s network for CIFAR-10, in the order of layers in which a paper lists them."""

    def __init__(self, depth: int, width: int, *, residual: bool) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        blocks: list[nn.Module] = []
        num_in = width
        for stage in range(3):
            for index in range((depth - 2) // 6):
                num_out = width * 2**stage
                blocks.append(Block(num_in, num_out, 2 if stage and not index else 1, residual=residual))
                num_in = num_out
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(num_in, 10)

    def forward(self, x: Tensor) -> Tensor:
        out = self.blocks(F.relu(self.bn(self.conv(x))))
        logits: Tensor = self.head(F.adaptive_avg_pool2d(out, 1).flatten(1))
        return logits


def spec(**changes: Any) -> RunSpec:
    values = {"shortcut": "A", "optimizer_options": {"momentum": MOMENTUM, "weight_decay": DECAY}, "lr": 0.05}
    return RunSpec.model_validate({**TRAINED, "precision": "float64", **values, **changes})


def textbook(one: RunSpec, num_steps: int) -> tuple[list[float], list[Tensor]]:
    """Losses and final parameters of the plain loop: float64 or float32, channels first, one image at a time."""
    data = load_data(one, Context())
    dtype = torch.float64 if one.precision == "float64" else torch.float32
    x, y = taken(one, data, data.train)
    x, pad, size = F.pad(x.to(dtype), (one.padding,) * 4), one.padding, x.shape[-1]
    ours, _ = build(
        lambda: cifar_resnet(depth=one.depth, width=one.width, shortcut=one.shortcut), seed=one.seed, dtype=dtype
    )
    model = Plain(one.depth, one.width, residual=one.shortcut == "A").to(dtype)
    with torch.no_grad():
        for mine, its in zip(model.parameters(), ours.parameters(), strict=True):
            assert mine.shape == its.shape
            mine.copy_(its)
    optimizer = torch.optim.SGD(model.parameters(), one.lr, momentum=MOMENTUM, weight_decay=DECAY)
    assert one.batch_size is not None
    losses: list[float] = []
    epoch = 0
    while len(losses) < num_steps:
        tops, lefts, flips = augmentation(one.seed, epoch, len(y), pad)
        chosen = order(one.seed, epoch, len(y)).tolist()
        for begin in range(0, len(y), one.batch_size):
            images = []
            for index in chosen[begin : begin + one.batch_size]:
                top, left = int(tops[index]), int(lefts[index])
                image = x[index, :, top : top + size, left : left + size]
                images.append(image.flip(-1) if flips[index] else image)
            loss = F.cross_entropy(model(torch.stack(images)), y[chosen[begin : begin + one.batch_size]])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == num_steps:
                break
        epoch += 1
    return losses, [each.detach() for each in model.parameters()]


class Heard(Run):
    """The engine, that keeps the loss of each step."""

    def __init__(self, one: RunSpec) -> None:
        super().__init__(one, Context(), None, Standing())
        self.losses: list[float] = []

    def _update(self, x_B: Tensor, y_B: Tensor, lr: float) -> tuple[Tensor, Tensor | None]:
        loss, hits = super()._update(x_B, y_B, lr)
        self.losses.append(float(loss))
        return loss, hits


def engine(one: RunSpec, num_steps: int) -> tuple[list[float], list[Tensor]]:
    """Losses and parameters of the engine after so many steps of the same run."""
    run = Heard(one.model_copy(update={"epochs": None, "steps": num_steps}))
    for _ in run.events():
        pass
    return run.losses, [each.detach() for each in run.model.parameters()]


@pytest.mark.parametrize("shortcut", ["none", "A"])
def test_a_step_in_float64_is_that_of_the_textbook(shortcut: str) -> None:
    one = spec(shortcut=shortcut, depth=14, width=8)
    wanted, plain = textbook(one, 1)
    found, ours = engine(one, 1)
    assert found == pytest.approx(wanted, rel=1e-12)
    for mine, its in zip(plain, ours, strict=True):
        torch.testing.assert_close(its.contiguous(), mine, rtol=1e-12, atol=1e-12)


def test_an_epoch_in_float64_is_that_of_the_textbook() -> None:
    """Three steps, the last on a smaller batch: momentum and decay are in it, and rounding has not grown yet."""
    one = spec()
    wanted, plain = textbook(one, 3)
    found, ours = engine(one, 3)
    assert found == pytest.approx(wanted, rel=1e-11)
    for mine, its in zip(plain, ours, strict=True):
        torch.testing.assert_close(its.contiguous(), mine, rtol=1e-10, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_loss_of_fifty_steps_is_that_of_the_textbook_over_seeds(precision: str) -> None:
    """Trajectories part after some steps, whatever the precision; their mean over seeds does not.

    Of each seed the mean loss of the last ten of 50 steps; the differences from the textbook's float32, paired by seed,
    have a mean within 3 of its standard errors of 0, or within 0.01 nats where the two hardly part.
    """
    differences = []
    for seed in range(8):
        one = spec(precision=precision, seed=seed, data_options={"num_train": 128, "num_test": 16})
        wanted, _ = textbook(one, 50)
        found, _ = engine(one, 50)
        assert found[0] == pytest.approx(wanted[0], rel=1e-5 if precision == "float32" else 2e-2)
        differences.append(statistics.fmean(found[-10:]) - statistics.fmean(wanted[-10:]))
    error = statistics.stdev(differences) / len(differences) ** 0.5
    assert abs(statistics.fmean(differences)) < max(3 * error, 0.01), differences
