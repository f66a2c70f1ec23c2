"""What records are made of: pydantic's models with the strictness that each kind of data wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tare.errors import UsageError, first_invalid

Model = TypeVar("Model", bound=BaseModel)


class Frozen(BaseModel):
    """A record that nobody changes, and that refuses fields which it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Strict(Frozen):
    """One in which nothing is converted: a value has its field's type or is refused."""

    model_config = ConfigDict(strict=True)


class Documented(Frozen):
    """One that is printed: texts below its fields stand in its JSON schema, where ``schema_`` is ``schema``."""

    # These texts are read from the source file when the class is made: that takes too long for all records.
    model_config = ConfigDict(
        use_attribute_docstrings=True, alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )


class Printed(BaseModel):
    """What another program printed: numbers are numbers, and finite; keys that are not named are not looked at."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


def of_a_file(model: type[Model], content: Mapping[str, Any], name: str, fix: str) -> Model:
    """The record that a user's file holds; ``name`` is the file's. Raises `UsageError` with the first mistake."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"{name}: {first_invalid(error, index_from=1)}", fix=fix) from error
