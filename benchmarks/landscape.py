"""What a point of a loss landscape takes, against the plain way.

    python benchmarks/landscape.py [--pairs 9] [--depth 20] [--examples 512] [--batch 128]

The plain way: the weights of the point are put into the model from a dict, and one batch of all images is evaluated, in
float32, laid out as [B, C, H, W]. Ours is a point of `Surface` in float32, in bfloat16, and without its twin of the
model (`fast=False`). How far each loss is from that in float64 is told beside.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from pairs import measured
from torch import Tensor, nn

from depthscope.execute.pages import keep_pages
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.probes.landscape.directions import Directions, directions
from depthscope.probes.landscape.surface import Precision, Surface

POINT = (0.3, -0.2)


def judge(output: Tensor, targets: Tensor) -> dict[str, float]:
    return {"loss": float(F.cross_entropy(output.double(), targets))}


def network(depth: int) -> nn.Module:
    """With running statistics of its own activations, as a trained network has."""
    torch.manual_seed(0)
    model, _ = build(lambda: cifar_resnet(depth=depth, shortcut="A"), seed=0)
    with torch.no_grad():
        for _ in range(10):
            model(torch.randn(64, 3, 32, 32))
    return model


def plain(model: nn.Module, axes: Directions, x: Tensor, y: Tensor) -> Callable[[], float]:
    """The plain way, on a model of its own."""
    model.eval()
    parameters = dict(model.named_parameters())
    centre = {name: each.detach().clone() for name, each in parameters.items()}
    a, b = ({name: each.float() for name, each in axis.items()} for axis in axes.axes)

    def point() -> float:
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(centre[name] + POINT[0] * a[name] + POINT[1] * b[name])
            return judge(model(x), y)["loss"]

    return point


def batches(examples: int, batch: int) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(examples, 3, 32, 32, generator=draw)
    y = torch.randint(10, (examples,), generator=draw)
    return x, y, list(zip(x.split(batch), y.split(batch), strict=True))


def plain_point(depth: int, examples: int) -> Callable[[], float]:
    """Set up the plain way."""
    torch.set_num_threads(1)
    model = network(depth)
    x, y, _ = batches(examples, examples)
    return plain(model, directions(model, axes=2, seed=0), x, y)


def our_point(depth: int, examples: int, batch: int, precision: Precision, fast: bool) -> Callable[[], float]:
    """Set up ours."""
    keep_pages()
    torch.set_num_threads(1)
    model = network(depth)
    surface = Surface(
        model,
        batches(examples, batch)[2],
        judge,
        directions(model, axes=2, seed=0),
        precision=precision,
        fast=fast,
    )
    return lambda: surface.at(*POINT)["loss"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--examples", type=int, default=512)
    parser.add_argument("--batch", type=int, default=128)
    given = parser.parse_args()
    torch.set_num_threads(1)
    exact = our_point(given.depth, given.examples, given.batch, "float64", False)()
    ways: tuple[tuple[Precision, bool], ...] = (("float32", True), ("bfloat16", True), ("float32", False))
    for precision, fast in ways:
        ours = partial(our_point, given.depth, given.examples, given.batch, precision, fast)
        measured(
            f"point-{precision}" + ("" if fast else "-plain-model"),
            f"a point of a loss landscape, ResNet-{given.depth}, {given.examples} images, {precision}"
            + ("" if fast else ", without the model's twin"),
            partial(plain_point, given.depth, given.examples),
            ours,
            want=None,
            pairs=given.pairs,
            facts={"loss, from that in float64": ours()() - exact},
        )


if __name__ == "__main__":
    main()
