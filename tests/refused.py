"""Whether data were refused, and in which words for a user."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pytest

from tare.analysis.refusals import NoAnswer
from tare.report.sentences.refusal_words import refusal_text


@contextlib.contextmanager
def refused(why: str) -> Iterator[None]:
    """What is in it raises `NoAnswer`, whose sentence this pattern finds."""
    with pytest.raises(NoAnswer) as caught:
        yield
    text = refusal_text(caught.value.refusal)
    assert re.search(why, text), text
