"""A fleet on a Kubernetes cluster: apply a Job for each node, follow them, fetch each node's file, delete all.

kubectl does it, with the user's kubeconfig. The Jobs do not need this machine: after whatever ended the command, the
same command with the same folder goes on. The objects are deleted once every node's file is here.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tare import outputs
from tare.errors import Failed, HostError, UsageError, attempt, first_invalid
from tare.fleet import cluster_objects
from tare.fleet.cluster_objects import ClusterPlan
from tare.fleet.host_states import NOT_FETCHED, HostRow, HostState, cut
from tare.fleet.playing import MAX_FILE_BYTES, make_own, owned, require_own
from tare.fleet.run_fleet import ROWS, SCHEMA, file_name, read_rows, take
from tare.host import processes
from tare.host.daemons import kubectl
from tare.host.processes import Finished
from tare.timeouts import stretched

#: The fleet's plan, and its objects for whoever wants to delete them by hand.
PLAN, OBJECTS = "kubernetes.json", "kubernetes.yaml"
LOOK_S = 3.0
_FETCH_LIMIT_S, _POD_LIMIT_S, _DELETE_LIMIT_S = 3600.0, 120.0, 300.0
_PLAN = TypeAdapter(ClusterPlan)
_NO_SUCH_JOB = "its Job is gone, and left no result"
#: Why a node keeps everything, by where it stands; a Job that failed may have left a part of its campaign.
_KEEPS = {
    HostState.STARTING: "its Job starts",
    HostState.RUNNING: "its Job still runs",
    HostState.FETCHING: "its campaign was not fetched",
    HostState.FAILED: "its campaign failed, and what it left there was not fetched",
}
OnRows = Callable[[Sequence[HostRow]], None]


def nodes(selector: str) -> tuple[str, ...]:
    """Return the names of the cluster's nodes that match a label selector ("": all). Raises `HostError`."""
    shown = kubectl.items("nodes", *([f"--selector={selector}"] if selector else []))
    names = tuple(sorted(shown))
    if not names:
        raise HostError("the cluster has no such node", fix="see the labels of `kubectl get nodes`")
    return names


def begin(folder: Path, plan: ClusterPlan | None) -> ClusterPlan:
    """Return the plan of a folder: an existing one, or a new one. Raises `UsageError` where the two differ."""
    file = folder / PLAN
    require_own(folder)
    there = _read_plan(file) if file.exists() else None
    if there is not None:
        if plan is not None and plan != there:
            raise UsageError(f"{folder} has another fleet", fix="give -o another folder, or leave all else out")
        return there
    if plan is None:
        raise UsageError(f"there is no fleet in {folder}", fix="tare fleet run --kubernetes --image IMAGE -- -p runc")
    make_own(folder)
    with outputs.written(folder / OBJECTS) as written:
        written.write(cluster_objects.text(plan))
    with outputs.written(file, new=True) as written:
        json.dump(asdict(plan), written, indent=1)
    return plan


def _read_plan(file: Path) -> ClusterPlan:
    try:
        return _PLAN.validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        what = first_invalid(error) if isinstance(error, ValidationError) else error.strerror
        raise UsageError(f"{file} cannot be read: {what}", fix="name another folder") from error


def run(folder: Path, plan: ClusterPlan, on_rows: OnRows, *, look_s: float = LOOK_S) -> list[HostRow]:
    """Run the campaign on every node, and fetch the files. Returns how each node ended. Raises `TareError`."""
    with owned(folder) as work:
        fleet = _Fleet(folder, plan, work, on_rows)
        if fleet.open():
            done = kubectl.run("apply", "-f", "-", stdin=cluster_objects.text(plan).encode())
            if done.code != 0:
                raise kubectl.refused(done)
        while fleet.open():
            fleet.look()
            if fleet.open():
                time.sleep(stretched(look_s))
        if fleet.done():
            _delete(plan)
        return list(fleet.rows.values())


def is_cluster(folder: Path) -> bool:
    """Return whether this folder's fleet is on a cluster."""
    return (folder / PLAN).is_file()


def status(folder: Path, on_rows: OnRows, *, fetched: bool = False) -> list[HostRow]:
    """Return how each node stands, asked now; ``fetched``: and fetch what is complete. Raises `TareError`."""
    plan = begin(folder, None)
    with contextlib.ExitStack() as owning:
        try:
            work = owning.enter_context(owned(folder))
        except HostError:
            if fetched or not (rows := read_rows(folder)):
                raise
            on_rows(rows)  # a controller is at work, which writes them
            return rows
        fleet = _Fleet(folder, plan, work, on_rows)
        if fleet.open():
            fleet.look(fetch=fetched)
            if fetched and not fleet.open() and fleet.done():
                _delete(plan)
        on_rows(list(fleet.rows.values()))
        return list(fleet.rows.values())


