"""Made-up studies, judged once, and one browser for all its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from tests.report import chrome, synthetic

from depthscope.analysis.finding import Finding
from depthscope.analysis.findings import judge
from depthscope.analysis.table import Results
from depthscope.report import render

COMMAND = "depthscope run cifar10 --size quick"


@dataclass(frozen=True)
class Study:
    """Results with their findings, and the pages made of them."""

    results: Results
    findings: tuple[Finding, ...]
    pages: dict[str, bytes] = field(default_factory=dict)

    def page(self, **options: Any) -> bytes:
        """The page, made once for each set of options."""
        key = repr(options)
        if key not in self.pages:
            self.pages[key] = render(self.results, self.findings, command=COMMAND, **options)
        return self.pages[key]


StudyOf = Callable[[Callable[[], Results]], Study]


def judged(results: Results) -> Study:
    return Study(results, judge(results))


@pytest.fixture(scope="session")
def study_of() -> StudyOf:
    """What `judged` gives for what a function makes, once for each function."""
    return cache(lambda make: judged(make()))


@pytest.fixture(scope="session")
def cifar(study_of: StudyOf) -> Study:
    return study_of(synthetic.cifar)


@pytest.fixture(scope="session")
def spiral() -> Study:
    """All five parts, with fewer depths and seeds than the real one."""
    return judged(synthetic.spiral(sweep=(2, 8, 24, 48), seeds=3))


@pytest.fixture(scope="session")
def partial() -> Study:
    """Four runs missing, one diverged."""
    return judged(synthetic.cifar(drop=4, diverge=True))


@pytest.fixture(scope="session")
def browser() -> Iterator[chrome.Chrome]:
    if chrome.executable() is None:
        pytest.skip("no Chromium here: install `chromium` to test the page in a browser")
    with chrome.Chrome() as found:
        yield found
