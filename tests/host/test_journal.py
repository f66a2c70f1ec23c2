import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import docker.errors
import pytest

from tare.errors import HostError
from tare.host import own_namespaces
from tare.host.kernel import mounts, process_table
from tare.host.resources import removers, unremoved
from tare.host.resources.claims import LXC_LOCKS
from tare.host.resources.journal import FORMAT, CleanupStack, Journal, Owner, clear_the_way, sweep


def test_a_thing_is_on_the_disk_before_it_is_made_and_forgotten_when_it_is_gone(tmp_path):
    journal = Journal(tmp_path / "journal")
    folder = tmp_path / "work" / "thing"
    with CleanupStack(journal) as cleanup:
        cleanup.own(removers.folder(folder))
        assert not folder.exists()
        assert [entry.resource for entry in journal.entries()] == [removers.folder(folder)]
        (folder / "below").mkdir(parents=True)
    assert not folder.exists()
    assert journal.entries() == []


def test_things_go_in_reverse_order_and_one_failure_does_not_keep_the_others(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "journal")
    removed = []

    first, two, three = (tmp_path / "work" / name for name in ("one", "two", "three"))

    def remove(resource):
        removed.append(resource)
        if resource == removers.folder(two):
            raise HostError("two stays")

    monkeypatch.setattr(removers, "remove", remove)
    cleanup = CleanupStack(journal)
    cleanup.own(removers.folder(first), removers.folder(two))
    cleanup.own(removers.folder(three))
    with pytest.raises(HostError, match="two stays"):
        cleanup.release()
    assert removed == [removers.folder(three), removers.folder(two), removers.folder(first)]
    assert [entry.resource for entry in journal.entries()] == [removers.folder(two)]


def test_the_error_under_way_is_not_hidden_by_one_of_the_cleaning(tmp_path, monkeypatch):
    monkeypatch.setattr(removers, "remove", lambda resource: (_ for _ in ()).throw(HostError("cannot be removed")))
    journal = Journal(tmp_path / "journal")
    with pytest.raises(ValueError, match="first"), CleanupStack(journal) as cleanup:  # noqa: PT012
        cleanup.own(removers.folder(tmp_path / "work" / "x"))
        raise ValueError("first")
    assert len(journal.entries()) == 1


def test_a_sweep_leaves_the_things_of_a_living_run_alone(tmp_path):
    journal = Journal(tmp_path / "journal")
    folder = tmp_path / "work" / "thing"
    folder.mkdir(parents=True)
    CleanupStack(journal).own(removers.folder(folder))
    steps = list(sweep(journal))
    assert folder.exists()
    assert len(steps) == 1
    assert str(os.getpid()) in steps[0].kept


def test_a_sweep_removes_what_a_killed_run_left(tmp_path):
    program = textwrap.dedent("""
        import os, pathlib, sys, time
        from tare.host.resources import removers
        from tare.host.resources.journal import CleanupStack, Journal
        base = pathlib.Path(sys.argv[1])
        CleanupStack(Journal(base / "journal")).own(removers.folder(base / "work" / "thing"))
        (base / "work" / "thing").mkdir(parents=True)
        print("made", flush=True)
        time.sleep(60)
    """)
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"made\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    journal = Journal(tmp_path / "journal")
    would = list(sweep(journal, dry_run=True))
    assert [step.resource.kind for step in would] == ["folder"]
    assert (tmp_path / "work" / "thing").exists()
    assert [step.kept for step in sweep(journal)] == [None]
    assert not (tmp_path / "work" / "thing").exists()
    assert journal.entries() == []


def nobodys(entry, **changes):
    """Make an entry that of a process which is dead, and otherwise different."""
    data = json.loads(entry.file.read_text())
    data["owner"]["pid"] = 1 << 22
    entry.file.write_text(json.dumps({**data, **changes}))


