"""The state of a host from what Ansible tells of it: values in, values out."""

import pytest

from tare.fleet import host_states
from tare.fleet.host_states import HostRow, HostState
from tare.fleet.run_fleet import file_name

NOW = 1_700_000_000
PROBE = """\
Welcome, said a login script
tare-fleet uid=0
tare-fleet machine=x86_64
tare-fleet time=1700000003
tare-fleet python=/usr/bin/python3
tare-fleet version=3.11
tare-fleet has=packages-3.11-x86_64-0123456789abcdef
"""


def event(kind, task, **result):
    return {"event": kind, "event_data": {"host": "alpha", "task": task, "res": result}}


def after(*events):
    row = HostRow("alpha")
    for each in events:
        row = host_states.told(row, each, NOW)
    return row


def test_a_host_goes_through_its_states():
    looked = after(event("runner_on_start", "look"), event("runner_on_ok", "look", stdout=PROBE))
    assert (looked.state, looked.note) == (HostState.LOOKING, "")
    progress = event("runner_retry", "wait", state="running", blocks=3, left_s=61.5, doing="startup")
    running = host_states.told(looked, progress, NOW)
    assert (running.state, running.blocks, running.left_s, running.started) == (HostState.RUNNING, 3, 61.5, True)
    whole = host_states.told(running, event("runner_on_ok", "wait", state="complete", sha256="ab" * 32, size=7), NOW)
    assert (whole.state, whole.sha256, whole.size) == (HostState.RUNNING, "ab" * 32, 7)
    assert host_states.told(whole, event("runner_on_ok", "fetch", changed=True), NOW).state is HostState.FETCHED


@pytest.mark.parametrize(
    ("task", "result", "reason"),
    [
        ("look", {"rc": 0, "stdout": f"{PROBE}tare-fleet lack=its Python is 3.9\n"}, "its Python is 3.9"),
        ("look", {"msg": "Missing sudo password"}, "it wants a password to become root"),
        ("look", {"msg": "Task failed: Incorrect su password"}, "it wants another password to become root"),
        ("push", {"msg": "Failed to transfer: [Errno 28] No space left on device"}, "its disk is full"),
        ("start", {"msg": "tare doctor: rights: not root"}, "tare doctor: rights"),
        ("fetch", {"msg": "checksum mismatch"}, "fetch: checksum mismatch"),
        ("look", {"rc": 127, "msg": "non-zero return code", "stderr": "sh: no such thing"}, "sh: no such thing"),
        ("start", {}, "it failed without a word"),
    ],
)
def test_a_failed_task_gives_its_reason(task, result, reason):
    row = after(event("runner_on_failed", task, **result))
    assert row.state is HostState.FAILED
    assert row.reason.startswith(reason)


def test_a_task_of_several_items_has_the_reason_of_the_one_that_failed():
    row = after(
        event("runner_item_on_failed", "push", msg="[Errno 28] No space left on device"),
        event("runner_on_failed", "push", msg="One or more items failed"),
    )
    assert row.reason.startswith("its disk is full")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Failed to connect: @@@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@@@", "its host key"),
        ("root@198.18.0.2: Permission denied (publickey).", "it lets nobody in"),
        ("ssh: connect to host 198.18.0.2 port 22: Connection refused", "it is not reached"),
        ("Data could not be sent to remote host: Broken pipe", "it is not reached"),
    ],
)
def test_a_host_that_is_not_reached_is_lost_with_the_reason(message, reason):
    row = after(event("runner_on_unreachable", "look", msg=message))
    assert row.state is HostState.LOST
    assert row.reason.startswith(reason)


@pytest.mark.parametrize(
    ("clock", "note"), [(3, ""), (-59, ""), (7200, "2.0 h ahead"), (-86_400 * 365, "365 days behind")]
)
def test_a_clock_that_is_off_is_a_note(clock, note):
    row = after(event("runner_on_ok", "look", stdout=f"tare-fleet time={NOW + clock}\n"))
    assert row.note.endswith(note)
    assert bool(row.note) == bool(note)


def test_what_a_host_says_is_bounded_and_in_one_line():
    row = after(event("runner_on_failed", "start", msg="a\nerror: forged\r" + "x" * 100_000))
    assert "\n" not in row.reason
    assert "\r" not in row.reason
    assert len(row.reason) <= host_states.MAX_REASON
    strange = {"blocks": "many", "left_s": -1, "doing": ["x"] * 1000, "sha256": "z" * 1000, "size": "1"}
    odd = after(event("runner_retry", "wait", state="running", **strange))
    assert (odd.blocks, odd.left_s, odd.size) == (None, None, 0)
    assert len(odd.doing) <= 60
    assert len(odd.sha256) == 64
    no_mapping = {"event": "runner_on_ok", "event_data": {"host": "alpha", "task": "wait", "res": ["x"]}}
    assert after(no_mapping) == HostRow("alpha")


def test_a_host_that_ended_is_not_at_work_again_by_a_late_event():
    lost = after(event("runner_on_unreachable", "wait", msg="timed out"), event("runner_on_start", "fetch"))
    assert lost.state is HostState.LOST


def test_facts_are_taken_from_the_probe_alone():
    assert host_states.facts(PROBE)["version"] == "3.11"
    assert host_states.facts("tare-fleet a=1\n tare-fleet b=2\ntare-fleet a=3") == {"a": "3"}


@pytest.mark.parametrize(("host", "name"), [("alpha", "alpha"), ("web-1.example", "web-1.example")])
def test_a_plain_name_is_the_file_s(host, name):
    assert file_name(host) == name


def test_names_that_no_file_has_are_told_apart():
    names = [file_name(host) for host in ("a/b", "a_b", "../a", ".a", "[2001:db8::1]", "..")]
    assert len({*names}) == len(names)
    assert all("/" not in name and not name.startswith(".") for name in names)