def fetch(folder: Path, on_rows: OnRows) -> list[HostRow]:
    """Fetch the files of the campaigns that are complete; delete all objects after the last. Raises `TareError`."""
    return status(folder, on_rows, fetched=True)


def clean(folder: Path, on_rows: OnRows, *, force: bool) -> list[HostRow]:
    """Delete the fleet's objects from the cluster, and its results on the nodes. Raises `TareError`.

    A node whose Job runs, or whose campaign was not fetched, keeps both unless ``force`` is given.
    """
    plan = begin(folder, None)
    with owned(folder) as work:
        fleet = _Fleet(folder, plan, work, on_rows)
        fleet.clean(force=force)
        if all(row.state is HostState.ABSENT for row in fleet.rows.values()):
            _delete(plan)
        return list(fleet.rows.values())


def _delete(plan: ClusterPlan) -> None:
    words = ("delete", "-f", "-", "--ignore-not-found", "--wait=true")
    done = kubectl.run(*words, stdin=cluster_objects.text(plan).encode(), time_limit_s=_DELETE_LIMIT_S)
    if done.code != 0:
        raise kubectl.refused(done)


class _Fleet:
    """The nodes of one command, and what is known of each."""

    def __init__(self, folder: Path, plan: ClusterPlan, work: Path, on_rows: OnRows) -> None:
        self.folder, self.plan, self._work, self._on_rows = folder, plan, work, on_rows
        self.rows = {node: HostRow(node) for node in plan.nodes}
        known = {row.host: row for row in read_rows(folder) if row.state is HostState.DONE}
        for node in plan.nodes:
            if self._place(node).is_file():
                self.rows[node] = known.get(node) or HostRow(node, HostState.DONE)

    def open(self) -> list[str]:
        """Return the nodes that are neither done nor failed."""
        return [node for node, row in self.rows.items() if row.state not in {HostState.DONE, HostState.FAILED}]

    def done(self) -> bool:
        """Return whether all files are here."""
        return all(row.state is HostState.DONE for row in self.rows.values())

    def look(self, *, fetch: bool = True) -> None:
        """Ask how the Jobs stand, and ``fetch`` what is complete."""
        jobs = self._jobs()
        for node in self.open():
            job = jobs.get(cluster_objects.job_name(node))
            state, reason = stands(job)
            if state is HostState.FAILED and job is not None:
                reason = self._last_words(node) or reason
            if state is HostState.FETCHING and not fetch:
                self._put(replace(self.rows[node], state=HostState.RUNNING, doing=NOT_FETCHED))
                continue
            self._put(replace(self.rows[node], state=state, reason=cut(reason)))
            if state is HostState.FETCHING:
                fetched = attempt(partial(self._fetch, node))
                if isinstance(fetched, Failed):
                    self._put(replace(self.rows[node], state=HostState.FAILED, reason=cut(fetched.reason)))
                else:
                    self._put(replace(self.rows[node], state=HostState.DONE, blocks=fetched, reason=""))

    def clean(self, *, force: bool) -> None:
        """Remove each node's Job and result; a node that keeps them has a row with the reason."""
        if kubectl.ask("get", "namespace", self.plan.namespace) is None:
            for node, row in self.rows.items():
                note = (
                    "" if row.state is HostState.DONE else f"a campaign that was not fetched is in {self.plan.folder}"
                )
                self._put(replace(HostRow(node, HostState.ABSENT), note=note))
            return
        jobs = self._jobs()
        for node, row in list(self.rows.items()):
            state, _ = stands(jobs.get(cluster_objects.job_name(node)))
            if row.state is not HostState.DONE and not force:
                kept = f"{_KEEPS[state]}, so nothing is removed; --force removes it"
                self._put(
                    replace(
                        row, state=HostState.RUNNING if state is HostState.RUNNING else HostState.FAILED, reason=kept
                    )
                )
                continue
            removed = attempt(partial(self._remove, node, result=row.state is not HostState.DONE))
            if isinstance(removed, Failed):
                self._put(replace(row, state=HostState.FAILED, reason=cut(removed.reason)))
            else:
                self._put(HostRow(node, HostState.ABSENT))

    def _remove(self, node: str, *, result: bool) -> None:
        """Delete a node's Job, and the ``result`` that it left; a campaign that runs is ended before."""
        space = f"--namespace={self.plan.namespace}"
        words = ("delete", "job", cluster_objects.job_name(node), space, "--ignore-not-found", "--cascade=foreground")
        done = kubectl.run(*words, "--wait=true", time_limit_s=_DELETE_LIMIT_S)
        if done.code != 0:
            raise kubectl.refused(done)
        if result:
            with self._seeing(node) as inside:
                self._remove_result(node, inside).require()

    def _jobs(self) -> dict[str, Any]:
        """Return the fleet's Jobs by name."""
        return kubectl.items("jobs", f"--namespace={self.plan.namespace}")

    def _place(self, node: str) -> Path:
        return self.folder / f"{file_name(node)}{outputs.CAMPAIGN}"

    def _put(self, row: HostRow) -> None:
        self.rows[row.host] = row
        self._on_rows(list(self.rows.values()))
        with outputs.written(self.folder / ROWS) as file:
            json.dump({"schema": SCHEMA, "hosts": [asdict(each) for each in self.rows.values()]}, file, indent=1)

    def _last_words(self, node: str) -> str:
        job = f"job/{cluster_objects.job_name(node)}"
        done = kubectl.run("logs", job, f"--namespace={self.plan.namespace}", "--tail=20")
        lines = [line.strip() for line in done.text.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("error:")]
        return (errors or lines or [""])[-1]

    def _fetch(self, node: str) -> int:
        """Fetch a node's file by a pod that sees it, and remove it there. Returns its number of blocks."""
        there = self._there(node)
        with self._seeing(node) as inside:
            digest = kubectl.run(*inside, "sha256sum", there)
            if digest.code != 0:
                raise kubectl.refused(digest)
            arrived = self._work / f"{file_name(node)}.part"
            _receive([*inside, "cat", there], arrived)
            blocks = take(arrived, self._place(node), digest.text.partition(" ")[0])
            self._remove_result(node, inside)
        return blocks

    def _there(self, node: str) -> str:
        """Return a node's file as the fleet's pods see it."""
        return f"{cluster_objects.SEEN_AT}/{cluster_objects.file_name(self.plan, node)}"

    def _remove_result(self, node: str, inside: Sequence[str]) -> Finished:
        """Remove a node's file there, what a killed tare left beside it, and its page."""
        there = self._there(node)
        page = f"{there.removesuffix(outputs.CAMPAIGN)}.html"
        return kubectl.run(*inside, "sh", "-c", 'rm -f "$0" "$0"-* "$1"', there, page)

    @contextlib.contextmanager
    def _seeing(self, node: str) -> Iterator[list[str]]:
        """Start a pod that sees a node's results; yield kubectl's words for a command in it. Raises `HostError`."""
        pod = cluster_objects.fetching_pod(self.plan, node)
        name, space = str(pod["metadata"]["name"]), f"--namespace={self.plan.namespace}"
        done = kubectl.run("apply", "-f", "-", stdin=json.dumps(pod).encode())
        if done.code != 0:
            raise kubectl.refused(done)
        try:
            limit = f"--timeout={round(stretched(_POD_LIMIT_S))}s"
            ready = ("wait", "--for=condition=Ready", f"pod/{name}", space, limit)
            done = kubectl.run(*ready, time_limit_s=2 * _POD_LIMIT_S)
            if done.code != 0:
                raise kubectl.refused(done)
            yield ["exec", name, space, "--"]
        finally:
            kubectl.run("delete", "pod", name, space, "--ignore-not-found", "--wait=false")


def _receive(words: Sequence[str], place: Path) -> None:
    """Write what kubectl prints to a file, which is bounded by the kernel. Raises `HostError`."""
    argv = ["prlimit", f"--fsize={MAX_FILE_BYTES}", kubectl.program() or "kubectl", *words]
    with place.open("wb") as file:
        process = processes.start(argv, stdout=file, stderr=subprocess.PIPE, env=kubectl.environment())
        done = processes.finish(process, argv, time_limit_s=_FETCH_LIMIT_S)
    if done.code != 0:
        raise kubectl.refused(done)


def stands(job: Mapping[str, Any] | None) -> tuple[HostState, str]:
    """Return where a node stands by its Job, and the cluster's reason if it failed. A pure function."""
    if job is None:
        return HostState.FAILED, _NO_SUCH_JOB
    status: Mapping[str, Any] = kubectl.part(job, "status")
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if not isinstance(condition, dict):
            continue
        if condition.get("status") == "True" and condition.get("type") == "Failed":
            return HostState.FAILED, str(condition.get("message", "the Job failed"))
        if condition.get("status") == "True" and condition.get("type") == "Complete":
            return HostState.FETCHING, ""
    return (HostState.RUNNING if status.get("active") else HostState.STARTING), ""
