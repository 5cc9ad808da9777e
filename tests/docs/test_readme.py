"""The documents say what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_make_target_that_the_documents_name_exists() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\bmake ([a-z][a-z0-9-]*)", README + contributing))
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", MAKEFILE, re.MULTILINE))
    assert {"run", "test", "test-slow"} <= named <= targets


def test_every_verb_of_the_command_line_is_in_the_readme_with_its_function() -> None:
    import depthscope
    from depthscope.cli.main import app

    verbs = {command.callback.__name__ for command in app.registered_commands if command.callback}
    rows = dict(re.findall(r"^\| `depthscope (\w+)[^|]*\| `depthscope\.(\w+)\(", README, re.MULTILINE))
    assert set(rows) == verbs
    assert all(callable(getattr(depthscope, function)) for function in rows.values())


FLAGS = {
    "run": "--out --size --seeds --data --device --workers --executor --address --checkpoint-minutes --log "
    "--lang --figures --json",
    "plan": "--size --seeds --calibrate --data --device --workers --json",
    "tune": "--size --grid --seeds --validation --out --write --run --data --device --workers --executor --address "
    "--checkpoint-minutes --log --lang --json",
    "probe": "--input --tokens --vocab --data --loss --classes --measure --device --fail-on --html --lang --json",
    "compare": "--data --loss --validation --names --steps --seeds --batch-size --lr --device --html --lang --json",
    "curvature": "--data --loss --examples --batch-size --what --norm --precision --tol --samples --seed --device "
    "--json",
    "landscape": "--data --loss --examples --batch-size --axes --points --extent --normalise --seed --norm --precision "
    "--hessian-points --hessian-examples --out --device --workers --executor --address --html --svg --png --lang "
    "--json",
    "schema": "",
    "status": "--watch --json",
    "report": "--lang --figures --json",
    "studies": "--json",
}
"""Every flag of the command line: a new one is a decision."""

OF_ALL_OR_OTHERS = {"--help", "--index-url", "--extra", "--logdir"}


def flags() -> dict[str, set[str]]:
    import typer.main

    from depthscope.cli.main import app

    commands: Any = typer.main.get_command(app)
    return {
        verb: {name for parameter in command.params for name in parameter.opts if name.startswith("--")} - {"--help"}
        for verb, command in commands.commands.items()
    }


def test_the_flags_are_these() -> None:
    assert {verb: sorted(names) for verb, names in flags().items()} == {
        verb: sorted(names.split()) for verb, names in FLAGS.items()
    }


def test_the_options_in_the_readme_are_those_of_run() -> None:
    paragraph = README.split("Options of `run`: ")[1].split(";")[0]
    assert set(re.findall(r"`(--[a-z-]+)", paragraph)) == flags()["run"]


def test_every_flag_in_the_readme_is_one_of_its_verb() -> None:
    known = flags()
    calls = re.findall(r"\bdepthscope (\w+)([^|\n#;]*)", README)
    assert len(calls) > 10
    wrong = {
        (verb, flag)
        for verb, rest in calls
        for flag in re.findall(r"--[a-z][a-z-]*", rest)
        if verb in known and flag not in known[verb]
    }
    assert not wrong
    everywhere = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", README))
    assert everywhere - OF_ALL_OR_OTHERS <= {flag for names in known.values() for flag in names}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(((?!https?:)[^)#]+)\)", README))))
def test_every_link_and_picture_is_there(target: str) -> None:
    assert (ROOT / target).exists()


def test_the_readme_opens_with_what_it_is_a_picture_and_the_two_commands() -> None:
    head = README.split("## The real images")[0]
    assert "![" in head
    assert "make run" in head
    assert "make test" in head


def test_the_tables_of_the_readme_were_made() -> None:
    for study in ("spiral", "cifar10"):
        made = re.search(rf"<!-- made: {study} -->\n(.*?)<!-- end -->", README, re.DOTALL)
        assert made
        assert "| verdict | claim |" in made[1]


def test_the_study_in_the_readme_is_one() -> None:
    from depthscope.study.expand import expand
    from depthscope.study.toml import parse

    text, tuning = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert len(expand(parse(text, source="README.md")).runs) == 24
    expand(parse(text + tuning, source="README.md"))


def test_the_claims_and_metrics_of_the_document_are_all_there_are() -> None:
    from depthscope.study.claims import KINDS
    from depthscope.study.expand import expand
    from depthscope.study.landscape import Maps
    from depthscope.study.metrics import SUMMARY
    from depthscope.study.toml import parse

    document = (ROOT / "docs" / "study-files.md").read_text(encoding="utf-8")
    text, tuning, mapped, case = re.findall(r"```toml\n(.*?)```", document, re.DOTALL)
    told = tomllib.loads(mapped)["landscape"]
    assert Maps.model_validate(told) == Maps()
    assert set(told) == set(Maps.model_fields)
    expand(parse(text + tuning, source="study-files.md"))
    expand(parse(text.partition("[parts.main]")[0] + case, source="study-files.md"))
    study = expand(parse(text, source="study-files.md")).study
    assert sorted(claim.kind for claim in study.claims) == sorted(KINDS)
    assert all(f"`{kind}`" in README for kind in KINDS)
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", document, re.MULTILINE))
    assert rows == {name: text.replace("|", "\\|") for name, text in SUMMARY.items()}


def test_no_source_file_is_over_300_lines() -> None:
    long = {path.name: n for path in (ROOT / "src").rglob("*.py") if (n := len(path.read_text().splitlines())) > 300}
    assert not long


def test_contributing_fits_one_screen() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 45
