"""What only some users need is an extra of the package: loaded when it is used, and named where it is missing."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from tare.errors import UsageError

#: The extra of pyproject.toml.
EXTRA = "exports"


def load(module: str, feature: str) -> Any:
    """A module of the extra. ``feature``: what needs it. Raises `UsageError` where it is not installed.

    It is loaded in ``/``: matplotlib obeys a ``matplotlibrc`` of the current folder, which may be another user's.
    """
    try:
        with contextlib.chdir("/"):
            return importlib.import_module(module)
    except ImportError as error:
        missing = module.partition(".")[0]
        raise UsageError(
            f"{feature} needs {missing}, which is not installed", fix=f"python3 -m pip install 'tare-bench[{EXTRA}]'"
        ) from error
