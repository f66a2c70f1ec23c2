"""Reader of data from another version of tare: unknown fields are left out, and named."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)

_UNKNOWN_FIELD = "extra_forbidden"
#: Errors that a newer version's values can cause, but damage to a file cannot.
_UNKNOWN_VALUE = ("enum", "literal_error")


def known_part(model: type[Model], data: str | bytes) -> tuple[Model, tuple[str, ...]]:
    """Return the known part of a JSON object, and the names of the unknown fields, as ``platforms.0.colour``.

    Files are never rewritten from parsed data, so unknown fields stay in them. Raises `ValidationError` for every other
    invalid part.
    """
    try:
        return model.model_validate_json(data), ()
    except ValidationError as error:
        fields = [problem["loc"] for problem in error.errors() if problem["type"] == _UNKNOWN_FIELD]
        unknown = tuple(sorted(".".join(map(str, field)) for field in fields))
        if not unknown:
            raise
    return model.model_validate_json(data, extra="ignore"), unknown


def may_be_newer(error: ValidationError) -> bool:
    """Return True if every error is an unknown value, which a newer tare may have written."""
    return all(problem["type"] in _UNKNOWN_VALUE for problem in error.errors())
