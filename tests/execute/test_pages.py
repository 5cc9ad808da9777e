"""Memory that a worker keeps from one step to the next."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Blocks of 32 MB, which glibc takes from the system one by one unless it is told to keep them.
FAULTS = """
import resource, sys
import numpy as np
from depthscope.execute.pages import keep_pages

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        np.ones(4 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
left_alone = faults()
if not keep_pages():
    sys.exit(3)
faults()
print(faults(), left_alone)
"""


def test_pages_that_were_given_back_are_used_again() -> None:
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("this system's C library is not glibc")
    assert done.returncode == 0, done.stderr
    kept, left_alone = map(int, done.stdout.split())
    assert kept < left_alone / 20
