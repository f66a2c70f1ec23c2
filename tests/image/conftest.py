"""A stand-in for mmdebstrap: a script that makes the few files that the build looks at."""

import os
from pathlib import Path

import pytest

from tare.image import image_recipe

FAKE = """\
#!/bin/sh
. "$0.facts" # its environment is not the tests'
# The root is the argument after the suite.
while [ "$1" != bookworm ]; do shift; done
root=$2
echo run >>"$FAKE_RUNS"
mkdir -p "$root/var/lib/dpkg" "$root/etc/apt/sources.list.d" "$root/var/log/apt" "$root/usr/bin"
echo "the builder" >"$root/etc/hostname"
ln -s /nowhere/resolv.conf "$root/etc/resolv.conf"
echo "a mirror" >"$root/etc/apt/sources.list.d/0000.sources"
echo "dates" >"$root/var/log/apt/history.log"
echo "a program" >"$root/usr/bin/tool"
cp "$FAKE_STATUS" "$root/var/lib/dpkg/status"
mkdir -p "$root/var/lib/apt/lists/partial"
awk '/^(Package|Version):/ { print } /^Maintainer:/ { print "SHA256: beef\\n" }' "$FAKE_STATUS" \\
    >"$root/var/lib/apt/lists/archive_main_binary-amd64_Packages"
[ -z "$FAKE_SAYS" ] || { cat "$FAKE_SAYS" >&2; exit 25; }
"""


def status(**versions):
    """A dpkg database with these packages installed."""
    entry = "Package: {}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {}\nMaintainer: X <x@y>\n"
    return "\n".join(entry.format(name, version) for name, version in versions.items())


class Bench:
    """A home, an agent, and what the stand-in does next."""

    def __init__(self, folder, monkeypatch):
        self.home = folder / "home"
        self.images = self.home / "images"
        self.agent = folder / "agent"
        self.agent.write_bytes(b"an agent")
        self._runs, self._status = folder / "runs", folder / "status"
        program = folder / "bin" / "mmdebstrap"
        program.parent.mkdir()
        program.write_text(FAKE)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        monkeypatch.setenv("TARE_HOME", str(self.home))
        self._facts = program.with_name("mmdebstrap.facts")
        self.says(None)
        self.progress = []

    def says(self, file):
        """Fail with these words from now on, or do not."""
        facts = f"FAKE_RUNS='{self._runs}' FAKE_STATUS='{self._status}' FAKE_SAYS='{file or ''}'"
        self._facts.write_text(f"{facts}\n")

    def has(self, **versions):
        """The packages of the root that comes out."""
        self._status.write_text(status(**versions))

    @property
    def runs(self):
        return self._runs.read_text().count("run") if self._runs.exists() else 0

    @property
    def places(self):
        return sorted(place.name for place in self.images.iterdir() if place.name != "lock")


@pytest.fixture
def bench(tmp_path, monkeypatch):
    image_bench = Bench(tmp_path, monkeypatch)
    image_bench.has(libc6="2.36-9", **dict(image_recipe.load().pinned))
    return image_bench


@pytest.fixture
def data():
    return Path(__file__).parent / "data"
