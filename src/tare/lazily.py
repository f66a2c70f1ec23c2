"""Loading of slow modules on first use, so that a short command answers at once."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """Stands for a module, and loads it when something of it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)  # simulations ask for scipy's functions a million times
        return value


def exports(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package (PEP 562) whose public names are in modules: ``places``, by name."""

    def __getattr__(name: str) -> Any:  # noqa: N807 (it becomes the package's)
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{places[name]}"), name)

    return __getattr__
