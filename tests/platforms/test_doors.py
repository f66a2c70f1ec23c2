"""How attempts at doors are read: on what real attempts printed (`doors/`), and on what a guest may print."""

import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from tare.contract import survey
from tare.contract.bench import BrokenPromiseError
from tare.contract.doors import (
    DOORS,
    DOORS_TO_OTHERS,
    AttemptState,
    Door,
    DoorAnswers,
    DoorOutcome,
    DoorReach,
    HostSecrets,
    judge,
    order,
)
from tare.contract.escapes import _held
from tare.contract.survey import Survey, Surveyed, SurveyedDoor
from tare.errors import UsageError
from tare.image.image_build import agent_path
from tare.platforms import platform_registry

CAPTURED = Path(__file__).parent / "doors"
SECRET = "5ec4e7"
DOOR = Door("core-pattern", "root", ("file", "/proc/sys/kernel/core_pattern", "w", "proc", "sys/kernel/core_pattern"))
CANARY = Door("files", "files", ("files",), DoorReach.ALWAYS)
BY_NAME = {door.name: door for door in (*DOORS, *DOORS_TO_OTHERS)}


def outcomes(platform):
    """What became of the doors in a real instance; the host's own facts are in the file's first lines."""
    lines = (CAPTURED / f"{platform}.txt").read_text()
    facts = dict(re.findall(r"^# host\t(\w+)\t(.+)$", lines, flags=re.MULTILINE))
    host = HostSecrets(SECRET, facts, (int(facts.pop("began_ns")), int(facts.pop("ended_ns"))))
    answers = DoorAnswers.parse(lines)
    assert answers.whole
    return {door.name: judge(door, answers, host).state for door in DOORS}


def answers_of(text, name=DOOR.name):
    return DoorAnswers.parse("".join(f"door\t{name}\t{line}\n" for line in text) + "end\n")


def test_every_door_was_tried_in_every_captured_instance():
    for file in CAPTURED.glob("*.txt"):
        assert set(DoorAnswers.parse(file.read_text()).ways) == {door.name for door in DOORS}, file


def test_the_bare_host_leaves_its_doors_open():
    states = outcomes("native")
    for name in ("core-pattern", "sysctl-vm", "sysfs", "debugfs", "bpf", "perf", "clock", "swapoff", "acct"):
        assert states[name] is AttemptState.OPEN, name
    for name in ("proc-root", "chroot", "file-handles", "processes", "ptrace", "keys", "abstract-sockets", "host-ipc"):
        assert states[name] is AttemptState.OPEN, name
    assert states["hostname"] is states["reboot"] is AttemptState.OPEN  # it has the host's namespaces
    for name in ("host-ports", "metadata", "vsock", "freezer", "process-ids"):
        assert states[name] is AttemptState.OPEN, name
    assert states["kexec"] is AttemptState.ABSENT  # that host's kernel has none
    assert states["hostfs"] is AttemptState.ABSENT
    assert states["shares"] is AttemptState.CLOSED


def test_a_container_without_masks_leaves_the_kernels_settings_open():
    states = outcomes("runc")
    assert (
        states["core-pattern"] is states["sysctl-vm"] is states["keys"] is states["user-namespace"] is AttemptState.OPEN
    )
    for name in ("debugfs", "bpf", "perf", "clock", "swapoff", "acct", "hostname", "reboot", "dev-mem", "kmsg"):
        assert states[name] is AttemptState.CLOSED, name
    for name in ("proc-root", "chroot", "file-handles", "processes", "ptrace", "abstract-sockets", "release-agent"):
        assert states[name] is AttemptState.CLOSED, name
    assert states["host-ipc"] is AttemptState.OWN


def test_containers_on_an_engines_bridge_reach_neither_the_host_nor_what_is_behind_it():
    for platform in ("docker", "podman"):
        states = outcomes(platform)
        assert states["host-ports"] is states["metadata"] is AttemptState.CLOSED
        assert states["vsock"] is AttemptState.OPEN  # Docker 20.10 and Podman 4.3 have no rule against it
    assert states["limits"] is AttemptState.OWN  # of a group below the one with the limits
    assert states["process-ids"] is AttemptState.CLOSED  # Podman's own limit
    assert outcomes("docker")["freezer"] is AttemptState.CLOSED  # its filter makes no user namespace


