"""The JSON Schema of a study file: it takes what `parse` takes, and refuses much of what `parse` refuses."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from tests.study.test_faults import FAULTS, put

from depthscope.core.errors import FaultsError
from depthscope.study.catalog import CATALOG
from depthscope.study.claims import KINDS
from depthscope.study.expand import expand
from depthscope.study.run import RunSpec
from depthscope.study.schema import study_schema
from depthscope.study.study import StudySpec
from depthscope.study.toml import bundled, dump, load, parse, read_source, sizes_of

ROOT = Path(__file__).resolve().parents[2]
Document = dict[str, Any]

SCHEMA = study_schema()
Draft202012Validator: Any = importlib.import_module("jsonschema").Draft202012Validator  # it comes with altair
VALIDATOR = Draft202012Validator(SCHEMA)


def told(document: Document) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(document)]


def test_the_committed_file_is_what_the_code_makes() -> None:
    # Mend with: depthscope schema > docs/study.schema.json
    kept = (ROOT / "docs" / "study.schema.json").read_text(encoding="utf-8")
    assert kept == json.dumps(SCHEMA, indent=2, ensure_ascii=False) + "\n"


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


def examples() -> list[Any]:
    texts = [pytest.param(read_source(name)[1], id=name) for name in bundled()]
    texts += [
        pytest.param(dump(load(name, size)), id=f"{name}-{size}")
        for name in bundled()
        for size in sizes_of(read_source(name)[1])
    ]
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for at, text in enumerate(re.findall(r"```toml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)):
            if re.search(r"^name = ", text, re.MULTILINE) and "[base]" in text:
                texts.append(pytest.param(text, id=f"{path.name}-{at}"))
    return texts


@pytest.mark.parametrize("text", examples())
def test_studies_of_ours_keep_it(text: str) -> None:
    parse(text, source="example")
    assert told(tomllib.loads(text)) == []


def test_the_document_of_the_tests_keeps_it(document: Document) -> None:
    assert told(document) == []
    document["resources"] = {"gpus": 0.5}
    document["parts"]["main"]["resources"] = {"cpus": 2, "memory_gb": 4.5}
    document["parts"]["flow"]["base"] |= {"data_options.noise": 0, "measures": ["my.package:probe", "layers"]}
    document["base"] |= {"family": "my:net", "data": "my.package:data", "data_options": {"mine": [1, 2]}}
    document["tuning"] = {"grid": [1, 0.1], "validation": 10, "seeds": [7, 8], "metric": "validation_loss"}
    document["sizes"]["large"]["parts"] = {"main": {"axes": {"depth": [2]}}}
    assert told(document) == []


SEEN_BY_PARSE_ALONE = (
    # They take the rest of the file, the run that comes of it, or more than JSON can say.
    "used twice", "unknown arm", "unknown part", "unknown axis", "unknown size", "no run has", "give epochs or steps",
    "sets shortcut too", "missing; every run", "wanted a finite number", "holds 4 twice", "control character",
    "takes 'none'", "is the axis", "unknown option of", "a run has no such value", "has one value of", "of numbers",
    "would be lost", "no axis can vary", "is set by [tuning]", "is run by part", "was used to choose", "[tuned] says",
    "share of one GPU", "no value that was tried", "could never", "means the same runs", "is the same as `first`",
    "is the shallower", "no unit of", "unknown number among", "no part of the study",
    "(num_runs) or less", "stands twice in the list", "arms or more to rank",
)  # fmt: skip


@pytest.mark.parametrize(("where", "value", "path", "says"), FAULTS)
def test_what_it_refuses(document: Document, where: str, value: Any, path: str, says: str) -> None:
    put(document, where, value)
    with pytest.raises(FaultsError) as error:
        expand(parse(tomli_w.dumps(document), source="mine"))
    message = error.value.faults[0][1]
    if (value is None or message.startswith("missing;")) and "sizes" in document:
        del document["sizes"]  # a size may bring what the rest leaves out
    if any(words in message for words in SEEN_BY_PARSE_ALONE) or (path == "tuning.grid" and "-1" in message):
        return  # (what a value of the grid must be, the tuned field says)
    assert told(json.loads(json.dumps(document, default=str))), message


def test_every_name_and_key_is_explained() -> None:
    defs = SCHEMA["$defs"]
    for name in ("Part", "Arm", "Tuning", "Tuned", "Choice", "Score", "ResourceTable", "Run"):
        assert defs[name]["description"], name
        assert all("description" in each for each in defs[name]["properties"].values()), name
    assert all("description" in each for each in SCHEMA["properties"].values())
    assert set(SCHEMA["properties"]) == {*StudySpec.model_fields, "sizes"}
    assert set(defs["Run"]["properties"]) >= set(RunSpec.model_fields) - {"seed"}
    for kind, names in CATALOG.items():
        field = defs["Run"]["properties"]["measures" if kind == "measure" else kind]
        members = (field["items"] if kind == "measure" else field)["anyOf"]
        assert [each["const"] for each in members if "const" in each] == list(names)
    for tag, model in KINDS.items():
        claim = defs[model.__name__]
        assert claim["properties"]["kind"] == {"const": tag, "type": "string"}
        assert claim["description"].split()[0] in " ".join((model.__doc__ or "").split())


def test_nothing_of_python_shows() -> None:
    text = json.dumps(SCHEMA)
    assert '"null"' not in text
    assert "None" not in text
    assert "Attributes" not in text
