"""What a reader reads, all folded parts open: no trace of the program, one language, the same bytes twice."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import pytest
from tests.report import strange, synthetic
from tests.report.conftest import Study, StudyOf, judged

from depthscope.analysis.finding import Estimate
from depthscope.report import judged as claims
from depthscope.report import render
from depthscope.report.citations import BIBTEX, citations, short
from depthscope.report.words import Words
from depthscope.study.metrics import SUMMARY
from depthscope.study.run import RunSpec

READ_ALOUD = ("aria-label", "data-label", "data-play", "data-pause", "data-done", "alt", "title")


class _Reader(HTMLParser):
    """Text and spoken attributes, folded or not; no scripts, no styles, no blocks of code."""

    def __init__(self, also: tuple[str, ...]) -> None:
        super().__init__()
        self.found: list[str] = []
        self._unread = ("script", "style", "pre", *also)
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in self._unread
        self.found += [value for name, value in attrs if name in READ_ALOUD and value]

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in self._unread

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.found.append(data)


def read(page: bytes, *, without: tuple[str, ...] = ()) -> str:
    reader = _Reader(without)
    reader.feed(page.decode("utf-8"))
    return " ".join(" ".join(reader.found).split())


STUDIES = ["cifar", "spiral", "partial"]
TRACES = r"built-in|object at| at 0x|\bNone\b|\bnan\b|[Uu]ndefined|\{\{|\}\}|\{\w+\}|<\w+ of "


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", STUDIES)
def test_no_trace_of_the_program_is_read(name: str, lang: str, request: pytest.FixtureRequest) -> None:
    study: Study = request.getfixturevalue(name)
    assert re.findall(f".{{0,40}}(?:{TRACES}).{{0,40}}", read(study.page(lang=lang))) == []


@pytest.mark.parametrize("make", strange.ALL)
def test_studies_at_the_edges_make_pages(make: strange.Make, study_of: StudyOf) -> None:
    study = study_of(make)
    for lang in ("en", "zh"):
        page = study.page(lang=lang)
        assert re.findall(f".{{0,40}}(?:{TRACES}).{{0,40}}", read(page)) == []
        assert len(page) < 5_000_000


def test_two_renders_of_the_same_results_are_the_same_bytes(study_of: StudyOf) -> None:
    for make in (synthetic.cifar, synthetic.hostile):
        assert study_of(make).page() == judged(make()).page()


def test_every_value_by_seed_is_read(cifar: Study) -> None:
    text = read(cifar.page())
    for value in cifar.findings[0].estimates[0].values:
        assert f"{value:.3f}".replace("-", "−") in text


# Names, units, symbols, and words that stand in Chinese text as they are; `quick` is a size, `inf` a number.
KEPT = (
    "Depthscope Python NumPy PyTorch BibTeX JavaScript Linux CPU ResNet CIFAR-10 Clopper-Pearson He et al "
    "nats CI UTC epoch dL dh dW lr ln K x F W h t n quick inf cpu ReLU "
    "L SGD Adam tanh float32 float64 g_z Hedges Holm Bonferroni "
    "N k W1 W2 hW hW1 b b1 b2 act gain fan_in fan_out"
)


@pytest.mark.parametrize("name", STUDIES)
def test_a_chinese_page_is_chinese(name: str, request: pytest.FixtureRequest) -> None:
    study: Study = request.getfixturevalue(name)
    results = study.results
    kept = {*KEPT.split(), *RunSpec.model_fields, *SUMMARY, *results.study.parts}
    kept |= {arm.name for _, arm in results.study.arms()}
    kept |= {each for arm in kept for each in re.split(r"[-_]", arm)}
    text = read(study.page(lang="zh"), without=("code",))
    for paper in citations(results.plan):  # authors and titles stand as they were published
        for each in short(BIBTEX[paper], Words("zh")("arms.et_al")):
            text = text.replace(each, " ")
    text = re.sub(
        r"\([^()]*\.(?:weight|bias)[^()]*\)|[\w.]+\.(?:weight|bias)|\b[0-9a-f]{12,}\b|[\d.]+e[-−]\d+", " ", text
    )
    text = text.replace(synthetic.PROVENANCE.platform, "").replace(synthetic.PROVENANCE.processor, "")
    left = [word for word in re.findall(r"[A-Za-z][A-Za-z0-9_-]*", text) if word not in kept]
    assert " ".join(sorted(set(left))) == ""


def test_ends_of_runs_are_told_in_chinese(study_of: StudyOf) -> None:
    text = read(study_of(strange.all_diverged).page(lang="zh"))
    assert "第 17 步的训练损失为 inf" in text
    assert "减小 lr、延长预热，或加入归一化" in text
    failed = read(study_of(strange.some_failed).page(lang="en"))
    assert "RuntimeError: out of memory (forward, line 40)" in failed


def _with_digests(study: Study, digests: list[str | None]) -> str:
    records = {
        run_id: record.model_copy(update={"claims_digest": digests[number % len(digests)]})
        for number, (run_id, record) in enumerate(study.results.records.items())
    }
    return claims.declared(type(study.results)(plan=study.results.plan, records=records, load_table=_none), Words("en"))


def _none(run_id: str, table: str) -> None:
    return None


def test_claims_are_called_declared_before_the_runs_only_where_every_record_says_so(cifar: Study) -> None:
    now = cifar.results.study.claims_digest
    assert _with_digests(cifar, [now]).startswith("The claims were declared before the runs")
    changed = _with_digests(cifar, ["other", now, now])
    assert "changed or added after 6 of 18 runs" in changed
    unknown = _with_digests(cifar, [None, now])
    assert "not recorded for 9 of 18 runs" in unknown
    both = _with_digests(cifar, [None, "other", now])
    assert "after 6 of 18" in both
    assert "not recorded for 6 of 18" in both
    for text in (changed, unknown, both):
        assert "were declared before the runs:" not in text


def test_the_recipe_is_told_in_the_studys_own_words_and_else_not_at_all(cifar: Study) -> None:
    text = read(cifar.page())
    assert "by design: shortcut, zero_last_gamma." in text
    assert "none was tuned" not in text
    told = cifar.results.study.model_copy(update={"recipe": {"en": "From a grid of five."}})
    silent = cifar.results.study.model_copy(update={"recipe": None})
    pages = []
    for study in (told, silent):
        results = type(cifar.results)(
            plan=dataclasses.replace(cifar.results.plan, study=study),
            records=cifar.results.records,
            load_table=cifar.results.load_table,
        )
        pages.append(read(render(results, cifar.findings, command="x")))
    assert "How the recipe was chosen: From a grid of five." in pages[0]
    assert "recipe was chosen" not in pages[1]


def test_an_interval_is_called_by_its_own_coverage(cifar: Study) -> None:
    wide = cifar.findings[0].model_copy(
        update={"estimates": (cifar.findings[0].estimates[0].model_copy(update={"level": 0.975}),)}
    )
    card = claims.claims(cifar.results, [wide], Words("en"))[0]
    assert card["rows"][0]["method"] == "paired t, 97.5%"
    spec = card["draw"]().to_dict()
    titles = [tip["title"] for layer in spec["layer"] for tip in layer["encoding"].get("tooltip", ())]
    assert "97.5% from" in titles
    assert "95% from" not in titles


def test_running_averages_stand_beside_clean_figures_and_what_a_claim_uses_is_shown(cifar: Study) -> None:
    page = cifar.page().decode()
    table = page[page.index('<table class="arms">') :]
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table[: table.index("</thead>")])
    wanted = ["train accuracy", "train accuracy, last epoch", "train loss (nats)", "train loss, last epoch (nats)"]
    assert heads[4:8] == wanted
    for claim in cifar.results.study.claims:
        assert Words("en").metric(claim.metric) in heads


def test_cpu_time_is_a_sum_and_not_called_wall_clock(cifar: Study) -> None:
    text = read(cifar.page())
    total = sum(record.timings.cpu_s for record in cifar.results.records.values())
    assert f"CPU time, sum of the runs' own {total / 60:.1f} min" in text


def test_the_confirmatory_claim_comes_first_and_in_full(cifar: Study) -> None:
    page = cifar.page().decode()
    section = page[page.index('<section id="claims">') :]
    section = section[: section.index("</section>")]
    first, rest = section.split('<div class="briefs wide">')
    for finding in cifar.findings:
        assert (finding.text["en"] in first) == finding.confirmatory
        assert (finding.text["en"] in rest) != finding.confirmatory
    assert (
        rest.count("<details") == rest.count('class="strip"') == sum(not each.confirmatory for each in cifar.findings)
    )


def test_tiles_are_seeds(spiral: Study) -> None:
    finding = next(each for each in spiral.findings if each.estimates and each.estimates[0].unit == "fraction")
    card = claims.claims(spiral.results, [finding], Words("en"))[0]
    judged_estimate: Estimate = finding.estimates[0]
    assert len(card["waffle"]) == judged_estimate.n == len(judged_estimate.values)
    assert "seeds" in card["short"]


def test_a_narrow_axis_has_the_digits_that_tell_its_ticks_apart_and_differences_are_in_points(cifar: Study) -> None:
    finding = next(each for each in cifar.findings if each.estimates[0].unit == "accuracy" and each.num_judged == 1)
    narrow = finding.estimates[0].model_copy(update={"value": 0.01, "low": 0.004, "high": 0.016, "values": ()})
    narrowed = finding.model_copy(update={"estimates": (narrow,), "margin": 0.02, "kind": "difference"})
    card = claims.claims(cifar.results, [narrowed], Words("en"))[0]
    axis = card["draw"]().to_dict()["layer"][0]["encoding"]["x"]["axis"]
    assert axis["labelExpr"] == "format(100 * datum.value, '.1f')"
    assert axis["title"].endswith(", in points")


def test_a_wider_interval_says_why(cifar: Study) -> None:
    finding = next(each for each in cifar.findings if each.kind == "difference_in_differences")
    step = finding.estimates[0].model_copy(update={"level": 0.975})
    steps = finding.model_copy(
        update={"kind": "monotone", "verdict": "refuted", "estimates": (step, step), "num_judged": 2}
    )
    told = claims.claims(cifar.results, [steps], Words("en"))[0]["aside"]
    assert told.startswith("97.5% instead of 95%: 2 steps are as many chances to refute the claim")
    supported = steps.model_copy(update={"verdict": "supported"})
    assert "chances" not in claims.claims(cifar.results, [supported], Words("en"))[0]["aside"]
