"""Finds platforms: the modules of this package, and those that others register.

A platform that only exists with an argument (a host to reach, an image to boot) is chosen as ``FAMILY:ARGUMENT``; the
module names in ``FAMILIES`` what makes it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

import tare.platforms
from tare.errors import Failed, PlatformError, TareError, UsageError, attempt
from tare.platforms import platform_contract
from tare.platforms.base import Platform
from tare.plugins import package_of, with_plugins
from tare.suggest import nearest

GROUP = "tare.platforms"
_GUIDE = "see docs/add-a-platform.md"


@dataclass(frozen=True, slots=True)
class _Family:
    """The maker of a family's platforms, and the prefix of their names: "ssh:"."""

    name: str
    make: Callable[[str], Platform]


def all_platforms() -> dict[str, Platform]:
    """Every known platform by name: the baseline first, then by name.

    A plug-in that does not load, breaks the contract, or takes a name that is taken is left out (`tare.plugins`).
    """
    platforms = {name: entry for name, entry in _registered().items() if isinstance(entry, Platform)}
    return dict(sorted(platforms.items(), key=lambda item: (not item[1].baseline, item[0])))


def choose(names: Sequence[str]) -> list[Platform]:
    """Return the platforms of these names. Raises `UsageError` with the nearest names."""
    registered = _registered()
    return [_of_name(name, registered) for name in dict.fromkeys(names)]


def require(names: Sequence[str]) -> None:
    """Raise `UsageError` for the name of no platform, as `choose` does; none is made."""
    registered = _registered()
    for name in names:
        if not isinstance(registered.get(name), Platform):
            _maker(name, registered)


def families() -> dict[str, Callable[[str], Platform]]:
    """Return what makes a platform from the argument in ``FAMILY:ARGUMENT``, by family."""
    return {entry.name.removesuffix(":"): entry.make for entry in _registered().values() if isinstance(entry, _Family)}


def package(name: str) -> str:
    """Return the package and its version of the plug-in that has this platform or its family; "" for tare's own."""
    family, separator, _ = name.partition(":")
    return package_of(GROUP, family + separator)


def offers() -> list[dict[str, str]]:
    """For `tare doctor` and `tare list`, by family: ``name`` with its argument, ``title``, and what it ``asks`` for."""
    return [
        {
            "name": f"{family}:{getattr(maker, 'argument', 'ARGUMENT')}",
            "title": str(getattr(maker, "summary", family)),
            "asks": str(getattr(maker, "asks", f"name one: -p {family}:ARGUMENT")),
        }
        for family, maker in sorted(families().items())
    ]


def _registered() -> dict[str, Platform | _Family]:
    return with_plugins(_built_in(), GROUP, _usable)


def _of_name(name: str, registered: Mapping[str, Platform | _Family]) -> Platform:
    platform = registered.get(name)
    if isinstance(platform, Platform):
        return platform
    maker, argument = _maker(name, registered)
    result = attempt(lambda: maker(argument))
    if isinstance(result, Failed):
        if isinstance(result.error, TareError):
            raise result.error
        raise PlatformError(f"{name} cannot be made: {result.reason}") from result.error
    breaches = (
        platform_contract.problems(result) if isinstance(result, Platform) else ["is no tare.platforms.base.Platform"]
    )
    if breaches:
        raise PlatformError(f"what makes {name} made something that {'; '.join(breaches)}", fix=_GUIDE)
    return result


def _maker(name: str, registered: Mapping[str, Platform | _Family]) -> tuple[Callable[[str], Platform], str]:
    prefix, separator, argument = name.partition(":")
    family = registered.get(prefix + separator)
    if isinstance(family, _Family) and argument:
        return family.make, argument
    raise UsageError(f"there is no platform {name!r}", fix=nearest(name, list(registered), "tare list platforms"))


def _built_in() -> Iterator[Platform | _Family]:
    for module in _modules():
        yield from _of(module)


def _usable(module: object) -> Sequence[Platform | _Family]:
    """Return the ``PLATFORMS`` and ``FAMILIES`` of a plug-in's module.

    Raises `UsageError` where they cannot be used.
    """
    if not isinstance(getattr(module, "FAMILIES", {}), Mapping):
        raise UsageError(f"has FAMILIES that are no mapping of a name to what makes a platform: {_GUIDE}")
    named = _of(module)
    if not named:
        raise UsageError(f"has neither PLATFORMS nor FAMILIES: {_GUIDE}")
    breaches = [breach for entry in named for breach in _breaches(entry)]
    if breaches:
        raise UsageError(f"{'; '.join(breaches)}: {_GUIDE}")
    return named


def _breaches(entry: object) -> Iterator[str]:
    if isinstance(entry, _Family):
        wrong = platform_contract.name_problem(entry.name.removesuffix(":"))
        yield from () if wrong is None else (wrong,)
        if not callable(entry.make):
            yield f"names a family {entry.name} with nothing that makes its platforms"
    elif not isinstance(entry, Platform):
        yield "has no PLATFORMS that are each a tare.platforms.base.Platform"
    else:
        yield from platform_contract.problems(entry)
        if ":" in str(getattr(entry, "name", "")):
            yield f"has a platform with a colon in its name, as only families have: {entry.name!r}"
        if entry.baseline:
            yield "names a baseline, and there is one"


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.iter_modules(tare.platforms.__path__, "tare.platforms."):
        yield importlib.import_module(module.name)


def _of(module: object) -> Sequence[Platform | _Family]:
    platforms: tuple[Platform, ...] = getattr(module, "PLATFORMS", ())
    named: Mapping[str, Callable[[str], Platform]] = getattr(module, "FAMILIES", {})
    return (*platforms, *(_Family(f"{family}:", make) for family, make in named.items()))
