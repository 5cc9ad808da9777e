"""What `plan` says of each claim: which runs it compares, what is averaged, by how many seeds."""

from __future__ import annotations

from typing import Any

import tomli_w

from depthscope.study.expand import expand
from depthscope.study.outline import outlines
from depthscope.study.toml import bundled, load, parse, read_source, sizes_of


def lines(document: dict[str, Any]) -> list[str]:
    return [str(each) for each in outlines(expand(parse(tomli_w.dumps(document), source="mine.toml", size="large")))]


def test_each_kind_says_what_it_compares(document: dict[str, Any]) -> None:
    document["claims"][0]["metric"] = "train_accuracy"
    for arm in document["parts"]["main"]["arms"]:
        arm["set"].pop("lr", None)
    document["parts"]["main"]["axes"]["lr"] = [0.1, 0.2]
    free = "[mean of 2 cells: lr free]"
    deep, shallow = f"plain depth 8 {free}", f"plain depth 4 {free}"
    assert lines(document) == [
        f"one (exploratory): train_accuracy of {deep} minus {shallow}; 4 seeds (where all values are equal it needs 6 "
        "to decide).",
        f"two (exploratory): train_loss of ({deep} minus {shallow}) minus (skip depth 8 {free} minus skip depth 4 "
        f"{free}); 4 seeds.",
        "three (exploratory): train_loss of skip [each of 4 cells: depth, lr free]; 4 seeds.",
        "four (exploratory): train_loss of plain, over what theory gives; 2 seeds.",
        f"five (exploratory): train_loss of {deep}, no worse than {shallow} by more than 0.1; 4 seeds.",
        f"six (exploratory): train_loss of plain {free}, step by step along depth; 4 seeds.",
        f"seven (exploratory): train_loss of any of 2 ({deep}, skip depth 8 {free}) minus {shallow}; 4 seeds.",
    ]


def test_a_family_of_confirmatory_claims_needs_more_seeds(document: dict[str, Any]) -> None:
    for claim in document["claims"][:2]:
        claim |= {"metric": "train_accuracy", "confirmatory": True}
    assert [each.seeds_if_equal for each in outlines(expand(parse(tomli_w.dumps(document), source="x")))][:2] == [7, 7]


def test_every_claim_of_the_bundled_studies_has_its_line() -> None:
    for name in bundled():
        for size in sizes_of(read_source(name)[1]):
            plan = expand(load(name, size))
            assert all(each.num_seeds > 0 and each.compares for each in outlines(plan))
