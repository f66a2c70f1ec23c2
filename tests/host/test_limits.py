"""The one list of limits: what agents and engines are told of it, and what is read back."""

import resource
from pathlib import Path

import pytest

from tare.analysis.quality import fairness
from tare.host import instance_limits
from tare.model import Resources

RESOURCES = Resources((0,), 1 << 30)
#: What the agent prints, on native and in gVisor.
PRINTED = """\
nofile 16384 16384
memlock 8388608 8388608
core 0 0
stack 8388608 unlimited
threads 192730
thp madvise
"""
GVISORS = PRINTED.replace("memlock 8388608 8388608", "memlock 65536 65536").replace("thp madvise", "thp none")
GROUP = {"pids": 4096, "swap": 0}


@pytest.fixture(autouse=True)
def _a_host_with_huge_pages_on_request(tmp_path, monkeypatch):
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    monkeypatch.setattr(instance_limits, "HUGE_PAGES", tmp_path / "enabled")
    monkeypatch.setattr(resource, "getrlimit", lambda number: (1024, resource.RLIM_INFINITY))


def test_the_agent_is_told_all_that_it_can_set():
    told = "nofile:16384,memlock:8388608,core:0,stack:8388608,threads:4096,thp:madvise"
    assert instance_limits.for_agent(RESOURCES) == told
    assert "threads" not in instance_limits.for_agent(Resources((0,), 1 << 30, pids=None))


def test_no_limit_is_above_what_this_process_may_have(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda number: (1024, 4096))
    assert instance_limits.wanted(RESOURCES)["nofile"] == "4096"
    assert instance_limits.for_engines() == {"nofile": 4096, "memlock": 4096}


def test_what_a_program_has_is_compared_with_the_list():
    wanted = instance_limits.wanted(RESOURCES)
    assert instance_limits.seen(PRINTED, GROUP, own_kernel=False) == wanted
    assert instance_limits.not_honoured(wanted, wanted) == []
    found = instance_limits.seen(GVISORS, {**GROUP, "swap": None}, own_kernel=False)
    assert instance_limits.not_honoured(wanted, found) == [
        "bytes of swap: unlimited in place of 0",
        "bytes of locked memory: 65,536 in place of 8,388,608",
        "transparent huge pages: none in place of madvise",
    ]


def test_a_guests_kernel_limits_its_processes_and_no_agent_says_nothing():
    found = instance_limits.seen(PRINTED, GROUP, own_kernel=True)
    assert found["pids"] == "192730"
    unknown = instance_limits.seen("", {}, own_kernel=True)
    assert set(unknown.values()) == {"unknown"}
    assert instance_limits.not_honoured(instance_limits.wanted(RESOURCES), unknown) == []


def test_each_limit_is_a_fact_that_is_compared():
    assert set(instance_limits.facts(instance_limits.wanted(RESOURCES))) == {
        name for name in fairness.OWN if name.startswith("limit of")
    }


def test_the_method_has_the_whole_list():
    text = (Path(__file__).parents[2] / "docs" / "method.md").read_text()
    for limit in instance_limits.LIMITS:
        value = "the host's" if limit.value is None else f"{limit.value:,}"
        assert f"| {limit.title} (`{limit.name}`) | {value} | {limit.why} |" in text