def test_a_boot_id_of_its_own_does_not_hide_the_hosts_kernel():
    text = (CAPTURED / "nspawn.txt").read_text()
    host_boot, its_boot = (
        re.search(r"# host\tboot\t(.*)", text)[1],
        re.search(r"^fact\tboot\t(.*)", text, re.MULTILINE)[1],
    )
    assert host_boot != its_boot
    states = outcomes("nspawn")
    assert (
        states["core-pattern"] is states["sysfs"] is states["debugfs"] is AttemptState.OPEN
    )  # its guards can be taken away
    assert states["hostname"] is states["reboot"] is AttemptState.OWN


@pytest.mark.parametrize("platform", ["gvisor", "qemu-user-tcg"])
def test_a_kernel_of_its_own_leads_nowhere(platform):
    states = outcomes(platform)
    assert AttemptState.OPEN not in states.values()
    assert states["syslog"] is states["user-namespace"] is AttemptState.OWN


def test_of_a_machine_everything_is_its_own_but_the_canaries_are_not_reached():
    states = outcomes("qemu-user-tcg")
    for name in ("core-pattern", "sysrq", "kcore", "init-module", "kexec", "bpf", "disk-node", "clock", "process-ids"):
        assert states[name] is AttemptState.OWN, name
    for door in DOORS:
        if door.reach is DoorReach.ALWAYS:
            assert states[door.name] in {AttemptState.CLOSED, AttemptState.ABSENT}, door.name


HOST = HostSecrets(SECRET, {"boot": "b", "uts": "uts:[1]"}, (10, 20))


def test_only_the_secret_shows_that_the_host_was_reached():
    assert judge(CANARY, answers_of(["here\t=guess"], "files"), HOST).state is AttemptState.CLOSED
    assert judge(CANARY, answers_of([f"here\t={SECRET}"], "files"), HOST).state is AttemptState.OPEN


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ("fact\tboot\tb\n", AttemptState.OPEN),
        ("fact\tboot\tother\n", AttemptState.OWN),
        ("fact\tboot\tother\nfact\tsince_boot_ns\t15\n", AttemptState.OPEN),
        ("fact\tboot\tother\nfact\tsince_boot_ns\t21\n", AttemptState.OWN),
        ("fact\tboot\tother\nfact\tsince_boot_ns\tx\n", AttemptState.OWN),
        ("fact\tboot\tother\nfact\tsince_boot_ns\t" + "1" * 5_000 + "\n", AttemptState.OWN),
    ],
)
def test_a_kernels_door_is_open_where_the_kernel_is_the_hosts(facts, state):
    answers = DoorAnswers.parse(facts + "door\tcore-pattern\tas it is\tOK\nend\n")
    assert judge(DOOR, answers, HOST).state is state


def test_on_another_machine_the_kernel_there_counts():
    host = HostSecrets(SECRET, HOST.facts, (10, 20), shared_kernel=True)
    assert judge(DOOR, answers_of(["as it is\tOK"]), host).state is AttemptState.OPEN


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["as it is\tEROFS", "in a new mount\tEPERM"], AttemptState.CLOSED),
        (["as it is\tENOENT", "in a new mount\tENOSYS"], AttemptState.ABSENT),
        (["as it is\tENOENT", "in a new mount\tEPERM"], AttemptState.CLOSED),
        (["here\t-the host has no disk"], AttemptState.UNTRIED),
        (["as it is\tkilled by signal 31"], AttemptState.CLOSED),
        (["as it is\t-it took more than 20 s"], AttemptState.UNTRIED),
        (["as it is\t-it took more than 20 s", "in a new mount\tEPERM"], AttemptState.CLOSED),
        (["as it is\tEAFNOSUPPORT"], AttemptState.ABSENT),
        ([], AttemptState.UNTRIED),
    ],
)
def test_refusals_absence_and_what_cannot_be_tried_are_told_apart(words, state):
    assert judge(DOOR, answers_of(words), HOST).state is state


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("ENOENT", AttemptState.CLOSED),
        ("ENXIO", AttemptState.CLOSED),
        ("ENODEV", AttemptState.ABSENT),
        ("ENOSYS", AttemptState.ABSENT),
    ],
)
def test_bait_that_is_not_found_is_out_of_reach_unless_the_kernel_knows_no_such_thing(word, state):
    assert judge(CANARY, answers_of([f"here\t{word}"], "files"), HOST).state is state


