"""A cluster's answers, its plan in a folder, messages of a container runtime's, addresses, and a machine's control."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from unittest import mock

import yaml

from fuzz.elsewhere import one_line
from tare.catalogue import address
from tare.cli import metrics_endpoint
from tare.cli.commands import instances
from tare.errors import HostError, UsageError
from tare.fleet import cluster, cluster_objects, host_states
from tare.fleet.cluster_objects import ClusterPlan
from tare.host.daemons import cri, kubectl
from tare.host.processes import Finished
from tare.platforms.kubernetes import Kubernetes

_PLAN = ClusterPlan(("node1",), "debian:12", ("-p", "runc", "--note", "$(HOME) $$"))
_HUSH = "hush-hush"


def check_cluster(data: bytes) -> None:
    """What kubectl prints, whatever is asked: names, states, whether a platform runs here, or an error in one line."""
    finished = Finished((), 0, data, b"", 1)
    with mock.patch.object(kubectl, "run", return_value=finished):
        try:
            for name, found in kubectl.items("jobs").items():
                assert isinstance(name, str)
                state, reason = cluster.stands(found)
                assert isinstance(state, host_states.HostState)
                assert "\n" not in host_states.cut(reason)
        except HostError as error:
            one_line(error)
        with mock.patch.object(kubectl, "program", return_value="kubectl"):
            answer = Kubernetes("gvisor").detect()
        assert answer.available or (answer.reason and "\n" not in answer.reason)


def check_plan(data: bytes) -> None:
    """A plan that anything has written into a folder: objects of its own namespace alone, or a refusal in one line."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / cluster.PLAN).write_bytes(data)
        try:
            plan = cluster.begin(folder, None)
        except UsageError as error:
            one_line(error)
            return
    read = list(yaml.safe_load_all(cluster_objects.text(plan)))
    assert [found["kind"] for found in read[6:]] == ["Job"] * len(plan.nodes)
    assert {found["metadata"].get("namespace", plan.namespace) for found in read} == {plan.namespace}


def check_message(data: bytes) -> None:
    """A message of containerd's: its texts by number, or a refusal in one line."""
    try:
        found = cri.fields(data)
    except HostError as error:
        one_line(error)
        return
    assert sum(len(value) for values in found.values() for value in values) <= len(data)


def check_address(data: bytes) -> None:
    """An address by its first byte: of a catalogue, which shows no password, of the metrics, or numbers of CPUs."""
    kind, text = data[:1], data[1:].decode(errors="replace")
    reads: list[Callable[[str], object]] = [address.parse, metrics_endpoint.parse_address, instances.parse_cpus]
    try:
        reads[kind[0] % 3 if kind else 0](text)
    except UsageError as error:
        if "\n" not in text:
            one_line(error)
    for secret in (f"postgresql://a:{_HUSH}@h/x", f"postgresql://a@h/x?password={_HUSH}"):
        assert _HUSH not in address.masked(secret + text.replace(_HUSH, ""))


def _answers() -> Iterator[bytes]:
    status = {"conditions": [{"type": "Complete", "status": "True"}], "active": 1}
    info = {"bootID": "b", "kubeletVersion": "v1.34.4", "containerRuntimeVersion": "containerd://2.2.9"}
    yield json.dumps({"items": [{"metadata": {"name": "tare-a"}, "status": status}]}).encode()
    yield json.dumps({"items": [{"metadata": {"name": "node1"}, "status": {"nodeInfo": info}}]}).encode()
    yield json.dumps({"handler": "runsc", "metadata": {"name": "gvisor"}}).encode()


def _messages() -> Iterator[bytes]:
    yield cri.message({1: "containerd", 2: "1.7", 3: 5, 4: [cri.message({1: "id"})]})
    with suppress(HostError):
        yield cri.message({200: "x" * 300})


TARGETS = {"cluster": check_cluster, "plans": check_plan, "messages": check_message, "addresses": check_address}
SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "cluster": _answers,
    "plans": lambda: iter([json.dumps(asdict(_PLAN)).encode()]),
    "messages": _messages,
    "addresses": lambda: iter(
        [b"\x00postgresql://tare@h:5432/x?sslmode=prefer", b"\x01127.0.0.1:9464", b"\x01[::1]:9464", b"\x022,3-5"]
    ),
}
