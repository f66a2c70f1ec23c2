"""Which kind of file an application is read from, by its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tare import lazily
from tare.errors import UsageError
from tare.workloads.own import dockerfile, service
from tare.workloads.own.file import text_of
from tare.workloads.own.toml_lines import Mistake

if TYPE_CHECKING:
    from tare.workloads.own import compose
else:
    compose = lazily.LazyModule("tare.workloads.own.compose")  # with the YAML library, for one command

_FIX = "name a Dockerfile, or a compose file (.yaml, .yml)"


def _is_text(value: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in value)


def converted(source: Path, image: str | None) -> tuple[str, list[Mistake]]:
    """Return the file of ours that is made of a Dockerfile or a compose file, and what in that is not plain.

    ``image``: the place of the image that was built of it. Raises `UsageError` for a file that cannot be read.
    """
    text = text_of(source, _FIX)
    if source.suffix in {".yaml", ".yml"}:
        # A value that is not valid text cannot be written to a file.
        texts = {name: value for name, value in os.environ.items() if _is_text(value)}
        read, mistakes = compose.read(text, image is not None, texts)
    elif "dockerfile" in source.name.lower() or "containerfile" in source.name.lower():
        read, mistakes = dockerfile.read(text, image is not None)
        read.name = _named_by(source.absolute().parent) or read.name
    else:
        raise UsageError(f"{source} is neither by its name", fix=_FIX)
    return service.toml_of(read, source.name, image), mistakes


def _named_by(folder: Path) -> str:
    """Return the name of an application by the folder of its Dockerfile, which says none itself.

    "" where that has none.
    """
    name = service.word_of(folder.name) if folder.name else ""
    return f"app-{name}" if name[:1].isdigit() else name
