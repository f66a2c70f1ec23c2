"""What a campaign's file has beside its trials, an attachment each, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from tare.errors import StoreError
from tare.store import Store

Model = TypeVar("Model", bound=BaseModel)


def read_attached(store: Store, name: str, model: type[Model]) -> Iterator[Model]:
    """All attachments of this name in order. Raises `StoreError` for one that is none."""
    for number, data in enumerate(store.attached(name), 1):
        try:
            yield model.model_validate_json(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "it"
            what = f"{store.path}: {name} {number} cannot be read: {where}: {first['msg']}"
            raise StoreError(what, fix="read it with the version of tare that wrote it") from error
