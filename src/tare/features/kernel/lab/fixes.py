"""Places of the kernel's fixed vulnerabilities, from the changelog of Debian's kernel, for the weights of a report.

Debian's changelog of a kernel series has the title of every change in a stable update, with its CVE, if any. A title
begins with the place of the change ("net/sched: cls_u32: Fix ..."). The words of the place are looked up in the tree of
the kernel that counts its lines, each below the places of the previous word. A title whose place is not found is
counted, and left out: mostly it names a driver that this kernel does not have, or no place at all. A word that names a
disabled option (IPV6) is left out too, because the code that is still compiled in its folder is not where its fixes
were.

A title tells only that the fix is somewhere below its place. So each fix is spread evenly over all lines there. The
density of a line is the sum of ``fixes / lines`` over its file and the folders above; the sum over all lines of the
kernel is the number of located fixes. A platform's weighted sum over its lines is thus the expected number of fixed
vulnerabilities in these lines, if they were spread evenly.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tare.errors import UsageError

#: Exists on every Debian machine with a compiler. All packages of one kernel have the same changelog.
CHANGELOG = Path("/usr/share/doc/linux-libc-dev/changelog.Debian.gz")
#: Words of titles that are not names in the tree, with their paths.
WORDS: Mapping[str, tuple[str, ...]] = {
    "ftrace": ("kernel/trace",),
    "inet": ("net/ipv4",),
    "kvm": ("virt/kvm", "arch/x86/kvm"),
    "memcg": ("mm/memcontrol.c",),
    "ovl": ("fs/overlayfs",),
    "perf": ("kernel/events",),
    "tracing": ("kernel/trace",),
    "vfs": ("fs",),
    "vsock": ("net/vmw_vsock",),
    "xsk": ("net/xdp",),
}
#: Preferred folder among equally deep places of one name ("sched").
_FIRST = ("kernel", "mm", "fs", "net", "block", "ipc", "security", "virt", "lib", "crypto", "arch", "drivers")
#: An entry, with its continuation lines.
_ENTRY = re.compile(r"^    - (.+(?:\n      .+)*)", re.MULTILINE)
_VERSION = re.compile(r"^linux \((\S+)\)", re.MULTILINE)
_CVE = re.compile(r"CVE-\d{4}-\d+")
#: Debian's prefix for an architecture, and the prefix of a reverted change.
_MARKS = re.compile(r'^(?:\[[^\]]+\] )*(?:Revert ")?')
#: "net/sched: cls_u32: Fix" has the tags net/sched and cls_u32; "crypto: qat - fix" has crypto and qat.
_TAG = re.compile(r"([\w./,&-]+(?: ?, ?[\w./-]+)*)(?:: +| - )")
_OFF = re.compile(r"^# CONFIG_(\w+) is not set$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that fixes a CVE."""

    cve: str
    title: str


@dataclass(frozen=True, slots=True)
class Densities:
    """Fixes per line, by path in the tree; a folder's path ends in "/". The longest matching path applies to a line."""

    by_path: Mapping[str, float]
    placed: int  # Fixes with a place in this kernel.
    of: int  # All fixes.
    versions: tuple[str, str]  # Of the changelog: the oldest with a fix, and the newest.


def read(changelog: Path) -> str:
    """Return the text of a changelog, compressed or not. Raises `UsageError`."""
    try:
        data = changelog.read_bytes()
        return (gzip.decompress(data) if changelog.suffix == ".gz" else data).decode()
    except (OSError, ValueError, EOFError) as error:
        fix = "apt-get install linux-libc-dev, or name another package's changelog of the kernel with --changelog"
        raise UsageError(f"{changelog} cannot be read: {error}", fix=fix) from error


def fixes(changelog: str) -> list[Fix]:
    """Return each CVE once, the newest change first. CVEs without a change of the code are left out."""
    by_cve: dict[str, Fix] = {}
    for entry in _ENTRY.findall(changelog):
        title = re.sub(r"\s+", " ", entry)
        for cve in _CVE.findall(title):
            by_cve.setdefault(cve, Fix(cve, title))
    return list(by_cve.values())


def versions(changelog: str) -> tuple[str, str]:
    """Return the oldest and the newest version of the kernel's package with a fix here. Raises `UsageError`."""
    starts = [(entry.start(), entry[1]) for entry in _VERSION.finditer(changelog)]
    ends = [*(start for start, _ in starts[1:]), len(changelog)]
    with_fix = [name for (start, name), end in zip(starts, ends, strict=True) if fixes(changelog[start:end])]
    if not with_fix:
        raise UsageError("there is no CVE beside a change in this changelog", fix="give that of a Debian kernel")
    return with_fix[-1], with_fix[0]