def test_a_setting_of_a_users_network_ended_with_it(tmp_path, monkeypatch):
    """Only the network's settings are a user's to change, and this one is the host's again."""
    journal = Journal(tmp_path / "journal")
    [entry] = journal.write(removers.setting(Path("/proc/sys/net/ipv4/ip_forward"), "0", "1"))
    nobodys(entry)
    monkeypatch.setattr(own_namespaces, "inside", lambda: True)
    monkeypatch.setattr(removers, "remove", lambda _: pytest.fail("it is another network's"))
    assert [step.kept for step in sweep(journal)] == [None]
    assert journal.entries() == []


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "no whole entry"),
        ('{"kind": "fol', "no whole entry"),
        ('{"kind": "folder", "facts": {"path": 3.5}, "owner": {}}', "no whole entry"),
        (None, "does not know its colour"),
    ],
    ids=["created and not yet written", "cut off", "odd", "a new field"],
)
def test_an_entry_that_cannot_be_read_is_kept_and_told(tmp_path, content, why, dry_run):
    journal = Journal(tmp_path / "journal")
    [entry] = journal.write(removers.folder(tmp_path / "work" / "thing"))
    nobodys(entry, colour="blue")
    if content is not None:
        entry.file.write_text(content)
    before = entry.file.read_text()
    [step] = sweep(journal, dry_run=dry_run)
    assert str(entry.file) in str(step.resource)
    assert why in step.kept
    assert entry.file.read_text() == before


def test_an_entry_of_a_later_format_says_who_can_clean(tmp_path):
    journal = Journal(tmp_path / "journal")
    [entry] = journal.write(removers.folder(tmp_path / "work" / "thing"))
    assert json.loads(entry.file.read_text())["format"] == FORMAT
    nobodys(entry, format=FORMAT + 1, colour="blue")
    [step] = sweep(journal)
    assert f"its format is {FORMAT + 1}" in step.kept
    assert "clean with the version that made it" in step.kept
    assert entry.file.exists()


@pytest.mark.thorough
def test_an_entry_never_stands_half_written_under_its_name(tmp_path):
    """A reader that looks all the time sees whole entries, and a writer that is killed leaves none that is not."""
    program = textwrap.dedent("""
        import pathlib, sys
        from tare.host.resources import removers
        from tare.host.resources.journal import Journal
        journal = Journal(pathlib.Path(sys.argv[1]) / "journal")
        print("begins", flush=True)
        while True:
            [entry] = journal.write(removers.folder(pathlib.Path(sys.argv[1], "work", "x" * 4000)))
            journal.forget(entry)
    """)
    journal, count = Journal(tmp_path / "journal"), 0
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begins\n"
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert journal.unreadable() == []
            count += len(journal.entries())
        process.kill()
    assert count > 0, "the writer was never met"


def test_what_a_dead_writer_began_is_removed_and_that_of_a_living_one_is_not(tmp_path):
    journal, me = Journal(tmp_path), Owner.me()
    mine, dead, foreign = tmp_path / f".1-x-2.json.{me.pid}.{me.start_ticks}.{me.boot}", tmp_path / (
        f".1-x-3.json.{1 << 22}.{me.start_ticks}.{me.boot}"
    ), tmp_path / ".somebody-elses"  # fmt: skip
    for file in (mine, dead, foreign):
        file.touch()
    assert list(sweep(journal, dry_run=True)) == []
    assert dead.exists()
    assert list(sweep(journal)) == []
    assert (mine.exists(), dead.exists(), foreign.exists()) == (True, False, True)


def test_what_cannot_be_written_leaves_no_entry(tmp_path):
    journal = Journal(tmp_path / "journal")
    (tmp_path / "journal").mkdir()
    folder = removers.folder(tmp_path / "work" / "x")
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, resource.RLIM_INFINITY))
    try:
        with pytest.raises(HostError, match="cannot be written"):
            journal.write(folder, removers.folder(tmp_path / "work" / ("x" * 900)))  # a longer entry
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert list((tmp_path / "journal").iterdir()) == []


def test_an_interrupt_after_the_writing_leaves_no_entry_that_nobody_removes(tmp_path, monkeypatch):
    """Seen: a campaign that was ended by SIGTERM left the entry of a mount that it had not made."""

    def interrupted(folder):
        assert len(list(folder.glob("*.json"))) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{Journal.__module__}.fsync_folder", interrupted)
    cleanup = CleanupStack(Journal(tmp_path / "journal"))
    with pytest.raises(KeyboardInterrupt):
        cleanup.own(*(removers.folder(tmp_path / "work" / name) for name in ("one", "two")))
    assert list((tmp_path / "journal").iterdir()) == []


