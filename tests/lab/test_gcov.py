"""gcov's JSON and gcc's counters, on what a kernel of the lab gave."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.errors import ParseError
from tare.features.kernel.lab import gcov
from tare.features.kernel.lab.kernel import TOP

#: Of the lab's kernel 6.1.192: notes, counters after a workload, and what gcov said of them, an object each.
CAPTURED = Path(__file__).parent.parent / "footprint" / "captured" / "lines"
RAN, RESTED = "fs/eventfd", "lib/sort"


def report_of(name):
    return (CAPTURED / f"{name}.json").read_bytes()


def counters(name):
    return (CAPTURED / f"{name}.gcda").read_bytes()


def covered(*documents):
    coverage = gcov.Coverage()
    for document in documents:
        coverage.add(document, TOP)
    return coverage


def test_lines_of_a_source_and_of_the_headers_that_it_has():
    coverage = covered(report_of(RAN))
    assert set(coverage.lines) == {source(file["file"]) for file in json.loads(report_of(RAN))["files"]}
    assert "fs/eventfd.c" in coverage.lines
    assert any(path.startswith("include/linux/") for path in coverage.lines)
    assert not [path for path in coverage.lines if path.startswith((".", "/"))]
    assert coverage.known == sum(len(lines) for lines in coverage.lines.values())


def source(file):
    return file.removeprefix("./")


def test_hits_are_lines_that_ran_by_path_and_number():
    document = json.loads(report_of(RAN))
    [mine] = [file for file in document["files"] if source(file["file"]) == "fs/eventfd.c"]
    expected = {f"fs/eventfd.c:{line['line_number']}": line["count"] for line in mine["lines"] if line["count"]}
    hits = covered(report_of(RAN)).hits()
    assert expected
    assert {name: count for name, count in hits.items() if name.startswith("fs/eventfd.c:")} == expected
    assert min(hits.values()) > 0
    assert covered(report_of(RESTED)).hits() == {}


def test_a_line_of_a_header_is_added_up_over_the_objects_that_have_it():
    once, twice = covered(report_of(RAN)), covered(report_of(RAN), report_of(RAN))
    assert twice.hits() == {name: 2 * count for name, count in once.hits().items()}
    assert twice.known == once.known


def test_calls_of_functions_are_kept_by_source():
    calls = covered(report_of(RAN)).functions["fs/eventfd.c"]
    assert calls["eventfd_write"] > 0
    assert "eventfd_show_fdinfo" in calls


def test_negative_hits_are_none_and_are_counted():
    document = json.loads(report_of(RESTED))
    document["files"][0]["lines"][0]["count"] = -3
    coverage = covered(json.dumps(document).encode())
    assert coverage.negative == 1
    assert coverage.hits() == {}


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format_version": "2", "files": []}',
        b'{"format_version": "1", "files": [{"file": "a.c", "lines": [{"line_number": 1.5, "count": 1}]}]}',
        b'{"format_version": "1", "files": [{"file": "a.c", "lines": [{"line_number": 1, "count": "many"}]}]}',
        b'{"format_version": "1", "files": [{"file": "a.c", "lines": []}]}',
    ],
)
def test_what_is_not_gcovs_json_is_refused(document):
    with pytest.raises(ParseError):
        covered(document)


def test_paths_are_relative_to_the_tree():
    assert gcov.relative("mm/mmap.c", TOP) == "mm/mmap.c"
    assert gcov.relative("./include/linux/mm.h", TOP) == "include/linux/mm.h"
    assert gcov.relative("arch/x86/kvm/../../../virt/kvm/kvm_main.c", TOP) == "virt/kvm/kvm_main.c"
    assert gcov.relative(f"{TOP}/include/generated/asm-offsets.h", TOP) == "include/generated/asm-offsets.h"


def test_counters_tell_whether_anything_ran():
    assert gcov.ran(counters(RAN))
    assert not gcov.ran(counters(RESTED))


@pytest.mark.parametrize("name", [RAN, RESTED])
def test_notes_and_counters_of_one_compilation_have_one_stamp(name):
    assert gcov.stamp((CAPTURED / f"{name}.gcno").read_bytes()) == gcov.stamp(counters(name))
    assert gcov.stamp(counters(RAN)) != gcov.stamp(counters(RESTED))


@given(st.integers(min_value=0))
def test_counters_that_are_cut_short_are_refused_or_have_whole_records(length):
    whole = counters(RESTED)
    cut = whole[: length % len(whole)]
    try:
        assert not gcov.ran(cut)
    except ParseError:
        return
    assert len(cut) >= 16, "a header at least"


@given(st.binary(max_size=200))
def test_bytes_from_anywhere_are_no_counters(data):
    with pytest.raises(ParseError):
        gcov.ran(data)
    with pytest.raises(ParseError):
        list(gcov.counters_in(data))


def test_no_other_record_passes_for_counters():
    head = counters(RAN)[:16]
    for record in (b"\x00\x00\x00\x02\x04\x00\x00\x00abcd", b"\x00\x00\xa1\x01\xff\x00\x00\x00"):
        with pytest.raises(ParseError):
            gcov.ran(head + record)
