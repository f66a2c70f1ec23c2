"""Extras of the package, which only some users need: loaded on use, and named where they are missing."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shlex
import sys
from importlib import metadata
from typing import Any

from tare.errors import UsageError

#: The extra of pyproject.toml that most such features need.
EXTRA = "exports"


def load(module: str, feature: str, extra: str = EXTRA) -> Any:
    """A module of the extra. ``feature``: what needs it. Raises `UsageError` where it is not installed.

    It is loaded in ``/``: matplotlib obeys a ``matplotlibrc`` of the current folder, which may be another user's. A
    notebook's `MPLBACKEND` names a module that need not be installed here, and nothing here shows a window.
    """
    os.environ.pop("MPLBACKEND", None)
    try:
        with contextlib.chdir("/"):
            return importlib.import_module(module)
    except ImportError as error:
        missing = module.partition(".")[0]
        fix = f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(required(missing, extra))}"
        raise UsageError(f"{feature} needs {missing}, which is not installed", fix=fix) from error


def required(distribution: str, extra: str = EXTRA) -> str:
    """The package and its versions, as tare's own metadata asks for it; its name alone where that does not say.

    Not tare with its extra: a tare that came as a wheel is in no index.
    """
    with contextlib.suppress(metadata.PackageNotFoundError):
        for line in metadata.requires("tare-bench") or ():
            requirement, _, condition = line.partition(";")
            name = re.match(r"[A-Za-z0-9._-]+", requirement)
            if name is not None and name[0].lower() == distribution.lower() and extra in condition:
                return requirement.strip().replace(" ", "")
    return distribution
