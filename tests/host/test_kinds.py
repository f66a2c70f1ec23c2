"""Kinds of resources of plug-ins: only registered ones are obeyed, by rules from a closed list."""

import dataclasses
import json
import subprocess
import sys

import pytest

from tare import plugins
from tare.contract.leftovers import left_on_host
from tare.errors import HostError, UsageError
from tare.host.kernel.owner import Owner
from tare.host.resources import claims, kinds, removers
from tare.host.resources.journal import CleanupStack, Journal, Unreadable, sweep
from tare.host.resources.kinds import FactRule, OneOf, ResourceKind
from tare.host.resources.resource import HostResource

REMOVED = []
KIND = ResourceKind(
    "tare-x:box",
    {"name": FactRule.SANDBOX, "mode": OneOf(("soft", "hard"))},
    lambda facts: REMOVED.append(dict(facts)),
    {"place": FactRule.PLACE, "process": FactRule.PROCESS},
)


@pytest.fixture
def plugged(monkeypatch):
    monkeypatch.setattr(kinds, "registered", lambda: {KIND.name: KIND})
    REMOVED.clear()


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "journal")


def test_a_registered_kind_goes_through_the_journal_to_its_remover(plugged, journal):
    cleanup = CleanupStack(journal)
    box = KIND.resource(name="tare-ab12cx0", mode="soft")
    cleanup.own(box)
    assert [entry.resource for entry in journal.entries()] == [box]
    cleanup.learn(box, {"process": kinds.process(1)})
    cleanup.release()
    assert [facts["name"] for facts in REMOVED] == ["tare-ab12cx0"]
    assert journal.entries() == []


@pytest.mark.parametrize(
    "facts",
    [
        {"name": "foreign", "mode": "soft"},
        {"name": "tare-a", "mode": "rm -rf /"},
        {"name": "tare-a"},
        {"name": "tare-a", "mode": "soft", "more": "1"},
        {"name": "tare-a", "mode": "soft", "place": "/etc"},
        {"name": "tare-a", "mode": "soft", "place": "/x/work/../../etc"},
        {"name": "tare-a", "mode": "soft", "process": "17"},
        {"name": "tare-a", "mode": "soft", "process": "17 18 `id`"},
        {"name": ["tare-a"], "mode": "soft"},
    ],
)
def test_facts_beyond_its_rules_are_neither_written_nor_obeyed(plugged, journal, facts):
    with pytest.raises(HostError, match="the journal takes nothing"):
        journal.write(HostResource(KIND.name, facts))
    [entry] = journal.write(KIND.resource(name="tare-a", mode="soft"))
    record = json.loads(entry.file.read_text())
    record["facts"] = facts
    record["owner"]["pid"] = 2**22 + 1
    entry.file.write_text(json.dumps(record))
    [step] = list(sweep(journal))
    assert isinstance(step.resource, Unreadable)
    assert entry.file.exists()
    assert REMOVED == []


def test_a_kind_that_nobody_registers_is_told_by_name_and_never_removed(plugged, journal, monkeypatch):
    [entry] = journal.write(KIND.resource(name="tare-a", mode="soft"))
    monkeypatch.setattr(kinds, "registered", dict)
    [unread] = journal.unreadable()
    assert "'tare-x:box', which no plug-in that is installed here registers" in unread.why
    assert "install the package tare-x again, and then `tare clean`" in unread.why
    with pytest.raises(HostError, match="no plug-in that is installed here"):
        removers.remove(entry.resource)
    assert next(iter(sweep(journal))).kept is not None
    assert entry.file.exists()


def test_what_a_remover_trips_over_stays_and_others_come_to_their_turn(journal, monkeypatch):
    failing = dataclasses.replace(KIND, remove=lambda facts: 1 / 0)
    monkeypatch.setattr(kinds, "registered", lambda: {KIND.name: failing})
    cleanup = CleanupStack(journal)
    cleanup.own(failing.resource(name="tare-a", mode="soft"))
    with pytest.raises(HostError, match="tare-x:box tare-a soft cannot be removed: ZeroDivisionError"):
        cleanup.release()
    assert len(journal.entries()) == 1


def test_a_place_behind_a_link_is_not_the_place(plugged, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HostError, match="a link leads to"):
        removers.remove(KIND.resource(name="tare-a", mode="soft", place=str(tmp_path / "work" / "box")))
    assert REMOVED == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": "box"}, "not PACKAGE:WORD"),
        ({"must": {"name": r".*"}}, "none of Rule and no OneOf"),
        ({"must": {"mode": OneOf(("../etc",))}}, "none of Rule and no OneOf"),
        ({"must": {"mode": OneOf(("a",))}}, "nothing that must carry tare's label"),
        ({"must": {"Name": FactRule.SANDBOX}}, "not lower case words"),
        ({"must": 5}, "no mapping"),
        ({"remove": None}, "nothing that removes"),
        ({"left": None}, "is no function"),
    ],
)
def test_a_kind_that_breaks_the_contract_is_left_out(changes, problem):
    assert problem in "; ".join(kinds.problems(dataclasses.replace(KIND, **changes)))


