"""Reading what another version of tare wrote: fields that this one does not know are left out, and named."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)

_UNKNOWN_FIELD = "extra_forbidden"
#: What a newer version may well have written, and what nothing that breaks a file makes of it.
_UNKNOWN_VALUE = ("enum", "literal_error")


def known_part(model: type[Model], data: str | bytes) -> tuple[Model, tuple[str, ...]]:
    """What ``model`` knows of a JSON object, and the names of the fields that it does not, as ``platforms.0.colour``.

    Files are never rewritten from what was read, so that such fields stay in them. Raises `ValidationError` for
    everything else that is not valid.
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
    """Whether all that is not valid are values which this tare does not know: what a newer one writes, not damage."""
    return all(problem["type"] in _UNKNOWN_VALUE for problem in error.errors())
