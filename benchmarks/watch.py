"""What watching a training costs, against plain steps of the same run.

    python benchmarks/watch.py [--rounds 8] [--only resnet|gpt] [--norms]

One model is trained; its steps are taken in turn plain, with the norms of every step, with the boundary profile, and
with histogram hooks as `wandb.watch(log="all")` sets them. Each is divided by the plain step of its round, and the
median over rounds is told, with the least and the greatest. Time is the processor's, which others on the machine change
less than the clock's. Memory is the peak of a process of its own, less what it held before its first step.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from pairs import figure
from torch import Tensor, nn

from depthscope.models.convnet import cifar_resnet
from depthscope.probes.watching import Watching

EVERY = 100
UNSCHEDULED = 2**20 + 1  # from here on no step is a power of two for long
HOOKS = (
    "_outer_begins",
    "_outer_ends",
    "_inner_begins",
    "_inner_ends",
    "_gradient_begins",
    "_backward_over",
    "_step_begins",
    "_step_ends",
)
VARIANTS = ("plain", "norms of every step", "boundary profile", "histogram hooks")


def resnet() -> tuple[nn.Module, Callable[[], Tensor]]:
    model = cifar_resnet(depth=56, shortcut="A")
    x, y = torch.randn(128, 3, 32, 32), torch.randint(10, (128,))
    return model, lambda: F.cross_entropy(model(x), y)


def gpt() -> tuple[nn.Module, Callable[[], Tensor]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    model: Any = GPT2LMHeadModel(GPT2Config(vocab_size=1024, n_positions=256, n_embd=256, n_layer=6, n_head=8))
    tokens = torch.randint(1024, (8, 256))

    def loss() -> Tensor:
        found: Tensor = model(tokens, labels=tokens).loss
        return found

    return model, loss


MODELS = {
    "resnet": ("ResNet-56, batch 128", resnet),
    "gpt": ("GPT-2, 6 layers of 256, 8 x 256 tokens", gpt),
}


@contextmanager
def histogram_hooks(model: nn.Module) -> Iterator[None]:
    """The plain twin of `wandb.watch(log="all")` on a step on which it logs."""
    handles: list[Any] = []
    kept: list[list[float]] = []

    def log(tensor: Tensor) -> None:
        flat = tensor.detach().float().reshape(-1)
        kept.append(torch.histc(flat, 64, float(flat.min()), float(flat.max())).tolist())

    def all_of(tensors: list[nn.Parameter]) -> None:
        for each in tensors:
            log(each)

    for module in model.modules():
        own = list(module.parameters(recurse=False))
        if own:
            handles.append(module.register_forward_hook(lambda _m, _i, _o, own=own: all_of(own)))
    for parameter in model.parameters():
        register: Callable[..., Any] = parameter.register_hook  # untyped in torch
        handles.append(register(log))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watched(watching: Watching) -> Iterator[None]:
    watching.start()
    try:
        yield
    finally:
        watching.stop()


def contexts(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Callable[[], AbstractContextManager[None]]]:
    norms = Watching(model, optimizer, 2**40, first_step=UNSCHEDULED)
    profile = Watching(model, optimizer, 1)
    return {
        "plain": nullcontext,
        "norms of every step": lambda: watched(norms),
        "boundary profile": lambda: watched(profile),
        "histogram hooks": lambda: histogram_hooks(model),
    }


def take(optimizer: torch.optim.Optimizer, loss: Callable[[], Tensor]) -> float:
    started = time.process_time()
    optimizer.zero_grad()
    loss().backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return time.process_time() - started


def seconds(name: str, rounds: int) -> dict[str, list[float]]:
    torch.manual_seed(0)
    model, loss = MODELS[name][1]()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
    made = contexts(model, optimizer)
    spent: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for index in range(rounds + 1):
        # Another first in each round: whoever comes after a pause gets a cold cache.
        for variant in (*VARIANTS[index % 4 :], *VARIANTS[: index % 4]):
            with made[variant]():
                took = take(optimizer, loss)
            if index:  # the first round traces, and warms everything up
                spent[variant].append(took)
    return spent


def own_share(name: str, rounds: int) -> list[float]:
    """Time spent inside of the hooks on steps between scheduled ones, of the step without it.

    A share under one hundredth is not to be seen in the difference of two steps, which scatter by more.
    """
    torch.manual_seed(0)
    model, loss = MODELS[name][1]()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
    watching = Watching(model, optimizer, 2**40, first_step=UNSCHEDULED)
    spent, depth = 0.0, 0

    def timed(hook: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal spent, depth
            depth += 1
            started = time.process_time()
            try:
                return hook(*args, **kwargs)
            finally:
                depth -= 1
                spent += 0.0 if depth else time.process_time() - started

        return run

    for each in HOOKS:
        setattr(watching._tap, each, timed(getattr(watching._tap, each)))
    shares = []
    with watching:
        for index in range(rounds + 1):
            spent = 0.0
            took = take(optimizer, loss)
            if index:
                shares.append(spent / (took - spent))
    return shares


def norms(rounds: int) -> None:
    """The record of what the hooks of every step take."""
    figure(
        "norms",
        f"norms of the gradients and weights of every parameter at each step of {MODELS['resnet'][0]}, of the step",
        [100 * share for share in own_share("resnet", rounds)],
        unit="%",
        want=0.5,
        clock="processor",
    )


def memory(name: str, variant: str) -> float:
    """MiB that two steps add to the process' peak."""
    code = f"import sys; sys.path.insert(0, {sys.path[0]!r}); import watch; print(watch.peak({name!r}, {variant!r}))"
    # Every tensor in pages of its own, so that the peak is what is held and not how the allocator's heap is cut up.
    own = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=own)
    return float(done.stdout.split()[-1])


