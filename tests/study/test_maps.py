"""The `[landscape]` table of a study: read and written, laid over by sizes, and refused where no map can be made."""

from __future__ import annotations

import re

import pytest

from depthscope.core.errors import FaultsError
from depthscope.core.hashing import digest
from depthscope.study.expand import expand
from depthscope.study.landscape import Maps, MapSpec
from depthscope.study.selection import selection_study
from depthscope.study.study import StudySpec, with_seeds
from depthscope.study.toml import dump, parse

TEXT = """
name = "mapped"
title = { en = "Mapped" }
seeds = 2
[base]
backend = "torch"
family = "cifar_resnet"
depth = 8
width = 4
activation = "relu"
norm = "batch"
init = "he_fan_in"
data = "images"
epochs = 1
batch_size = 16
measures = ["weights"]
[parts.one]
axes = { depth = [8, 14] }
arms = [{ name = "plain" }, { name = "A", set = { shortcut = "A" } }]
[parts.two]
arms = [{ name = "plain", set = { width = 5 } }]
"""
CLAIM = """
[[claims]]
name = "rough"
text = { en = "It is rough." }
part = "one"
metric = "landscape_roughness"
kind = "level"
cells = [{ arm = "plain" }]
statistic = "median"
expect = "at_least"
than = 0.1
"""


def study_of(table: str = "", text: str = TEXT, size: str | None = None) -> StudySpec:
    return parse(f"{text}\n{table}", source="mapped.toml", size=size)


def faults(table: str, text: str = TEXT) -> list[tuple[str, str]]:
    try:
        expand(study_of(table, text))
    except FaultsError as error:
        return list(error.faults)
    return []


def test_a_study_without_maps_is_what_it_was() -> None:
    study = study_of()
    assert study.landscape is None
    assert expand(study).maps == {}
    fields = study.model_dump(mode="json")
    del fields["landscape"]  # as digests were written before there were maps
    for part in fields["parts"].values():
        del part["ranked"]
        for arm in part["arms"]:
            del arm["at"]
    assert study.digest == digest(fields)
    assert study_of("[landscape]").digest != study.digest


@pytest.mark.parametrize("table", ["[landscape]", '[landscape]\nplanes = 3\npoints = 5\nparts = ["one"]\nextent = 0.5'])
def test_what_is_dumped_reads_back_equal(table: str) -> None:
    study = study_of(table)
    assert study.landscape is not None
    assert parse(dump(study), source="again.toml") == study
    assert with_seeds(study, 3).landscape == study.landscape


def test_sizes_lie_over_it() -> None:
    text = "[landscape]\npoints = 51\nplanes = 2\n[sizes.quick.landscape]\npoints = 5\n[sizes.full]\nseeds = 1"
    assert study_of(text, size="quick").landscape == Maps(points=5, planes=2)
    assert study_of(text, size="full").landscape == Maps(points=51, planes=2)


def test_each_run_of_its_parts_has_a_map_a_plane() -> None:
    plan = expand(study_of('[landscape]\nplanes = 2\npoints = 5\nparts = ["one"]'))
    ones = [cell.run_id for cell in plan.cells if cell.part == "one"]
    assert list(plan.maps) == ones
    assert len(ones) == 8
    assert set(plan.maps.values()) == {(MapSpec(points=5, seed=0), MapSpec(points=5, seed=1))}
    assert list(expand(study_of("[landscape]")).maps) == list(plan.runs)


def test_eigenvalues_are_found_on_the_first_planes_alone() -> None:
    maps = Maps(planes=3, hessian_planes=2, hessian_points=5)
    assert [(each.seed, each.hessian_points) for each in maps.specs()] == [(0, 5), (1, 5), (2, 0)]


def test_runs_stay_the_runs_that_they_were() -> None:
    assert list(expand(study_of("[landscape]")).runs) == list(expand(study_of()).runs)


WITHOUT = TEXT.replace('measures = ["weights"]\n', "")


@pytest.mark.parametrize(
    ("table", "text", "path", "words"),
    [
        ('[landscape]\nparts = ["on"]', TEXT, "landscape.parts.0", "unknown part 'on'"),
        ('[landscape]\nparts = ["one", "one"]', TEXT, "landscape.parts.1", "'one' is there twice"),
        ("[landscape]", WITHOUT, "landscape", "parts 'one', 'two': .* put 'weights' among the measures of its runs"),
        ('[landscape]\nparts = ["two"]', WITHOUT, "landscape", "part 'two': .* put 'weights'"),
        (
            '[landscape]\ndirections = "trajectory"',
            TEXT.replace("epochs = 1", "steps = 0"),
            "landscape",
            "a run of 0 steps has no path",
        ),
        ("[landscape]\npoint = 5", TEXT, "landscape.point", "unknown key 'point'. Did you mean 'points'"),
        ("[landscape]\npoints = 4", TEXT, "landscape.points", "wanted an odd number"),
        (CLAIM, TEXT, "claims.0.metric", r"the runs of part 'one' have no maps; give the study a \[landscape\]"),
        (f'{CLAIM}[landscape]\nparts = ["two"]', TEXT, "claims.0.metric", r"name the part in landscape\.parts"),
        (
            CLAIM.replace("landscape_roughness", "landscape_nonconvex_share") + "[landscape]",
            TEXT,
            "claims.0.metric",
            r"no eigenvalues are asked for; give landscape\.hessian_points",
        ),
    ],
)
def test_what_cannot_be_mapped_is_told_by_the_plan(table: str, text: str, path: str, words: str) -> None:

    found = faults(table, text)
    assert [each for each, _ in found] == [path]
    assert re.search(words, found[0][1]), found


def test_a_laboratory_has_no_maps() -> None:
    text = TEXT.partition("[base]")[0] + (
        '[base]\nbackend = "numpy"\nfamily = "mlp"\ndepth = 2\nwidth = 4\nactivation = "tanh"\ninit = "gaussian"\n'
        'data = "spiral"\nsteps = 3\n[parts.one]\narms = [{ name = "plain" }]\n'
    )
    ((path, words),) = faults("[landscape]", text)
    assert (path, words[:43]) == ("landscape", "part 'one': the laboratory's runs have no m")


def test_a_claim_about_maps_that_are_asked_for_is_welcome() -> None:
    assert faults(f"{CLAIM}[landscape]") == []


def test_runs_that_choose_a_number_are_not_mapped() -> None:
    tuning = "[tuning]\ngrid = [0.01, 0.1]\nseeds = [101]\nvalidation = 8\n"
    study = study_of(f"[landscape]\n{tuning}")
    assert study.tuning is not None
    assert selection_study(study).landscape is None


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("hessian_points = 3\nhessian_planes = 5\nplanes = 2", "at most the 2 of planes, got 5"),
        ("hessian_planes = 3\nplanes = 3", "give hessian_points too"),
        ("points = 5\nhessian_points = 7", "no finer than the map's own 5 points, got 7"),
        ('directions = "trajectory"\nnormalise = "none"', "is for random directions alone"),
    ],
)
def test_what_would_change_nothing_is_refused(table: str, told: str) -> None:
    with pytest.raises(FaultsError, match=told):
        study_of(f"[landscape]\n{table}")
    study_of('[landscape]\ndirections = "trajectory"\nnormalise = "filter"\nhessian_planes = 1\nparts = []')


def test_a_path_of_one_step_has_no_plane() -> None:
    text = TEXT.replace("epochs = 1", "steps = 1")
    assert [
        told
        for _, told in faults('[landscape]\ndirections = "trajectory"', text)
        if "a run of 1 step has no path" in told
    ]
