"""`tare score`: shows a campaign in the figures by which the studies sum up."""

from __future__ import annotations

import json
from pathlib import Path

from tare.cli.console import emit
from tare.cli.report import to_read
from tare.features.studies.analysis import profile as profiles
from tare.features.studies.analysis.sheet import score as scored
from tare.features.studies.views.score_tables import doubt_of, render, to_data
from tare.report.campaign.report_builder import timed
from tare.report.sentences.refusal_words import refusals_told
from tare.store import read_store


def show_scores(file: Path, profile: Path | None, *, as_json: bool) -> None:
    """Print a campaign's scores by an evaluation profile; None: the one that comes with tare."""
    evaluation = profiles.load(profile)
    with read_store(file) as store, store.snapshot():
        record = store.record
        samples = store.samples()
        with refusals_told():
            sheet = scored(record, samples, store.trials(), evaluation)  # says first what there is no score of
            sheet = scored(record, samples, store.trials(), evaluation, doubt_of(timed(store, samples).results))
    if as_json:
        emit(json.dumps(to_data(sheet, evaluation), indent=2))
        return
    to_read().print(render(sheet, evaluation, record.baseline))
