"""Every workload on real platforms, with tiny parameters: it gives figures, or says why it cannot run there."""

import functools
import tempfile
from pathlib import Path

import pytest

from campaign.fakes import Quiet
from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.model import Mode, Status
from tare.store import read_store
from tare.workloads import workload_registry
from workloads.lacking import LACKING, RACING

pytestmark = [pytest.mark.own_host, pytest.mark.paced]

#: What `make test` tries, beside native; `make test-all` tries the rest.
USUAL = ("gvisor",)
REST = (("runc",), ("docker",), ("uml",), ("qemu-tcg",), USUAL)
#: Which workloads `make test` tries: one of each kind.
SOME = [
    "dhrystone",
    "hardinfo-zlib",
    "linpack",
    "llc-probe",
    "mmap-sweep",
    "ramspeed-int",
    "call-getpid",
    "ipc-futex",
    "mem-fault",
    "proc-exec",
    "file-fsync",
    "net-tcp-packet",
    "fio-randread",
    "fio-randread-32",
    "fio-randwrite-buffered",
    "seq-read-sizes-guest",
    "iperf3-udp",
    "iperf3-streams",
    "sysbench-cpu-threads",
    "ping-rtt",
    "http-get",
    "tcp-crr",
    "image-size",
    "startup-cold",
    "density-primes",
    "density-start",
    "density-memory",
    "idle-cpu",
    "redis",
]
_FILE = {"size_mib": 16, "least_mib": 16}
#: In place of the quick profile's parameters, where those take long.
TINY = {
    **{
        f"redis-beside-{noise}": {"pairs": 1, "requests": 500, "keys": 500}
        for noise in ("cpu", "disk", "fork", "memory", "network")
    },
    "idle-cpu": {"time_s": 1.0},
    "redis": {"requests": 500, "keys": 500, "windows": 4},
    "bonnie": {"size_mib": 32, "char_mib": 1},
    "bonnie-trajectory": {"size_mib": 32, "char_mib": 1},
    "capacity": {"most": 4},
    "density-llc": {"slice_ms": 50, "rounds": 2},
    "density-primes": {"slice_ms": 100, "rounds": 6},  # in one of which both instances must work at once
    "density-stream": {"slice_ms": 50, "rounds": 2, "array_bytes": 8 << 20},
    "linpack": {"n": 200},
    "memory-least": {"tries": 1},
    "memory-least-stream": {"tries": 1, "array_bytes": 8 << 20},
    "ping-rtt": {"time_s": 0.5},
    "stream": {"array_bytes": 8 << 20},
    "sysbench-fileio-seqrd": {"total_mib": 16, "least_mib": 16},
    "sysbench-fileio-seqwr": {"total_mib": 16, "least_mib": 16},
}
#: The same, by what their names begin with.
ALIKE = {"dbench": {"time_s": 2}, "fio": {**_FILE, "time_s": 1}, "seq": _FILE}
SLICES = {"slice_ms": 50, "rounds": 4, "long_ms": 100, "long_rounds": 2, "warmup_ms": 20}


def _params(workload):
    tiny = {key: SLICES[key] for key in SLICES.keys() & workload.profiles["quick"].keys()}
    tiny = tiny if workload.mode is Mode.SLICES else {}
    alike = ALIKE.get(workload.name.split("-")[0], {})
    return {**tiny, **alike, **TINY.get(workload.name, {})}


@functools.cache
def _trials(platforms, names):
    """The rows of a block with the workloads, on native twice and on some platforms, once for all tests."""
    order = CampaignRequest(
        platforms=platforms,
        workloads=names,
        params={name: _params(workload_registry.get(name)) for name in names},
        blocks=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.tare"
        run_campaign.begin(order, file, Quiet())
        with read_store(file) as store:
            figures: dict = {}
            for _, *key, metric, _, _ in store.samples().iter_rows():
                figures.setdefault(tuple(map(str, key)), set()).add(str(metric))
            rows = list(store.trials().iter_rows(named=True))
    return [(row, figures.get((row["workload"], row["platform"], str(row["replica"])), set())) for row in rows]


#: Of a curve's levels, which differ in the load alone, none; of servers `test_host_applications.py` has the usual ones.
ALL = sorted(name for name, workload in workload_registry.all_workloads().items() if workload.level is None)
TRIED = [
    *(pytest.param(USUAL, tuple(SOME), name, marks=pytest.mark.host) for name in SOME),
    *(pytest.param(platforms, tuple(ALL), name, marks=pytest.mark.slow) for platforms in REST for name in ALL),
]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("platforms", "names", "name"), TRIED)
def test_a_workload_gives_its_figures_or_says_why_it_cannot(platforms, names, name):
    workload = workload_registry.get(name)
    mine = [(row, figures) for row, figures in _trials(platforms, names) if row["workload"] == name]
    assert len(mine) >= 3  # native twice, and at least one platform
    for row, figures in mine:
        lacks = LACKING.get((name, row["platform"]))
        if row["status"] == Status.UNSUPPORTED.value:
            lacks = lacks or RACING.get((name, row["platform"]))
        if lacks is not None:
            assert row["status"] == Status.UNSUPPORTED.value, row["reason"]
            assert lacks in row["reason"]
        else:
            assert row["status"] == Status.OK.value, f"{row['platform']}: {row['reason']}"
            assert workload.metrics[0].name in figures
