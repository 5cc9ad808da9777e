"""What a point of a loss landscape takes, against the plain way.

    python benchmarks/landscape.py [--rounds 9] [--depth 20] [--examples 512] [--batch 128] [--profile]

The plain way: the weights of the point are put into the model from a dict, and one batch of all images is evaluated, in
float32, laid out as [B, C, H, W]. In turn with it a point of `Surface` is taken in float32, in bfloat16, and without
its twin of the model (`fast=False`). Each is divided by the plain point of its round, and the median over rounds is
told, with the least and the greatest. Time is the processor's, which others on the machine change less than the
clock's. How far the losses are from those in float64 is told beside.
"""

from __future__ import annotations

import argparse
import copy
import platform
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.probes.landscape.directions import Directions, directions
from depthscope.probes.landscape.surface import Surface

POINT = (0.3, -0.2)


def judge(output: Tensor, targets: Tensor) -> dict[str, float]:
    return {"loss": float(F.cross_entropy(output.double(), targets))}


def network(depth: int) -> nn.Module:
    """With running statistics of its own activations, as a trained network has."""
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


def timed(point: Callable[[], float]) -> tuple[float, float]:
    started = time.process_time()
    loss = point()
    return time.process_time() - started, loss


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--examples", type=int, default=512)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--profile", action="store_true", help="where the time of a point goes, by operation")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = network(given.depth)
    x, y = torch.randn(given.examples, 3, 32, 32), torch.randint(10, (given.examples,))
    axes = directions(model, axes=2, seed=0)
    batches = list(zip(x.split(given.batch), y.split(given.batch), strict=True))
    surfaces = {
        "float32": Surface(model, batches, judge, axes),
        "bfloat16": Surface(model, batches, judge, axes, precision="bfloat16"),
        "float32, fast=False": Surface(model, batches, judge, axes, fast=False),
    }
    points: dict[str, Callable[[], float]] = {"plain": plain(copy.deepcopy(model), axes, x, y)}
    for name, surface in surfaces.items():
        points[name] = lambda surface=surface: surface.at(*POINT)["loss"]
    exact = Surface(model, batches, judge, axes, precision="float64", fast=False).at(*POINT)["loss"]
    spent: dict[str, list[float]] = {name: [] for name in points}
    losses: dict[str, float] = {}
    order = list(points)
    for index in range(given.rounds + 1):
        turn = index % len(order)
        # Another first in each round: whoever comes after a pause gets a cold cache.
        for name in (*order[turn:], *order[:turn]):
            took, losses[name] = timed(points[name])
            if index:  # the first round warms everything up
                spent[name].append(took)
    print(
        f"torch {torch.__version__}, {platform.machine()}, 1 thread; ResNet-{given.depth}, {given.examples} images, "
        f"batches of {given.batch}; a plain point takes {statistics.median(spent['plain']):.2f} s of the processor "
        f"(median of {given.rounds})\n"
    )
    print("| | a point | times as fast as the plain one: median [least, greatest] | loss, from that in float64 |")
    print("| --- | --- | --- | --- |")
    for name in order:
        ratios = [one / other for one, other in zip(spent["plain"], spent[name], strict=True)]
        print(
            f"| {name} | {statistics.median(spent[name]):.3f} s | {statistics.median(ratios):.2f} "
            f"[{min(ratios):.2f}, {max(ratios):.2f}] | {losses[name] - exact:+.1e} |"
        )
    if given.profile:
        for name in ("float32", "bfloat16"):
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                points[name]()
            print(f"\n{name}\n{profile.key_averages().table(sort_by='self_cpu_time_total', row_limit=8)}")


if __name__ == "__main__":
    main()