def peak(name: str, variant: str) -> float:
    torch.set_num_threads(1)
    model, loss = MODELS[name][1]()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
    with contexts(model, optimizer)[variant]():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        take(optimizer, loss)
        take(optimizer, loss)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def report(name: str, rounds: int) -> None:
    # First: a process that is started begins with the peak of the one that starts it.
    held = {variant: memory(name, variant) for variant in ("plain", "norms of every step", "boundary profile")}
    spent = seconds(name, rounds)
    ratios = {
        variant: [each / plain for each, plain in zip(spent[variant], spent["plain"], strict=True)]
        for variant in VARIANTS
    }
    print(
        f"\n{MODELS[name][0]}: a plain step takes {statistics.median(spent['plain']):.2f} s of the processor "
        f"(median of {rounds})\n"
    )
    print("| | a step, of a plain one: median [least, greatest] | over all steps | peak memory of the plain one |")
    print("| --- | --- | --- | --- |")
    for variant in VARIANTS[1:]:
        middle = statistics.median(ratios[variant])
        share = (middle - 1) / (1 if variant == "norms of every step" else EVERY)
        of = f"{held[variant] / held['plain']:.3f}" if variant in held else ""
        span = f"[{min(ratios[variant]):.3f}, {max(ratios[variant]):.3f}]"
        print(f"| {variant} | {middle:.3f} {span} | {share:+.2%} | {of} |")
    shares = own_share(name, max(rounds // 2, 3))
    print(
        f"\nThe hooks of every step take {statistics.median(shares):.2%} of a step, measured inside of them "
        f"[{min(shares):.2%}, {max(shares):.2%}]."
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--norms", action="store_true", help="a record of the norms of every step, and no more")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.norms:
        norms(given.rounds)
        return
    print(
        f"torch {torch.__version__}, {platform.machine()}, {given.threads} thread(s); profile and histograms every "
        f"{EVERY} steps"
    )
    for name in [given.only] if given.only else reversed(MODELS):  # the smaller first, for the same reason
        report(name, given.rounds)


if __name__ == "__main__":
    main()