@pytest.mark.parametrize("rule", FactRule)
def test_every_rule_has_a_pattern_that_says_whole_values(rule):
    for value in ("", "/", "../x", "tare", "a\nb"):
        of = {"rule": rule}
        fitting = claims._patterns(of)["rule"]
        bounds = claims.Bounds(kinds.Path("/h"))
        assert not claims._fits(value, fitting, bounds) or (rule, value) == (FactRule.GROUP, "tare")


@pytest.mark.parametrize(
    "pattern",
    [
        "/etc/{name}",
        "/run/fire/*",
        "/run/../etc/{name}",
        "/run/fire/{pid}/{name}",
        "/run/fire/fixed",
        "run/{name}",
        "/tmp/{name}",
        "/run/a b/{name}",
    ],
)
def test_patterns_of_files_lead_to_a_sandboxs_own(pattern):
    with pytest.raises(UsageError, match="cannot be the path of a sandbox's files"):
        kinds.files("tare-x:notes", pattern)


def _notes(tmp_path, monkeypatch):
    monkeypatch.setattr(kinds, "_KEPT_IN", (f"{tmp_path}/",))
    monkeypatch.setattr(kinds.cgroup, "destroy", lambda path: None)
    return kinds.files("tare-x:notes", f"{tmp_path}/name/{{pid}}", f"{tmp_path}/by-name/.{{name}}.lock")


def test_files_by_name_and_by_process_go_once_it_has_ended(tmp_path, monkeypatch):
    kind = _notes(tmp_path, monkeypatch)
    ended = subprocess.Popen(["sleep", "60"])
    facts = {"name": "tare-a", "group": "tare/a", "process": kinds.process(ended.pid)}
    (tmp_path / "name").mkdir()
    (tmp_path / "by-name").mkdir()
    note, other = tmp_path / "name" / str(ended.pid), tmp_path / "name" / f"{ended.pid}1"
    lock = tmp_path / "by-name" / ".tare-a.lock"
    for file in (note, other, lock):
        file.write_text("")
    with pytest.raises(HostError, match="still runs"):
        kind.remove(facts)
    ended.kill()
    ended.wait()
    kind.remove(facts)
    assert (note.exists(), lock.exists(), other.exists()) == (False, False, True)
    kind.remove(facts)  # it is gone already


def test_what_a_plug_in_has_left_of_its_kinds_is_seen_by_the_label(tmp_path, monkeypatch):
    monkeypatch.setattr(kinds, "_KEPT_IN", (f"{tmp_path}/",))
    notes = kinds.files("tare-x:notes", f"{tmp_path}/{{name}}.note")
    box = dataclasses.replace(KIND, left=lambda label: [f"box {label}"] if label == "ab12cx0" else [])
    monkeypatch.setattr(kinds, "registered", lambda: {kind.name: kind for kind in (KIND, box, notes)})
    (tmp_path / "tare-ab12cx0.note").touch()
    assert left_on_host("ab12cx0") == ["tare-x:box box ab12cx0", f"tare-x:notes {tmp_path}/tare-ab12cx0.note"]
    assert left_on_host("ab12cx1") == []


def test_a_note_of_another_process_with_the_same_id_is_the_others(tmp_path, monkeypatch):
    kind = _notes(tmp_path, monkeypatch)
    with subprocess.Popen(["sleep", "60"]) as other:
        note = tmp_path / "name" / str(other.pid)
        note.parent.mkdir()
        note.write_text("")
        of = Owner.of(other.pid)
        kind.remove({"name": "tare-a", "group": "tare/a", "process": str(dataclasses.replace(of, start_ticks=1))})
        assert note.exists()
        other.kill()


def test_plug_ins_may_only_name_kinds_of_their_own_package(tmp_path, monkeypatch, capsys):
    info = tmp_path / "tare_x-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Tare_X\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[tare.resources]\nbox = tare_x_kinds\n")
    source = "from tare.host.resources.kinds import files\nRESOURCES = (files('tare-x:notes', '/run/x/{name}'),)\n"
    (tmp_path / "tare_x_kinds.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(plugins.ALLOWED, "tare-x")
    assert list(kinds.registered()) == ["tare-x:notes"]
    monkeypatch.delitem(sys.modules, "tare_x_kinds")
    (tmp_path / "tare_x_kinds.py").write_text(source.replace("tare-x:", "another:"))
    assert kinds.registered() == {}
    assert "names 'another:notes', which does not begin with tare-x:" in capsys.readouterr().err
