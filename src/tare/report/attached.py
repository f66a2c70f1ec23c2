"""What a campaign's file has beside its trials, an attachment each, as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from tare.errors import StoreError
from tare.store import Store
from tare.store.reading import Model, known_part, why_not


def read_attached(store: Store, name: str, model: type[Model]) -> Iterator[Model]:
    """All attachments of this name in order. Raises `StoreError` for one that is none."""
    for number, data in enumerate(store.attached(name), 1):
        try:
            yield known_part(model, data)[0]
        except ValidationError as error:
            what = f"{store.path}: {name} {number} cannot be read: {why_not(error)}"
            raise StoreError(what, fix="read it with the version of tare that wrote it") from error