def test_an_interrupt_in_the_middle_of_writing_leaves_no_entry(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "journal")

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt), CleanupStack(journal) as cleanup:
        cleanup.own(removers.folder(tmp_path / "work" / "thing"))
    assert list((tmp_path / "journal").iterdir()) == []


@pytest.mark.parametrize("error", [KeyError("path"), OSError(5, "Input/output error"), HostError("it is busy")])
def test_whatever_a_remover_trips_over_is_noted_and_the_others_come_to_their_turn(tmp_path, monkeypatch, error):
    def fails(facts):
        raise error

    monkeypatch.setitem(removers._REMOVERS, "xen", fails)
    monkeypatch.setattr(unremoved, "_noted", {})
    journal = Journal(tmp_path / "journal")
    resource = tmp_path / "work" / "thing"
    resource.mkdir(parents=True)
    cleanup = CleanupStack(journal)
    cleanup.own(removers.folder(resource), removers.xen_domain("tare-x"))
    with pytest.raises(ValueError, match="first"), cleanup:
        raise ValueError("first")
    assert not resource.exists()
    [left] = unremoved.still_there()
    assert str(left).startswith("left on this host: xen tare-x (")
    assert [entry.resource.kind for entry in journal.entries()] == ["xen"]
    left.entry.unlink()
    assert unremoved.still_there() == []


def test_what_is_in_the_way_of_a_campaign_and_stays_is_noted(tmp_path, monkeypatch):
    monkeypatch.setattr(unremoved, "_noted", {})
    journal = Journal(tmp_path / "journal")
    folder = tmp_path / "work" / "folder"
    folder.mkdir(parents=True)
    living, stays, odd = journal.write(*(removers.file(folder) for _ in range(3)))
    nobodys(stays)
    odd.file.write_text("")
    clear_the_way(journal)
    assert [left.entry for left in unremoved.still_there()] == [stays.file, odd.file]
    assert living.file.exists()


def test_a_thing_of_a_later_version_stays_and_is_named(tmp_path):
    journal = Journal(tmp_path / "journal")
    [entry] = journal.write(removers.xen_domain("tare-x"))
    nobodys(entry, kind="teapot")
    [step] = list(sweep(journal))
    assert "teapot" in step.kept
    assert "clean with the version that made it" in step.kept
    assert entry.file.exists()


def test_a_folder_with_a_mount_in_it_is_not_removed(tmp_path, monkeypatch):
    """One that cannot be unmounted: it is shown where nothing is."""
    monkeypatch.setattr(mounts, "points", lambda: [str(tmp_path / "thing" / "root")])
    (tmp_path / "thing").mkdir()
    with pytest.raises(HostError, match="is mounted in it"):
        removers.remove(removers.folder(tmp_path / "thing"))
    assert (tmp_path / "thing").exists()


def test_what_somebody_else_removes_at_the_same_moment_is_removed(tmp_path):
    (path := tmp_path / "thing").touch()
    removers._remove_by(["sh", "-c", f"rm {path}; echo 'No such file' >&2; exit 1"], path.exists)
    path.touch()
    with pytest.raises(HostError, match=r"`false` failed with 1") as error:
        removers._remove_by(["false"], path.exists, fix="end what uses it")
    assert error.value.fix == "end what uses it"


class Daemon:
    """A Docker client whose daemon knows one container, and refuses its removal at first as Docker 20.10 did."""

    REFUSAL = "Could not kill running container 698d7c, cannot remove - Container 698d7c is not running"

    def __init__(self, refusals):
        self.containers = self
        self.refusals = refusals
        self.there = True

    def get(self, name):
        if not self.there:
            raise docker.errors.NotFound(f"No such container: {name}")
        return self

    def remove(self, *, force, v):
        assert force
        assert v
        if self.refusals:
            self.refusals -= 1
            raise docker.errors.APIError("500 Server Error", explanation=self.REFUSAL)
        self.there = False


@pytest.mark.parametrize("refusals", [0, 2])
def test_a_container_whose_end_its_daemon_has_not_heard_of_is_removed_once_it_has(refusals):
    daemon = Daemon(refusals)
    removers._remove_from_docker(daemon, "tare-x", known=True)
    assert not daemon.there


