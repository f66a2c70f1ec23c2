"""What the page says around its tables: which sentence is chosen, and that values in it are escaped."""

from __future__ import annotations

import pytest

from tare.features.kernel.words import footprint_page_words as footprint_page
from tare.features.studies.words import score_words as scores
from tare.report.model.fact_models import Contamination
from tare.report.sentences import page_method, page_words
from tare.report.sentences.numbers import day, size, some, when

EVIL = "<script>"


def test_values_in_sentences_with_markup_are_escaped() -> None:
    texts = [
        page_words.noise_floor(EVIL),
        page_words.exposure_unread([EVIL], EVIL),
        scores.note(EVIL, EVIL),
        footprint_page.frequencies(EVIL),
        *page_method.paragraphs(EVIL, 1),
    ]
    assert all(EVIL not in str(text) for text in texts)
    assert sum("&lt;script&gt;" in str(text) for text in texts) > 5


@pytest.mark.parametrize(
    ("told", "n_ticks", "text"),
    [
        ([], 9, "2 of 7 trials are marked as contaminated. They are kept;"),
        (["steal: 1", "swap: 1"], 0, "2 of 7 trials are marked as contaminated (steal: 1; swap: 1). They are kept;"),
    ],
)
def test_contaminated_trials_are_told_with_their_reasons(told: list[str], n_ticks: int, text: str) -> None:
    marked = Contamination(steal_threshold=0.1, n_trials=2, n_all_trials=7, told=told, n_ticks=n_ticks)
    assert page_words.contaminated(marked).startswith(text)
    assert ("no telemetry" in page_words.contaminated(marked)) is (n_ticks == 0)


def test_open_doors_have_their_reasons() -> None:
    assert page_words.open_doors({}) == "nothing is declared"
    assert page_words.open_doors({"*": "no isolation"}) == "every door: no isolation"
    assert page_words.open_doors({"a": "x", "b": "y"}) == "a: x; b: y"


def test_the_first_names_and_how_many_more() -> None:
    assert some(["a", "b"], 2) == "a, b"
    assert some(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert page_words.not_told_apart(["a", "b", "c", "d"]) == "not told apart: a, b, c and 1 more"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (512, "512 B"),
        (1536, "2 KiB"),
        (200 << 20, "200 MiB"),
        (3 << 29, "1.5 GiB"),
        (5 << 40, "5,120.0 GiB"),
    ],
)
def test_bytes_have_their_unit(value: int | None, text: str) -> None:
    assert size(value) == text


def test_a_time_is_in_utc() -> None:
    assert (day(0), when(3_600)) == ("1970-01-01", "1970-01-01 01:00 UTC")