def test_what_is_the_instances_own_is_told_apart_from_what_it_reaches_of_the_host():
    limits, shared = BY_NAME["limits"], HostSecrets(SECRET, HOST.facts, shared_kernel=True)
    for words, state in (
        (["as it is\tthe instance's own", "in a new mount\tEPERM"], AttemptState.OWN),
        (["as it is\tthe instance's own", "in a new mount\tOK"], AttemptState.OPEN),
        (["as it is\tENOENT", "in a new mount\tEPERM"], AttemptState.CLOSED),
    ):
        assert judge(limits, answers_of(words, "limits"), shared).state is state


def test_a_call_that_came_past_the_look_at_rights_is_open():
    shared = HostSecrets(SECRET, HOST.facts, shared_kernel=True)
    for word, state in (("EINVAL", AttemptState.OPEN), ("ENOEXEC", AttemptState.OPEN), ("EPERM", AttemptState.CLOSED)):
        assert judge(BY_NAME["init-module"], answers_of([f"by the call\t{word}"], "init-module"), shared).state is state


def test_what_a_guest_prints_besides_is_passed_over_and_reaches_no_terminal():
    answers = DoorAnswers.parse("hello\ndoor\tx\ndoor\tfiles\there\t\x1b]0;owned\x07\r\n\u2028\nend\n")
    assert answers.whole
    assert answers.ways == {"files": [("here", "?]0;owned??")]}
    assert not DoorAnswers.parse("door\tfiles\there\tENOENT\n").whole


def test_the_order_has_no_secret_and_a_line_for_each():
    lines = order(DOORS, {"canary": "/a"}).splitlines()
    assert lines[0] == "set\tcanary\t/a"
    assert len(lines) == 1 + len(DOORS)
    assert all(len(line.split("\t")) >= 2 for line in lines)


def test_names_are_told_once_and_each_says_what_it_would_gain():
    assert len(BY_NAME) == len(DOORS) + len(DOORS_TO_OTHERS)
    assert all(door.gain for door in BY_NAME.values())


@pytest.mark.parametrize("name", sorted(platform_registry.all_platforms()))
def test_platforms_declare_doors_that_there_are_with_the_reason(name):
    declared = platform_registry.all_platforms()[name].open_by_design
    assert set(declared) <= {*BY_NAME, "*"}
    assert all(declared.values())


def test_security_page_names_all_on_the_hosts_network():
    page = " ".join((Path(__file__).parents[2] / "SECURITY.md").read_text().split())
    platforms = platform_registry.all_platforms()
    declared = {
        name for name, platform in platforms.items() if {"host-ports", "metadata"} <= set(platform.open_by_design)
    }
    variants = {name for name in declared if any(name.startswith(f"{other}-") for other in declared)}
    for row in (r"\| on the host's network \((.*?)\)", r"that have the host's own network \((.*?)\)"):
        [names] = re.findall(row, page)
        assert set(names.replace("`", "").split(", ")) - {"native"} == declared - variants


def platform(**declared):
    return SimpleNamespace(
        open_by_design={name.replace("_", "-").replace("every", "*"): why for name, why in declared.items()}
    )


def test_an_open_door_that_is_not_declared_breaks_the_promise():
    opened = DoorOutcome(DOOR, AttemptState.OPEN, "as it is: OK")
    with pytest.raises(BrokenPromiseError, match=r"open: core-pattern \(root\), as it is: OK"):
        _held(platform(), [opened])
    assert _held(platform(core_pattern="so"), [opened]) == "open by design: core-pattern"
    assert _held(platform(every="so"), [opened]) == "open by design: core-pattern"


def test_what_is_declared_and_not_open_is_said():
    closed = [DoorOutcome(DOOR, AttemptState.CLOSED, ""), DoorOutcome(CANARY, AttemptState.UNTRIED, "no disk")]
    remark = _held(platform(core_pattern="so", sniff="not among these"), closed)
    assert remark == "declared open, and not so on this host: core-pattern; cannot be tried: files (no disk)"
    assert _held(platform(every="so"), closed[:1]) == ""


def surveyed(name, state=AttemptState.CLOSED, why=None, not_tried=None):
    doors = [] if not_tried else [SurveyedDoor(door="core-pattern", state=state, how="as it is: OK", by_design=why)]
    return Surveyed(platform=name, why_not=not_tried, doors=doors)


