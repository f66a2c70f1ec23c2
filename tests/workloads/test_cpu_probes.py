"""The probes of the family cpu: their rates, what the agent gets, and the cache's size."""

import re
from pathlib import Path

import pytest

from tare.errors import ParseError
from tare.model import Family
from tare.workloads import workload_registry
from tare.workloads.base import SliceWorkload
from tare.workloads.cpu.llc_probe import USUAL_BYTES, last_level_bytes

MIB = 2**20
AGENT = Path(__file__).parents[2] / "agent" / "src" / "probes"
TENTH = 100_000_000  # ns


@pytest.mark.parametrize(
    ("name", "parts", "figures"),
    [
        ("dhrystone", {"runs": (500_000, TENTH)}, {"dhrystones-per-second": 5e6, "cpu-cost": 180.0}),
        ("whetstone", {"kilo-instructions": (250_000, TENTH)}, {"mwips": 2500.0, "cpu-cost": 360_000.0}),
        ("llc-probe", {"probes": (90_000_000, TENTH)}, {"probes-per-second": 900.0, "cpu-cost": 1e6}),
        ("hardinfo-cryptohash", {"bytes": (50 * MIB, TENTH)}, {"throughput": 500.0, "cpu-cost": 1.8e6}),
        ("hardinfo-fft", {"solutions": (300, TENTH)}, {"solutions-per-second": 3000.0, "cpu-cost": 300_000.0}),
        ("hardinfo-fibonacci", {"calls": (60_000_000, TENTH)}, {"calls-per-second": 600.0, "cpu-cost": 1.5e6}),
        ("hardinfo-nqueens", {"squares": (30_000_000, TENTH)}, {"squares-per-second": 300.0, "cpu-cost": 3e6}),
        ("hardinfo-raytracing", {"designs": (90_000, TENTH)}, {"designs-per-second": 900_000.0, "cpu-cost": 1000.0}),
        (
            "hardinfo-zlib",
            {"compress": (MIB, TENTH), "uncompress": (8 * MIB, 2 * TENTH)},
            {"compress": 10.0, "uncompress": 40.0, "cpu-cost": 1e7},
        ),
    ],
)
def test_rates_are_of_the_parts_own_time_and_the_cost_of_all_work(name, parts, figures):
    workload = workload_registry.get(name)
    assert workload.family is Family.CPU
    assert not workload.by_default
    assert workload.read_slice(parts, cpu_ns=90_000_000) == {
        key: pytest.approx(figure) for key, figure in figures.items()
    }
    for part in parts:
        with pytest.raises(ParseError, match=f"the probe {name} did no '{part}' in a slice"):
            workload.read_slice({**parts, part: (0, TENTH)}, cpu_ns=1)


def test_the_agent_has_a_probe_for_every_workload_in_slices():
    probes = set(re.findall(r'\("([a-z-]+)", [a-z_:]+make[a-z_]*\)', (AGENT / "mod.rs").read_text()))
    used = {
        workload.probe for workload in workload_registry.all_workloads().values() if isinstance(workload, SliceWorkload)
    }
    assert used == probes


def test_the_probes_parts_are_the_agents():
    for name, file in [
        ("dhrystone", "dhrystone.rs"),
        ("whetstone", "whetstone.rs"),
        ("llc-probe", "llc_probe.rs"),
        *((f"hardinfo-{job}", f"hardinfo/{job}.rs") for job in ("cryptohash", "fft", "fibonacci", "nqueens")),
        ("hardinfo-raytracing", "hardinfo/raytracing.rs"),
        ("hardinfo-zlib", "hardinfo/zlib.rs"),
    ]:
        listed = re.search(r"const PARTS: \[&str; \d\] = \[(.*)\];", (AGENT / file).read_text())[1]
        assert re.findall(r'"([a-z-]+)"', listed) == list(workload_registry.get(name).parts.values())


def test_the_agent_gets_what_is_not_the_schedules():
    quick = {name: workload_registry.get(name).profiles["quick"] for name in ("hardinfo-fibonacci", "hardinfo-nqueens")}
    assert workload_registry.get("hardinfo-fibonacci").probe_params(quick["hardinfo-fibonacci"]) == {"n": 42}
    assert workload_registry.get("hardinfo-nqueens").probe_params(quick["hardinfo-nqueens"]) == {"queens": 11}
    assert workload_registry.get("dhrystone").probe_params(workload_registry.get("dhrystone").profiles["full"]) == {}
    llc = workload_registry.get("llc-probe")
    assert llc.probe_params(llc.profiles["full"]) == {"bytes": last_level_bytes()}


def cache(folder, index, level, size):
    place = folder / f"index{index}"
    place.mkdir()
    (place / "level").write_text(f"{level}\n")
    if size is not None:
        (place / "size").write_text(f"{size}\n")


def test_the_last_level_is_the_highest(tmp_path):
    for index, (level, size) in enumerate([(1, "32K"), (1, "64K"), (2, "1024K"), (3, "32768K")]):
        cache(tmp_path, index, level, size)
    (tmp_path / "uevent").write_text("")
    assert last_level_bytes(tmp_path) == 32 * MIB


@pytest.mark.parametrize("size", [None, "", "K", "much"])
def test_what_the_kernel_does_not_tell_is_passed_over(tmp_path, size):
    cache(tmp_path, 0, 1, "32K")
    cache(tmp_path, 1, 2, "2M")
    cache(tmp_path, 2, 3, size)
    assert last_level_bytes(tmp_path) == 2 * MIB


def test_without_any_word_of_the_kernel_it_is_the_usual(tmp_path):
    assert last_level_bytes(tmp_path) == USUAL_BYTES
    assert last_level_bytes(tmp_path / "none") == USUAL_BYTES
