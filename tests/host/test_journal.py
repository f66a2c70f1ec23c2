import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tare.errors import HostError
from tare.host import janitor
from tare.host.journal import Belongings, Journal, sweep


def test_a_thing_is_on_the_disk_before_it_is_made_and_forgotten_when_it_is_gone(tmp_path):
    journal = Journal(tmp_path / "journal")
    wanted = tmp_path / "thing"
    with Belongings(journal) as things:
        things.own(janitor.folder(wanted))
        assert not wanted.exists()
        assert [entry.thing for entry in journal.entries()] == [janitor.folder(wanted)]
        (wanted / "below").mkdir(parents=True)
    assert not wanted.exists()
    assert journal.entries() == []


def test_things_go_in_reverse_order_and_one_failure_does_not_keep_the_others(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "journal")
    seen = []

    def remove(thing):
        seen.append(thing.facts["path"])
        if thing.facts["path"] == "/two":
            raise HostError("two stays")

    monkeypatch.setattr(janitor, "remove", remove)
    things = Belongings(journal)
    things.own(janitor.Thing("folder", {"path": "/one"}), janitor.Thing("folder", {"path": "/two"}))
    things.own(janitor.Thing("folder", {"path": "/three"}))
    with pytest.raises(HostError, match="two stays"):
        things.release()
    assert seen == ["/three", "/two", "/one"]
    assert [entry.thing.facts["path"] for entry in journal.entries()] == ["/two"]


def test_the_error_under_way_is_not_hidden_by_one_of_the_cleaning(tmp_path, monkeypatch):
    monkeypatch.setattr(janitor, "remove", lambda thing: (_ for _ in ()).throw(HostError("cannot be removed")))
    journal = Journal(tmp_path)
    with pytest.raises(ValueError, match="first"), Belongings(journal) as things:  # noqa: PT012
        things.own(janitor.folder(tmp_path / "x"))
        raise ValueError("first")
    assert len(journal.entries()) == 1


def test_a_sweep_leaves_the_things_of_a_living_run_alone(tmp_path):
    journal = Journal(tmp_path / "journal")
    wanted = tmp_path / "thing"
    wanted.mkdir()
    Belongings(journal).own(janitor.folder(wanted))
    steps = list(sweep(journal))
    assert wanted.exists()
    assert len(steps) == 1
    assert str(os.getpid()) in steps[0].kept


def test_a_sweep_removes_what_a_killed_run_left(tmp_path):
    program = textwrap.dedent("""
        import os, pathlib, sys, time
        from tare.host import janitor
        from tare.host.journal import Belongings, Journal
        base = pathlib.Path(sys.argv[1])
        Belongings(Journal(base / "journal")).own(janitor.folder(base / "thing"))
        (base / "thing").mkdir()
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
    assert [step.thing.kind for step in would] == ["folder"]
    assert (tmp_path / "thing").exists()
    assert [step.kept for step in sweep(journal)] == [None]
    assert not (tmp_path / "thing").exists()
    assert journal.entries() == []


def test_an_entry_whose_writing_was_cut_off_means_that_nothing_was_made(tmp_path):
    journal = Journal(tmp_path)
    (tmp_path / "00-folder-x.json").write_text('{"kind": "fol')
    assert journal.entries() == []
    assert list(tmp_path.iterdir()) == []


def test_a_thing_of_a_later_version_stays_and_is_named(tmp_path):
    journal = Journal(tmp_path)
    [entry] = journal.write(janitor.Thing("teapot", {"name": "x"}))
    data = json.loads(entry.file.read_text())
    data["owner"]["pid"] = 1 << 22  # nobody's
    entry.file.write_text(json.dumps(data))
    [step] = list(sweep(journal))
    assert "teapot" in step.kept
    assert len(journal.entries()) == 1


def test_a_folder_with_a_mount_in_it_is_not_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(janitor, "_mount_points", lambda: {str(tmp_path / "thing" / "root")})
    (tmp_path / "thing").mkdir()
    with pytest.raises(HostError, match="is mounted in it"):
        janitor.remove(janitor.folder(tmp_path / "thing"))
    assert (tmp_path / "thing").exists()


def test_removing_what_was_never_made_does_nothing(tmp_path):
    for thing in (
        janitor.folder(tmp_path / "no"),
        janitor.mount(tmp_path / "no"),
        janitor.network_namespace("tare-no-such"),
        janitor.link("tareno"),
        janitor.control_group("tare-no-such/group"),
        janitor.oci_container("runc", tmp_path / "state", "tare-no"),
        janitor.kernel_module("tare_no_such"),
    ):
        janitor.remove(thing)


def test_more_is_learned_of_a_thing_in_its_place(tmp_path):
    journal = Journal(tmp_path / "journal")
    things = Belongings(journal)
    first, last = janitor.folder(tmp_path / "a"), janitor.file(tmp_path / "b")
    things.own(first, last)
    things.learn(first, {"below": str(tmp_path)})
    assert {str(entry.thing.facts) for entry in journal.entries()} == {
        str({"path": str(tmp_path / "a"), "below": str(tmp_path)}),
        str({"path": str(tmp_path / "b")}),
    }
    things.release()
    assert journal.entries() == []
