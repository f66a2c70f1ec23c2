"""The contract of every platform beyond its types, as `tare.workloads.workload_contract` is for workloads.

`problems` is called for plug-ins when they load and for our own platforms in the tests; the other functions check what
a platform's methods return against `tare.platforms.base`. A wrong answer is a `TypeError`: a fault of the platform's
code, as any exception that it raises itself. That platform is left out, and the campaign goes on with the others
(`tare.errors.attempt`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import TypeVar

from tare.errors import PlatformError
from tare.host import cgroup, own_namespaces
from tare.host.resources.journal import CleanupStack
from tare.image.image_build import Image
from tare.model import Family
from tare.platforms.base import Availability, Instance, LaunchSpec, Observed, Platform, Prepared

#: Names of platforms and of families: lower case words and digits, joined by single dashes.
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_NAME_LENGTH = 60
_TEXTS = ("title", "network_path", "disk_cache")
_SWITCHES = (
    "baseline",
    "shares_data",
    "elsewhere",
    "keeps_quota",
    "same_bits",
    "own_kernel",
    "from_snapshot",
    "has_agent",
    "by_default",
    "publishes",
    "without_root",
    "needs_root",
)

T = TypeVar("T")


def problems(platform: Platform) -> list[str]:
    """Each breach of the contract as half a sentence; none when the platform is fine."""
    return [*_named(platform), *_texts(platform), *_values(platform)]


def name_problem(name: object) -> str | None:
    """Return what is wrong with the name of a platform or of a family, as half a sentence."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
        return f"has a name that is not lower case words joined by dashes: {name!r}"
    return None


def _named(platform: Platform) -> Iterator[str]:
    name = getattr(platform, "name", None)
    # What a family makes has its argument in its name.
    wrong = name_problem(name.partition(":")[0] if isinstance(name, str) else name)
    if wrong is not None:
        yield wrong


def _texts(platform: Platform) -> Iterator[str]:
    for name in _TEXTS:
        text = getattr(platform, name, None)
        if not isinstance(text, str) or not text.strip() or "\n" in text:
            yield f"has no {name} that is one line of text"
    not_honoured = getattr(platform, "not_honoured", None)
    if not isinstance(not_honoured, tuple) or not _all_texts(not_honoured):
        yield "has a not_honoured that is no tuple of texts"
    doors = getattr(platform, "open_by_design", None)
    if not isinstance(doors, Mapping) or not _all_texts([*doors, *doors.values()]):
        yield "has an open_by_design that does not give a text for each door"


def _values(platform: Platform) -> Iterator[str]:
    for name in _SWITCHES:
        if not isinstance(getattr(platform, name, None), bool):
            yield f"has a {name} that is neither True nor False"
    for name in ("no_direct_io", "daemon", "alone", "stand_in", "untried", "only_named"):
        if not isinstance(getattr(platform, name, None), str):
            yield f"has a {name} that is no text"
    families = getattr(platform, "second_baseline", None)
    if not isinstance(families, tuple) or not all(isinstance(family, Family) for family in families):
        yield "has a second_baseline that is no tuple of families of workloads"
    if getattr(platform, "without_root", False) is True and getattr(platform, "needs_root", None) is True:
        yield "runs without root, and needs root"
    beside = getattr(platform, "monitor_bytes", None)
    if not isinstance(beside, int) or beside < 0:
        yield "has monitor_bytes that are no number of bytes"
    helpers = getattr(platform, "helper_pids", None)
    if not isinstance(helpers, int) or helpers < 0:
        yield "has helper_pids that are no number of processes"
    start_limit_factor = getattr(platform, "start_limit_factor", None)
    if not isinstance(start_limit_factor, int | float) or not (isfinite(start_limit_factor) and start_limit_factor > 0):
        yield "has a start_limit_factor that is no number above 0"


def _all_texts(values: Sequence[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def detected(platform: Platform) -> Availability:
    """Return the result of `Platform.detect`, called only if this process has the rights that the platform needs.

    Raises `TypeError` where it is no `Availability`, and what the method raises.
    """
    if os.geteuid() != 0 or (own_namespaces.inside() and not platform.without_root):
        return Availability(False, reason="it needs root", fix="run tare as root (sudo)")
    answer = _require(platform, platform.detect(), Availability, "detect")
    if answer.available and own_namespaces.inside():
        rights = "root of a user namespace of tare's own" + (
            ", in no control group: no memory limit, no CPU time" if cgroup.hierarchies().none else ""
        )
        answer = replace(answer, details={**answer.details, "rights": rights})
    texts = (answer.version, answer.reason, answer.fix)
    details = answer.details
    whole = isinstance(details, Mapping) and _all_texts([*texts, *details, *details.values()])
    if not whole or not isinstance(answer.available, bool):
        raise TypeError(f"the detect of {platform.name} gave an Availability with something else than texts")
    return answer


def released(platform: Platform, version: str) -> int | None:
    """Return the result of `Platform.released`. Raises `TypeError` for what is no year, and what the method raises."""
    year = platform.released(version)
    if year is not None and not (isinstance(year, int) and 1970 <= year <= 9999):
        raise TypeError(f"the released of {platform.name} gave {year!r}, which is no year")
    return year


def prepared(platform: Platform, image: Image) -> Prepared:
    """Return the result of `Platform.prepare`.

    Raises `TypeError` where it is no `Prepared`, and what the method raises.
    """
    form = _require(platform, platform.prepare(image), Prepared, "prepare")
    if not isinstance(form.form, str) or not isinstance(form.disk_bytes, int) or form.disk_bytes < 0:
        raise TypeError(f"the prepare of {platform.name} gave a form without a name, or without its size in bytes")
    return form


def launched(platform: Platform, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
    """Return the result of `Platform.launch`. Raises `TypeError` where it is no `Instance`, and what the method raises.

    `PlatformError` where a CPU quota was asked for that could not be kept.
    """
    if spec.resources.cpu_quota is not None and not (platform.keeps_quota and spec.group.accounts):
        why = "no control groups are delegated to this user" if platform.keeps_quota else "its work is in no group here"
        raise PlatformError(f"{platform.name} keeps no CPU quota: {why}", fix="leave --cpu-quota out, or this platform")
    return _require(platform, platform.launch(spec, cleanup), Instance, "launch")


def observed(platform: Platform, instance: Instance, read: Callable[[str], str]) -> Observed:
    """Return the result of `Platform.observed`. Raises `TypeError` where it is none, and what the method raises."""
    observation = _require(platform, platform.observed(instance, read), Observed, "observed")
    texts = [
        observation.disk_cache,
        observation.network_path,
        *observation.remarks.values(),
        *observation.facts,
        *observation.facts.values(),
    ]
    if not _all_texts(texts) or not set(observation.remarks) <= set(Family):
        raise TypeError(f"the observed of {platform.name} gave something else than texts, by families of workloads")
    return observation


def _require(platform: Platform, value: object, kind: type[T], method: str) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"the {method} of {platform.name} gave {type(value).__name__}, and not {kind.__name__}")
    return value
