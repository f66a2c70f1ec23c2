"""Plan of an installation, as a pure function of the request and the host."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tare.errors import UsageError
from tare.setup.components import CLONE, COMPONENTS, DEVELOPMENT, EVERYTHING, NATIVE, Need
from tare.suggest import nearest

ALL = "everything"


@dataclass(frozen=True, slots=True)
class MissingPackage:
    """A missing package, its purpose, and its components. The other fields are as in `Need`."""

    package: str
    purpose: str
    components: tuple[str, ...]
    has: str
    optional: bool


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """``components``: those requested, or already present; ``more``: other components that the host lacks.

    ``built``: components that tare builds itself, after the packages are installed.
    """

    components: tuple[str, ...]
    packages: tuple[MissingPackage, ...]
    built: tuple[str, ...]
    more: tuple[str, ...]


def words() -> set[str]:
    """Return all words to look up on a host (`Need.instead`, `Component.engine`)."""
    needs = {word for component in COMPONENTS.values() for need in component.needs for word in need.instead}
    return needs.union(*((*component.engine, *component.built_unless) for component in COMPONENTS.values()))


def named(text: str) -> tuple[str, ...]:
    """Return the components in a comma-separated list. Raises `UsageError` with the nearest name."""
    names: list[str] = []
    for name in (word.strip() for word in text.split(",")):
        if name != ALL and name not in COMPONENTS:
            raise UsageError(f"there is nothing called {name!r} to set up", fix=nearest(name, [*COMPONENTS, ALL]))
        names += EVERYTHING if name == ALL else (name,)
    return tuple(dict.fromkeys(names))


def plan(asked: Sequence[str], there: Collection[str]) -> SetupPlan:
    """Return the plan for components, on a host that has these of `words`.

    The baseline's needs are always included. Without a request, the needs of the host's engines are included too: an
    engine may be present, but lack a program with which tare runs it.
    """
    of_host = [name for name, component in COMPONENTS.items() if not there_is_none(component.engine, there)]
    components = tuple(dict.fromkeys([NATIVE, *(asked or of_host)]))
    missing: dict[str, list[tuple[str, Need]]] = {}
    for name in components:
        for need in _missing(name, there):
            missing.setdefault(need.package, []).append((name, need))
    packages = tuple(
        MissingPackage(package, need.purpose, tuple(name for name, _ in uses), need.has, need.optional)
        for package, uses in missing.items()
        for _, need in uses[:1]
    )
    others = (name for name in COMPONENTS if name not in {*components, CLONE, DEVELOPMENT})
    more = tuple(name for name in others if any(_missing(name, there)) or _is_built(name, there))
    return SetupPlan(components, packages, tuple(name for name in components if _is_built(name, there)), more)


def there_is_none(alternatives: Iterable[str], there: Collection[str]) -> bool:
    """Return True if the host has none of these words."""
    return not any(word in there for word in alternatives)


def without(chosen: SetupPlan, absent: Collection[str], asked: Sequence[str]) -> tuple[SetupPlan, tuple[str, ...]]:
    """Return the plan without packages that this release lacks, and the components that stay incomplete.

    ``asked``: components requested by name; those that ``everything`` stands for may be left out. Raises `UsageError`
    if a component requested by name is not available.
    """
    lost = [missing for missing in chosen.packages if missing.package in absent]
    left_out = dict.fromkeys(name for missing in lost for name in missing.components)
    for missing in lost:
        for name in {*asked, NATIVE}.intersection(missing.components):
            raise UsageError(
                f"this release has no package {missing.package}, which {name} needs",
                fix=f"install what {missing.package} has by hand, then ask again{_other(name)}",
            )
    kept = tuple(missing for missing in chosen.packages if not set(missing.components) <= left_out.keys())
    whole = tuple(name for name in chosen.components if name not in left_out)
    built = tuple(name for name in chosen.built if name in whole)
    return SetupPlan(whole, kept, built, chosen.more), tuple(left_out)


def _other(name: str) -> str:
    other: Mapping[str, str] = {"lxd": "incus", "incus": "lxd"}
    return f", or --with {other[name]}" if name in other else ""


def _missing(name: str, there: Collection[str]) -> Iterable[Need]:
    return (need for need in COMPONENTS[name].needs if there_is_none(need.instead, there))


def _is_built(name: str, there: Collection[str]) -> bool:
    unless = COMPONENTS[name].built_unless
    return bool(unless) and there_is_none(unless, there)
