"""A map of ResNet-20 on real images, stopped at random and spread over two processes, equals the one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

CODE = """
import os
from pathlib import Path

import torch

from depthscope.data.cifar10 import cifar10
from depthscope.models.convnet import cifar_resnet

WEIGHTS = Path(__file__).with_name("weights.pt")


def model():
    net = cifar_resnet(depth=20, width=16, shortcut="A")
    if WEIGHTS.exists():
        net.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return net


def images(num=512):
    split = cifar10(0, Path(os.environ["MAP_IMAGES"]), num_train=num, num_test=0).train
    return torch.from_numpy(split.x).float().div_(255).sub_(0.5).mul_(4), torch.from_numpy(split.y)


def train(steps):
    torch.manual_seed(0)
    net, (x, y) = model(), images(2048)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        at = slice(step * 128 % 2048, step * 128 % 2048 + 128)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[at]), y[at]).backward()
        optimizer.step()
    torch.save(net.state_dict(), WEIGHTS)
"""


def made(folder: Path, at: Path, workers: int, points: int, *, kills: int, seed: int) -> bytes:
    """The points of a map, of which `kills` times a driver or one of its workers is stopped at a random moment."""
    draw = random.Random(seed)
    command = [
        *(sys.executable, "-c", "from depthscope.cli.main import main; main()"),
        *("landscape", "real_net:model", "--data", "real_net:images"),
        *("--loss", "cross_entropy", "--points", str(points), "--out", str(folder), "--workers", str(workers)),
    ]
    while True:
        process = subprocess.Popen(command, cwd=at, stdout=subprocess.DEVNULL, start_new_session=True)
        if not kills:
            assert process.wait() == 0
            return (folder / "loss.parquet").read_bytes()
        wanted = len(list(folder.glob("points/*"))) + draw.randint(1, points)
        while process.poll() is None and len(list(folder.glob("points/*"))) < wanted:
            time.sleep(0.05)
        time.sleep(draw.uniform(0.0, 4.0))
        how = draw.choice(["end", "kill", "worker", "chunk"])
        workers_now = children(process.pid)
        if how == "worker" and workers_now:
            os.kill(draw.choice(workers_now), signal.SIGKILL)  # the driver goes on
            time.sleep(draw.uniform(0.0, 4.0))
        kills -= 1
        if process.poll() is None:
            process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        process.wait()
        kept = sorted(folder.glob("points/*"))
        if how == "chunk" and kept:
            draw.choice(kept).unlink()


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
        except (OSError, ValueError):
            continue
    return found


def check(folder: Path, images: Path, points: int, *, kills: int, steps: int = 30) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "real_net.py").write_text(CODE)
    os.environ["MAP_IMAGES"] = str(images)
    if not (folder / "weights.pt").exists():
        subprocess.run([sys.executable, "-c", f"import real_net; real_net.train({steps})"], cwd=folder, check=True)
    stopped = made(folder / "stopped", folder, 2, points, kills=kills, seed=0)
    whole = made(folder / "whole", folder, 1, points, kills=0, seed=0)
    assert stopped == whole


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the kills are aimed with /proc")
@pytest.mark.parametrize(("points", "kills"), [(5, 3), (51, 8)])
def test_a_map_of_resnet20_stopped_at_random_equals_the_uninterrupted_one(
    points: int, kills: int, tmp_path: Path, real_data: Path
) -> None:
    check(tmp_path, real_data, points, kills=kills)
