"""Base classes of records: pydantic's models with the strictness that each kind of data needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from tare.errors import UsageError, first_invalid

#: The ends of lines that Unicode has.
LINE_END = "\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
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
    """The output of another program: numbers are numbers, and finite; unnamed keys are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


def one_line(text: str) -> str:
    """Return the text with blanks for its line ends, so that a printed fact, name or reason forges no line."""
    return re.sub(LINE_END, " ", text)


def in_one_line_each(value: Any) -> Any:
    """Return the same for all texts in a value of lists and mappings, as JSON has them."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, Mapping):
        return {in_one_line_each(key): in_one_line_each(item) for key, item in value.items()}
    return [in_one_line_each(item) for item in value] if isinstance(value, list) else value


#: A text of one line, and facts of such texts.
Line = Annotated[str, AfterValidator(one_line)]
Facts = Annotated[dict[str, Any], AfterValidator(in_one_line_each)]


def of_a_file(model: type[Model], content: Mapping[str, Any], name: str, fix: str) -> Model:
    """Return the record that a user's file holds; ``name`` is the file's.

    Raises `UsageError` with the first mistake.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"{name}: {first_invalid(error, index_from=1)}", fix=fix) from error
