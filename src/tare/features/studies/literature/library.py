"""The studies that are part of tare, read from their files and checked."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

from pydantic import ValidationError

from tare.errors import UsageError, first_invalid
from tare.features.studies.literature.catalogue import SUFFIX, names
from tare.features.studies.literature.study_model import Study
from tare.suggest import nearest


@functools.cache
def load(name: str) -> Study:
    """Return the study of this name. Raises `UsageError` with the nearest names."""
    if name not in names():
        raise UsageError(f"there is no study {name!r}", fix=nearest(name, names()))
    text = (
        resources.files("tare.features.studies.literature")
        .joinpath("studies", f"{name}{SUFFIX}")
        .read_text(encoding="utf-8")
    )
    return parse(text, name)


def parse(text: str, name: str) -> Study:
    """Parse a study from the text of its file. Raises `UsageError` with one line."""
    try:
        return Study.model_validate({"name": name, **tomllib.loads(text)})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the study {name} is not TOML: {error}", fix="repair its file") from error
    except ValidationError as error:
        why = first_invalid(error, index_from=1)
        raise UsageError(f"the study {name} is not right: {why}", fix="repair its file") from error


def studies() -> list[Study]:
    """Return all studies, sorted by name."""
    return [load(name) for name in names()]
