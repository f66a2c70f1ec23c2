"""Surfaces as tables and as JSON."""

import json

from rich.console import Console

from fake_surfaces import CALLS, surface, tasks
from tare.features.kernel.surface_report import surface_terminal as shown
from tare.features.kernel.surface_report.surface_parts import surfaces_report, to_data
from tare.features.studies import literature
from tare.footprint_model import Call
from tare.report.sentences.numbers import EMPTY

STUDY = literature.load("anjali-2020")


def text(renderable, width=160):
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def lines(renderable):
    return [line.split() for line in text(renderable).splitlines()]


def render(*surfaces):
    return shown.render(surfaces_report(surfaces).surfaces)


def published(*surfaces):
    return shown.published(surfaces_report(surfaces, STUDY).beside)


def test_one_line_for_what_counts_and_one_for_what_does_not():
    printed = lines(render(surface()))
    assert ["docker", "1", "1", "1", "1", "0", "0", "filter", "2", "0", "mnt", "pid", "no", EMPTY] in printed
    assert ["not", "counted", "of", "docker:", "shim"] in printed


def test_several_kinds_of_processes_below_what_they_have_together():
    together = {**CALLS, "mount": Call.ALLOWED}
    every = (tasks("sentry"), tasks("stub", pid=9, uid=65534), tasks("stub", pid=10, uid=65534))
    printed = lines(render(surface("gvisor", *every, calls=together)))
    assert ["gvisor", "2", "1", "0", "1", "0", "0"] in printed
    assert any(line[:1] == ["sentry"] for line in printed)
    assert any(line[:3] == ["stub", "\N{MULTIPLICATION SIGN}", "2"] and "65534" in line for line in printed)


def test_what_could_not_be_read_is_marked_with_the_reason():
    every = (tasks("sentry"), tasks("stub", None, pid=9))
    printed = text(render(surface("gvisor", *every, unread=("stub: another process (exe) traces it",))))
    assert "1?" in printed
    assert "? gvisor: filters of the stub: another process (exe) traces it" in printed
    assert EMPTY in printed


def test_what_a_tenant_calls_itself_does_not_move_the_cursor():
    every = (tasks(program="\x1b[2J"), tasks(program="\x1b]0;x", pid=9, uid=1, devices=("/dev/\x1b[H",)))
    assert "\x1b" not in text(render(surface("docker", *every)))


def test_other_ways_and_places():
    printed = text(render(surface()))
    for part in ("i386: 3 of 9", "x32: not in this kernel", "/data (ext4)", "/dev/kvm"):
        assert part in printed


def test_the_studys_table_beside_ours():
    printed = lines(published(surface("docker"), surface("gvisor-host")))
    assert ["LXC", "all", "except", "44", "docker", "1", "1", "4"] in printed
    assert ["gVisor,", "host", "networking", "68", "gvisor-host", "1", "1", "4"] in printed
    assert ["Firecracker", "36", EMPTY, EMPTY, EMPTY, EMPTY] in printed
    assert surfaces_report([surface("qemu")]).beside is None


def test_a_study_counts_the_sentry_alone_and_so_does_a_line_of_ours():
    together = {**CALLS, "mount": Call.ALLOWED}
    every = (tasks("sentry"), tasks("gofer", together, pid=9))
    printed = lines(published(surface("gvisor", *every, calls=together)))
    assert ["gVisor", "53", "gvisor", "2", "1", "4"] in printed
    assert ["its", "sentry", "1", "1", "4"] in printed


def test_calls_are_listed_with_the_answers_of_their_filters():
    printed = text(shown.listed([surface()]))
    assert "conditional (1)\n    clone (allow, errno 38)" in printed
    assert "allowed (1)\n    read\n" in printed


def test_json_has_all_of_it():
    data = json.loads(json.dumps(to_data([surface()], [{"platform": "lxc"}], {"kernel": "Linux 6.1"}, STUDY)))
    assert data["schema"] == "tare.surface/1"
    assert data["platforms"][0]["counts"] == {
        "allowed": 1, "conditional": 1, "errno": 1, "trap": 1, "kill": 0, "notify": 0, "trace": 0,
    }  # fmt: skip
    assert data["platforms"][0]["tasks"][0]["writable"] == [{"path": "/data", "host": "/srv/data", "kind": "ext4"}]
    assert data["left_out"] == [{"platform": "lxc"}]
    assert data["published"]["figures"][0]["Firecracker"] == 36
