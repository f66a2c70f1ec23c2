"""Lines of the kernel: what the lab keeps of its counters, and what is made of that outside."""

import gzip
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from tare.errors import HostError, ParseError
from tare.features.kernel.counters import source_lines
from tare.features.kernel.counters.source_lines import READING, LineCounter, completed
from tare.features.kernel.lab import gcov
from tare.features.kernel.lab.kernel import TOP, Counting
from tare.footprint_model import Footprint, Phase, Scope
from tare.host import state
from tare.host.resources.journal import Journal
from tare.model import Level

CAPTURED = Path(__file__).parent / "captured" / "lines"
RAN, RESTED = "fs/eventfd", "lib/sort"
OBJECTS = (RAN, RESTED)


@pytest.fixture
def counters(tmp_path):
    """A folder as the kernel's."""
    folder = tmp_path / "gcov"
    for name in OBJECTS:
        file = folder / TOP.lstrip("/") / f"{name}.gcda"
        file.parent.mkdir(parents=True)
        file.write_bytes((CAPTURED / f"{name}.gcda").read_bytes())
        # As the kernel has: a link to where the notes were when it was compiled.
        file.with_suffix(".gcno").symlink_to(f"{TOP}/{name}.gcno")
    (folder / "reset").write_text("")
    return folder


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel that was built: real notes, and a stand-in for gcov that says what the real one said of them."""
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    place = tmp_path / "kernel"
    (place / "gcov").mkdir(parents=True)
    with tarfile.open(place / "notes.tar.gz", "w:gz") as tar:
        for name in OBJECTS:
            tar.add(CAPTURED / f"{name}.gcno", f"{name}.gcno")
    everything = gcov.Coverage()
    for name in OBJECTS:
        everything.add((CAPTURED / f"{name}.json").read_bytes(), TOP)
    lines = {path: sorted(numbers) for path, numbers in everything.lines.items()}
    (place / "lines.json.gz").write_bytes(gzip.compress(json.dumps(lines).encode()))
    program = place / "gcov" / "ld.so"
    program.write_text(
        '#!/bin/sh\nshift 5\nfor notes; do name=${notes%.gcno}; [ -e "$notes" ] || exit 1\n'
        f'cmp -s "$name.gcda" "{CAPTURED}/$name.gcda" && cat "{CAPTURED}/$name.json"; done\n'
    )
    program.chmod(0o755)
    return Counting(place)


def footprint(hits, level=Level.LINES, scope=Scope.HOST):
    return Footprint(
        level=level, scope=scope, platform="runc", phase=Phase.START, workload=None, repeat=0, seconds=2.0, hits=hits
    )


def read(counters, tmp_path):
    """A reading, and what stands for it in a footprint."""
    counter = LineCounter(counters, tmp_path / "readings")
    counter.start("tare/x")
    return counter.read().hits[Scope.HOST]


def test_a_reading_has_all_counters_as_they_were(counters, tmp_path):
    [name] = read(counters, tmp_path)
    packed = (tmp_path / "readings" / name.removeprefix(READING)).read_bytes()
    assert gcov.counters_in(packed) == {name: (CAPTURED / f"{name}.gcda").read_bytes() for name in OBJECTS}


def test_each_reading_is_a_file_of_its_own_and_counts_from_the_last_reset(counters, tmp_path):
    counter = LineCounter(counters, tmp_path / "readings")
    counter.start("tare/x")
    (counters / "reset").write_text("")
    first, second = counter.read(), counter.read()
    assert first.hits.keys() == second.hits.keys() == {Scope.HOST}, "these counters know no groups"
    assert first.hits != second.hits
    assert len(list((tmp_path / "readings").iterdir())) == 2
    assert not (counters / "reset").read_text()
    counter.reset()
    assert (counters / "reset").read_text() == "1\n"
    counter.stop()
    counter.stop()


def test_a_kernel_that_does_not_count_is_told_with_the_way_out(tmp_path):
    with pytest.raises(HostError) as caught:
        LineCounter(tmp_path).start("tare/x")
    assert "does not count its lines" in caught.value.what
    assert "lab" in caught.value.fix


def test_who_may_not_look_into_debugfs_is_told_the_same(tmp_path):
    """Of a file in a folder that is closed to one, Python 3.11 raises where it was asked whether it exists."""
    closed = tmp_path / "debug"
    closed.mkdir()
    (closed / "reset").touch()
    closed.chmod(0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            source_lines.check(closed)
        except HostError as error:
            code = 0 if "does not count its lines" in error.what else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_a_kernel_of_somebody_elses_that_counts_is_not_ours(tmp_path):
    (tmp_path / "reset").touch()
    with pytest.raises(HostError) as caught:
        LineCounter(tmp_path).start("tare/x")
    assert TOP in caught.value.what


def test_lines_come_in_the_place_of_a_reading(counters, tmp_path, kernel):
    raw = footprint(read(counters, tmp_path))
    other = footprint({"read": 3}, level=Level.SYSCALLS)
    [reading, same] = completed([raw, footprint({}, scope=Scope.INSTANCE), other], tmp_path / "readings", kernel)
    assert same == other
    expected = gcov.Coverage()
    expected.add((CAPTURED / f"{RAN}.json").read_bytes(), TOP)
    assert reading.hits == expected.hits()
    assert reading.known == sum(map(len, kernel.lines().values()))
    assert (reading.platform, reading.phase, reading.seconds) == (raw.platform, raw.phase, raw.seconds)
    assert list(state.work().iterdir()) == [], "the folder with the notes is gone"
    assert list(Journal(state.journal()).entries()) == []


def test_what_is_completed_is_not_completed_again(tmp_path, kernel):
    with pytest.raises(ParseError) as caught:
        list(completed([footprint({"mm/mmap.c:1405": 2})], tmp_path, kernel))
    assert "completed already" in caught.value.what


@pytest.mark.parametrize("name", ["00000.tar.gz", "../kernel/notes.tar.gz"])
def test_a_reading_that_did_not_come_back_is_missed(name, tmp_path, kernel):
    (tmp_path / "readings").mkdir()
    with pytest.raises(ParseError):
        list(completed([footprint({f"{READING}{name}": 1})], tmp_path / "readings", kernel))


def packed(files):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, contents in files.items():
            info = tarfile.TarInfo(f"{name}.gcda")
            info.size = len(contents)
            tar.addfile(info, io.BytesIO(contents))
    return archive.getvalue()


def test_the_counters_of_another_kernel_are_refused(tmp_path, kernel):
    taken = {name: (CAPTURED / f"{name}.gcda").read_bytes() for name in OBJECTS}
    stamped = bytearray(taken[RAN])
    stamped[8] ^= 1
    for number, files in enumerate(
        ({RAN: taken[RAN]}, {**taken, "mm/mmap": taken[RAN]}, {**taken, RAN: bytes(stamped)})
    ):
        (tmp_path / f"{number}.tar.gz").write_bytes(packed(files))
        with pytest.raises(ParseError) as caught:
            list(completed([footprint({f"{READING}{number}.tar.gz": 1})], tmp_path, kernel))
        assert "kernel" in caught.value.what


@pytest.mark.parametrize("whole", [b"", b"no tar at all", b"\x1f\x8b\x08"])
def test_a_reading_that_is_not_whole_is_refused(whole, tmp_path, kernel):
    (tmp_path / "0.tar.gz").write_bytes(whole)
    with pytest.raises(ParseError) as caught:
        list(completed([footprint({f"{READING}0.tar.gz": 1})], tmp_path, kernel))
    assert "cannot be unpacked" in caught.value.what


def test_gcov_that_complains_is_heard(counters, tmp_path, kernel):
    (kernel.place / "gcov" / "ld.so").write_text("#!/bin/sh\necho fs/eventfd.gcda:stamp mismatch with notes file >&2\n")
    with pytest.raises(ParseError) as caught:
        list(completed([footprint(read(counters, tmp_path))], tmp_path / "readings", kernel))
    assert "stamp mismatch" in caught.value.what
