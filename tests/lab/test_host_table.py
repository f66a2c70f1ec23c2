"""Jobs on stock hosts: what each runs, and the table of what came of them."""

import json
from pathlib import Path

import pytest

from tare.platforms import platform_registry

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def host_test():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOP / "scripts"))
        import host_test  # noqa: PLC0415

        yield host_test


def test_each_host_has_the_platforms_that_the_contract_is_asked_for_and_what_stays(host_test):
    for host, manager in (("debian12", "lxd"), ("debian13", "incus")):
        jobs = host_test.jobs(host)
        platforms = {"native", "runc", "crun", "docker", "docker-cgroupfs", "podman", "lxc", manager, "nspawn"}
        assert platforms | {"bubblewrap", "gvisor", "libvirt-lxc", "ssh", "everything", "left-kill"} <= set(jobs)
        assert len([word for word in jobs["containers"] if word.startswith("-p")]) >= 12
        campaigns = [words for name, words in jobs.items() if name.startswith(("everything", "emulated-"))]
        shared_out = [word for words in campaigns for word in words if word.startswith("-p")]
        left_to_this_host = set(host_test.ENDLESS)
        assert sorted(shared_out) == sorted(
            f"-p{name}" for name in set(platform_registry.all_platforms()) - left_to_this_host
        )
        assert ("docker-containerd-store" in jobs) == (host == "debian13")
        assert "systemctl daemon-reload" in jobs["reload"][-1]
        assert jobs["runc"] == ["tare", "platform", "check", "runc", "--json"]
        assert jobs["left-doctor"] == ["python3", "tests/lab/left.py", "doctor"]
        assert jobs["wheel"] == ["sh", "tests/lab/wheel.sh", "/lab/files"]


def test_a_summary_has_what_is_broken_or_left_or_the_last_words(host_test):
    rows = (
        '{"schema": "tare.check/1", "checks": [{"name": "same-bits", "broken": null}, {"name": "x", "broken": "no"}]}'
    )
    assert host_test.summary(1, rows, "") == "1 kept, broken: x"
    assert host_test.summary(0, 'a table\ntrials: {"runc": 2}\n{"left": []}', "") == "nothing left"
    left = '{"left": ["+ module: tun"]}'
    assert host_test.summary(1, left, "") == "code 1, left: + module: tun"
    report = '{"platforms": [{}, {}], "left_out": [{"platform": "lxd"}], "failures": [{"platform": "runc"}]}'
    assert host_test.summary(0, report, "") == "2 platforms; left out: lxd; failures: runc"
    assert not host_test.passed("everything", 0, report)
    well = '{"platforms": [{}], "left_out": [], "failures": []}'
    assert (host_test.summary(0, well, ""), host_test.passed("containers", 0, well)) == ("1 platforms", True)
    assert not host_test.passed("containers", 1, well)
    without = '{"platforms": [{}], "left_out": [{"platform": "lxd"}], "failures": []}'
    assert host_test.passed("everything", 0, without)
    assert not host_test.passed("containers", 0, without)
    assert host_test.summary(1, "", "lab: ready\nerror: no lxc\n") == "ended with 1: error: no lxc"


def test_a_result_of_an_earlier_form_is_not_known(host_test, tmp_path):
    (tmp_path / "debian12").mkdir()
    for name, fields in (("runc", {"passed": True}), ("crun", {"code": 0})):
        written = {"day": "2026-11-25", "seconds": 1.0, "summary": "22 kept"} | fields
        (tmp_path / "debian12" / f"{name}.json").write_text(json.dumps(written))
    assert list(host_test.known(tmp_path)) == [("debian12", "runc")]


def test_the_table_says_what_was_not_run_and_what_failed(host_test):
    passed = host_test.Result("2026-11-23", True, 600.0, "21 kept")
    failed = host_test.Result("2026-11-23", False, 60.0, "code 1, left: a|b")
    cells = {("debian12", "runc"): host_test.cell(passed), ("debian13", "runc"): host_test.cell(failed)}
    table = host_test.table(cells)
    assert "| runc | 21 kept (2026-11-23) | FAILED: code 1, left: a\\|b (2026-11-23) |" in table
    assert "| lxd | not run | - |" in table


def test_what_another_machine_found_stays_in_the_document(host_test):
    document = (TOP / "docs" / "hosts.md").read_text()
    places = host_test._TABLE.findall(document)
    assert [table for _, table, _ in places] == [host_test.table(host_test.recorded(document))]


def test_a_bar_in_a_result_does_not_move_those_beside_it(host_test):
    cells = {("debian12", "runc"): "FAILED: left: a\\|b", ("debian13", "runc"): "22 kept"}
    document = f"<!-- results -->\n{host_test.table(cells)}<!-- end -->"
    assert {where: text for where, text in host_test.recorded(document).items() if where in cells} == cells