def test_a_container_that_another_removes_meanwhile_is_gone(monkeypatch):
    daemon = Daemon(1)
    monkeypatch.setattr(removers.time, "sleep", lambda _: setattr(daemon, "there", False))
    removers._remove_from_docker(daemon, "tare-x", known=False)
    assert daemon.refusals == 0


def test_a_container_whose_removal_is_refused_for_good_is_told_with_the_daemons_words(monkeypatch):
    monkeypatch.setattr(removers, "DOCKER_LEARNS_S", 0)
    with pytest.raises(HostError, match="container tare-x cannot be removed: Could not kill running container"):
        removers._remove_from_docker(Daemon(1000), "tare-x", known=True)


def test_removing_what_was_never_made_does_nothing(tmp_path):
    for never_made in (
        removers.folder(tmp_path / "no"),
        removers.mount(tmp_path / "no"),
        removers.network_namespace("tare-no-such"),
        removers.link("tareno"),
        removers.control_group("tare-no-such/group"),
        removers.oci_container("runc", tmp_path / "state", "tare-no"),
        removers.kernel_module("tare_no_such"),
    ):
        removers.remove(never_made)


def test_more_is_learned_of_a_thing_in_its_place(tmp_path):
    journal = Journal(tmp_path / "journal")
    cleanup = CleanupStack(journal)
    first, last = removers.folder(tmp_path / "work" / "a"), removers.file(tmp_path / "work" / "b")
    cleanup.own(first, last)
    cleanup.learn(first, {"below": str(LXC_LOCKS)})
    assert {str(entry.resource.facts) for entry in journal.entries()} == {
        str({**first.facts, "below": str(LXC_LOCKS)}),
        str(last.facts),
    }
    cleanup.release()
    assert journal.entries() == []


def test_a_command_of_a_killed_run_makes_nothing_after_the_sweep(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    late = tmp_path / "work" / "late"
    script = f"""
from pathlib import Path
from tare.host import processes
from tare.host.resources import removers
from tare.host.resources.journal import Journal
Journal(Path({str(tmp_path / "journal")!r})).write(removers.folder(Path({str(late)!r})))
print("begins", flush=True)
processes.run(["sh", "-c", "sleep 1; mkdir -p {late}"])
"""
    victim = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert victim.stdout.readline() == b"begins\n"
    while not any(str(victim.pid) == by.split()[0] for by in process_table.variables("TARE_RUN_BY").values()):
        time.sleep(0.01)
    victim.kill()
    victim.communicate()
    journal = Journal(tmp_path / "journal")
    assert [step.kept for step in sweep(journal)] == [None]
    assert journal.entries() == []
    time.sleep(1.2)
    assert not late.exists()


def test_what_a_guest_holds_back_is_let_go_before_anything_is_removed(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(removers.cgroup, "let_go", lambda path: order.append(f"let go {path}"))
    monkeypatch.setattr(removers, "remove", lambda resource: order.append(f"remove {resource}"))
    journal = Journal(tmp_path / "journal")
    folder = removers.folder(tmp_path / "work" / "x0")
    resources = [removers.control_group("tare"), removers.control_group("tare/x0"), folder]
    with CleanupStack(journal) as cleanup:
        cleanup.own(*resources)
    in_order = ["let go tare/x0", f"remove {folder}", "remove cgroup tare/x0", "remove cgroup tare"]
    assert order == in_order
    order.clear()
    journal.write(removers.control_group("tare/x1"))
    for entry in journal.write(*resources[1:]):
        nobodys(entry)
    list(sweep(journal, dry_run=True))
    assert order == []
    list(sweep(journal))
    assert order == in_order[:-1]


@pytest.mark.parametrize("error", [HostError("they stay"), OSError(24, "Too many open files")])
def test_a_guest_that_cannot_be_ended_keeps_no_remover_from_its_turn(tmp_path, monkeypatch, error):
    def fails(_):
        raise error

    removed = []
    monkeypatch.setattr(removers.cgroup, "let_go", fails)
    monkeypatch.setattr(removers, "remove", removed.append)
    with CleanupStack(Journal(tmp_path / "journal")) as cleanup:
        cleanup.own(removers.control_group("tare/x0"))
    assert removed == [removers.control_group("tare/x0")]
