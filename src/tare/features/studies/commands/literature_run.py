"""`tare literature`: shows what the published studies found, and what of it follows from their figures."""

from __future__ import annotations

import json

import typer

from tare.cli.console import emit
from tare.cli.exit_codes import ExitCode
from tare.cli.report import to_read
from tare.features.studies import literature as library
from tare.features.studies.analysis.published import check as check_again
from tare.features.studies.views.literature_tables import checks, checks_to_data, overview, shown, to_csv, to_data


def show_studies(study: str | None, *, check: bool, as_json: bool, as_csv: bool) -> None:
    """Print a study (None: all), or with ``check`` what follows from its figures; exits 1 for an unlisted slip."""
    chosen = [library.load(study)] if study is not None else library.studies()
    if check:
        results = [check_again(study) for study in chosen]
        if as_json:
            emit(json.dumps(checks_to_data(results), indent=2, ensure_ascii=False))
        else:
            to_read().print(checks(results))
        raise typer.Exit(ExitCode.DONE if all(result.good for result in results) else ExitCode.NO)
    if as_json:
        emit(json.dumps(to_data(chosen), indent=2, ensure_ascii=False))
    elif as_csv:
        emit(to_csv(chosen), end="")
    else:
        to_read().print(overview(chosen) if study is None else shown(chosen[0]))
