"""Every workload on real platforms, with tiny parameters: it gives figures, or says why it cannot run there."""

import functools
import tempfile
from pathlib import Path

import pytest

from campaign.fakes import Quiet
from tare.campaign import conduct
from tare.campaign.conduct import Order
from tare.model import Mode, Status
from tare.store.store import Store
from tare.workloads import registry

#: What `make test` tries, beside native; `make test-all` tries the rest.
USUAL = ("gvisor",)
REST = (("runc",), ("docker",), ("uml",), ("qemu",), USUAL)
#: What takes longest of that, or needs the image with a kernel's source in it: `make test-all` only.
LONG = frozenset({"bonnie", "bonnie-trajectory", "kernel-compile"}) | {
    name for name in registry.all_workloads() if name.startswith("dbench")
}
_FILE = {"size_mib": 16, "least_mib": 16}
#: In place of the quick profile's parameters, where those take long.
TINY = {
    "bonnie": {"size_mib": 32, "char_mib": 1},
    "bonnie-trajectory": {"size_mib": 32, "char_mib": 1},
    "density-llc": {"most": 2, "slice_ms": 50, "rounds": 2},
    "density-primes": {"most": 2, "slice_ms": 50, "rounds": 2},
    "density-stream": {"most": 2, "slice_ms": 50, "rounds": 2, "array_bytes": 8 << 20},
    "density-memory": {"most": 2},
    "density-network": {"most": 2},
    "density-start": {"most": 2},
    "linpack": {"n": 200},
    "memory-least": {"tries": 1},
    "ping-rtt": {"time_s": 0.5},
    "stream": {"array_bytes": 8 << 20},
    "sysbench-fileio-seqrd": {"total_mib": 16, "least_mib": 16},
    "sysbench-fileio-seqwr": {"total_mib": 16, "least_mib": 16},
}
#: The same, by what their names begin with.
ALIKE = {"dbench": {"time_s": 2}, "fio": {**_FILE, "time_s": 1}, "seq": _FILE}
SLICES = {"slice_ms": 50, "rounds": 2, "warmup_ms": 20}
#: What a platform lacks, in its own words.
LACKS: dict = {
    ("fio-randread", "gvisor"): "goes through the host's page cache",
    ("fio-randwrite", "gvisor"): "goes through the host's page cache",
    ("seq-read-sizes-guest", "gvisor"): "its kernel has no /proc/sys/vm/drop_caches",
}


def _params(workload):
    tiny = SLICES if workload.mode is Mode.SLICES else {}
    alike = ALIKE.get(workload.name.split("-")[0], {})
    return {**tiny, **alike, **TINY.get(workload.name, {})}


@functools.cache
def _trials(platforms, left_out):
    """The rows of a block with the workloads, on native twice and on some platforms, once for all tests."""
    known = {name: one for name, one in registry.all_workloads().items() if name not in left_out}
    order = Order(
        platforms=platforms,
        workloads=list(known),
        params={name: _params(workload) for name, workload in known.items()},
        blocks=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.tare"
        conduct.begin(order, file, Quiet())
        with Store.read(file) as store:
            figures: dict = {}
            for _, *key, metric, _, _ in store.samples().iter_rows():
                figures.setdefault(tuple(map(str, key)), set()).add(str(metric))
            rows = list(store.trials().iter_rows(named=True))
    return [(row, figures.get((row["workload"], row["platform"], str(row["replica"])), set())) for row in rows]


ALL = sorted(registry.all_workloads())
IN_TEST = (USUAL, LONG)
IN_ALL = [(names, frozenset()) for names in REST]
TRIED = [
    *(pytest.param(*IN_TEST, name, marks=pytest.mark.host) for name in ALL if name not in LONG),
    *(pytest.param(*one, name, marks=pytest.mark.slow) for one in IN_ALL for name in ALL),
]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("platforms", "left_out", "name"), TRIED)
def test_a_workload_gives_its_figures_or_says_why_it_cannot(platforms, left_out, name):
    workload = registry.get(name)
    mine = [(row, figures) for row, figures in _trials(platforms, left_out) if row["workload"] == name]
    assert len(mine) >= 3  # native twice, and at least one platform
    for row, figures in mine:
        lacks = LACKS.get((name, row["platform"]))
        if lacks is not None:
            assert row["status"] == Status.UNSUPPORTED.value, row["reason"]
            assert lacks in row["reason"]
        else:
            assert row["status"] == Status.OK.value, f"{row['platform']}: {row['reason']}"
            assert workload.metrics[0].name in figures
