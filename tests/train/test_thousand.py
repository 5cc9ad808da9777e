"""A step of each network of a thousand layers, at the size of the papers, in a process of its own: under 4 GB."""

from __future__ import annotations

import subprocess
import sys

import pytest

STEP = """
import resource, sys, torch
from depthscope.models.convnet import cifar_resnet
from depthscope.models.preact import preact_resnet

make, parameters = {
    "resnet-1202": (lambda: cifar_resnet(depth=1202, shortcut="A", checkpointing=True), 19_421_274),
    "preact-1001": (lambda: preact_resnet(depth=1001, bottleneck=True, checkpointing=True), 10_327_706),
}[sys.argv[1]]
model = make()
assert sum(each.numel() for each in model.parameters()) == parameters
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(32, 3, 32, 32), torch.arange(32) % 10
torch.nn.functional.cross_entropy(model(x), y).backward()
optimizer.step()
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(used * (1 if sys.platform == "darwin" else 1024))  # bytes on macOS, KiB elsewhere
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no resource module")
@pytest.mark.parametrize("name", ["resnet-1202", "preact-1001"])
def test_the_whole_process_stays_under_4_gb_at_batch_32(name: str) -> None:
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-c", STEP, name], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 4e9