def tags(title: str) -> list[list[str]]:
    """Return the words that name the place of a change, grouped by tag: ``[["net", "sched"], ["cls_u32"]]``."""
    rest = _MARKS.sub("", title)
    words_of_tags = []
    while (tag := _TAG.match(rest)) is not None:
        words_of_tags.append([word for word in re.split(r"[/,& ]+", tag[1].lower().replace("-", "_")) if word])
        rest = rest[tag.end() :]
    return words_of_tags


class Tree:
    """The paths of a kernel's sources, for looking up words."""

    def __init__(self, paths: Iterable[str], config: str = "") -> None:
        """Index the paths of sources, and the kernel's configuration.

        Headers are skipped, because their code is compiled into many places.
        """
        self._off = {name.lower() for name in _OFF.findall(config)}
        self._named: dict[str, list[str]] = {}
        places = {str(place) for path in paths if path.endswith(".c") for place in _upwards(path)}
        for place in sorted(places, key=_order):
            self._named.setdefault(PurePosixPath(place).stem.replace("-", "_"), []).append(place)
        self._places = places

    def find(self, title: str) -> tuple[str, ...]:
        """Return the places that a title names; empty if it names no place in this tree."""
        at: tuple[str, ...] = ()
        for words in tags(title):
            for word in words:
                at = self._below(at, word) if at else self._root(word)
                if not at or word in self._off:
                    return ()
        return at

    def _root(self, word: str) -> tuple[str, ...]:
        if word in WORDS:
            return tuple(path for path in WORDS[word] if path in self._places)
        return tuple(self._named.get(word, ())[:1])

    def _below(self, above: Sequence[str], word: str) -> tuple[str, ...]:
        """Return the topmost places below with that name, otherwise with that prefix. Below a file: beside it."""
        above = [path.rpartition("/")[0] if path.endswith(".c") else path for path in above]
        inner = [path for path in self._named.get(word, ()) if _inside(path, above)]
        if inner:
            least = min(path.count("/") for path in inner)
            return tuple(path for path in inner if path.count("/") == least)
        begin = f"{word}_"
        alike = (path for name, paths in self._named.items() if name.startswith(begin) for path in paths)
        return tuple(sorted(path for path in alike if _inside(path, above)))


def densities(changelog: str, lines: Mapping[str, int], config: str = "") -> Densities:
    """Return the fixes per line of a kernel. ``lines``: the number of lines with code by source.

    Raises `UsageError` if the changelog has no fix.
    """
    all_fixes, tree = fixes(changelog), Tree(lines, config)
    below: Counter[str] = Counter()
    for path, count in lines.items():
        for place in _upwards(path):
            below[place] += count
    by_place: defaultdict[str, float] = defaultdict(float)  # Fixes per line at exactly this place.
    located = 0
    for fix in all_fixes:
        places = tree.find(fix.title)
        located += bool(places)
        total = sum(below[place] for place in places)
        for place in places:
            by_place[place] += 1 / total
    by_path = {
        _key(place, lines): sum(by_place.get(above, 0.0) for above in _upwards(place)) for place in sorted(by_place)
    }
    return Densities(by_path, located, len(all_fixes), versions(changelog))


def as_toml(densities: Densities) -> str:
    """Return the densities as TOML, the input of ``tare report --weights``."""
    oldest, newest = densities.versions
    located = f"{densities.placed} of {densities.of} CVEs"
    title = f"CVEs of Linux {oldest} to {newest} a line, by Debian's changelog"
    head = [
        f"# {located} were in code of this kernel. Each is spread evenly over the lines of the",
        "# place that its change's title names: a sum over lines is how many of them those lines would have.",
        f"title = {json.dumps(title)}",
        "default = 0.0",
        "",
        "[density]",
    ]
    weights = (f"{json.dumps(path)} = {density:.6g}" for path, density in densities.by_path.items())
    return "\n".join([*head, *weights]) + "\n"


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and all folders above it."""
    yield path
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _order(path: str) -> tuple[int, int, str]:
    first = path.partition("/")[0]
    return path.count("/"), _FIRST.index(first) if first in _FIRST else len(_FIRST), path


def _inside(path: str, above: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in above)


def _key(place: str, lines: Mapping[str, int]) -> str:
    return place if place in lines else f"{place}/"