def test_runs_on_several_hosts_make_one_table():
    before = [surveyed("b", AttemptState.OPEN), surveyed("c", not_tried="it does not run here")]
    after = [surveyed("b"), surveyed("a", AttemptState.OPEN, "so"), surveyed("d", AttemptState.OPEN), surveyed("c")]
    joined = survey.merged([*before, *after, surveyed("d", not_tried="gone")])
    assert [(row.platform, bool(row.doors)) for row in joined] == [("a", True), ("b", True), ("c", True), ("d", True)]
    table = survey.table([*joined, surveyed("e", not_tried="no a|b")])
    assert "| core-pattern | a program run as the host's root when any process crashes | a | d |" in table
    assert "| b | 1 | 0 | 0 | 0 | 0 |" in table
    assert table.endswith("Not tried:\n- e: no a|b\n")


def test_no_text_of_a_survey_begins_a_line_of_its_own(tmp_path):
    text = "a\n::error::pwned\u2028| b"
    (door,) = surveyed("c", AttemptState.OPEN).doors
    data = Survey(schema="tare.doors/1", platforms=[surveyed("a"), surveyed("b", not_tried="no")]).model_dump()
    for platform in data["platforms"]:
        platform["platform"] += text
        platform["why_not"] = platform["why_not"] and f"no{text}"
    data["platforms"][0]["doors"] = [door.model_dump() | {"state": "open", "by_design": text}]
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps({"schema": data.pop("form"), **data}))
    table = survey.table(survey.read(file))
    assert not [line for line in table.split("\n") if line.startswith((":", "\u2028"))]
    assert "pwned" in table


def test_a_table_is_read_as_it_was_printed(tmp_path):
    file = tmp_path / "doors.json"
    file.write_text(Survey(schema="tare.doors/1", platforms=[surveyed("a")]).model_dump_json(by_alias=True))
    assert survey.read(file) == [surveyed("a")]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": "tare.doors/2", "platforms": []}', "\0" * 100])
def test_another_file_is_refused_in_one_line(tmp_path, text):
    file = tmp_path / "doors.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="none of `tare platform doors --json`"):
        survey.read(file)


def test_a_file_that_is_too_large_or_not_there_is_refused(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(survey.MAX_BYTES + 1)
    for name in ("large", "none"):
        with pytest.raises(UsageError):
            survey.read(tmp_path / name)


def test_a_state_that_there_is_not_is_refused():
    with pytest.raises(ValidationError):
        SurveyedDoor.model_validate({"door": "x", "state": "ajar", "how": "", "by_design": None})


def test_the_page_of_doors_has_them_all():
    rows = (Path(__file__).parents[2] / "docs" / "doors.md").read_text().splitlines()
    for door in BY_NAME.values():
        assert any(row.startswith(f"| {door.name} | {door.gain} |") for row in rows), door.name


def tried(lines):
    return subprocess.run([agent_path(), "doors"], input=lines, capture_output=True, text=True, check=False, timeout=60)


def test_the_agent_tries_what_it_is_told_to_and_leaves_no_folder():
    left = {*Path("/tmp").glob("tare-doors-*")}
    bait = {"process": f"no such {os.getpid()} process", "socket": f"no-such-{os.getpid()}"}
    done = tried(order([BY_NAME["host-ipc"], BY_NAME["processes"], BY_NAME["abstract-sockets"], BY_NAME["keys"]], bait))
    answers = DoorAnswers.parse(done.stdout)
    assert (done.returncode, done.stderr, answers.whole) == (0, "", True)
    assert answers.facts["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert answers.ways == {
        "host-ipc": [("by its namespace", "OK")],
        "processes": [("in /proc", "ENOENT")],
        "abstract-sockets": [("by connect", "ECONNREFUSED")],
        "keys": [("here", "-the host takes no keys")],
    }
    assert {*Path("/tmp").glob("tare-doors-*")} <= left


@pytest.mark.parametrize("line", ["files\tdance", "x\tfile\t/proc/sysrq-trigger", "alone"])
def test_the_agent_refuses_a_line_that_is_no_door(line):
    done = tried(f"{line}\n")
    assert done.returncode == 1
    assert not DoorAnswers.parse(done.stdout).whole
    assert "tare-agent: " in done.stderr


def test_the_agent_knows_the_attempts_of_every_door():
    """A door that it does not know ends it at once; none is tried here."""
    source = (Path(__file__).parents[2] / "agent" / "src" / "doors" / "mod.rs").read_text()
    known = set(re.findall(r"^ {8}\(\"(\w+)\", ", source, re.MULTILINE))
    assert {door.attempt[0] for door in BY_NAME.values()} == known
