from __future__ import annotations

import re
from importlib import resources

import pytest
from tests.report.conftest import Study

from depthscope.core.errors import UserError
from depthscope.report import bibtex, citations
from depthscope.report.citations import BIBTEX
from depthscope.study.catalog import CATALOG
from depthscope.study.expand import expand
from depthscope.study.toml import bundled, load


def test_every_source_of_the_catalogue_and_of_the_bundled_studies_has_an_entry() -> None:
    named = {key for names in CATALOG.values() for entry in names.values() for key in entry.sources}
    for study in bundled():
        named |= set(load(study).sources)
    assert named <= set(BIBTEX)


def test_no_key_stands_twice() -> None:
    text = (resources.files("depthscope.report") / "assets" / "sources.bib").read_text(encoding="utf-8")
    assert len(re.findall(r"^@", text, flags=re.M)) == len(BIBTEX)


def test_entries_are_well_formed_and_carry_their_own_key() -> None:
    for key, entry in BIBTEX.items():
        assert re.match(rf"@(article|inproceedings|misc|techreport)\{{{key},\n", entry)
        assert entry.count("{") == entry.count("}")
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+) = ", entry, flags=re.M))


@pytest.mark.parametrize(
    ("key", "eprint"),
    [
        ("he2016resnet", "1512.03385"),
        ("he2015delving", "1502.01852"),
        ("yang2019meanfield", "1902.08129"),
        ("poole2016exponential", "1606.05340"),
        ("schoenholz2017deep", "1611.01232"),
        ("zhang2022tat", "2203.08120"),
        ("hayou2021stable", "2010.12859"),
        ("xiao2018dynamical", "1806.05393"),
    ],
)
def test_eprints(key: str, eprint: str) -> None:
    assert f"eprint = {{{eprint}}}" in BIBTEX[key]


def test_a_study_cites_just_what_it_uses(cifar: Study, spiral: Study) -> None:
    of_cifar, of_spiral = citations(cifar.results.plan), citations(spiral.results.plan)
    assert {"he2016resnet", "krizhevsky2009cifar", "ioffe2015batchnorm", "goyal2017accurate"} <= set(of_cifar)
    assert "kingma2015adam" not in of_cifar
    assert {"kingma2015adam", "saxe2014exact"} <= set(of_spiral)
    assert "krizhevsky2009cifar" not in of_spiral
    assert len(set(of_cifar)) == len(of_cifar)


def test_bibtex_of_an_unknown_key_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="he2016resnet"):
        bibtex(["he2016resnets"])
    assert bibtex([]) == ""


def test_expanding_needs_no_torch_to_cite() -> None:
    assert citations(expand(load("cifar10", "smoke")))
