"""Following, fetching and cleaning a fleet on a cluster: a program in kubectl's place keeps Jobs and a node's files."""

import json

import pytest
import typer

import fake_campaign
from tare.cli import fleet_run
from tare.errors import HostError
from tare.fleet import cluster, cluster_objects, playing
from tare.fleet.cluster_objects import ClusterPlan
from tare.fleet.host_states import NOT_FETCHED, HostRow, HostState
from tare.host.daemons import kubectl

PLAN = ClusterPlan(("node1", "node2"), "debian:12", ("-p", "runc"))
#: The cluster is a folder: a file a Job, and the files that the nodes' pods see.
KUBECTL = """\
#!/bin/sh
cluster={cluster}
echo "$*" >>"$cluster/log"
case "$1 $2" in
    "get namespace") [ -e "$cluster/jobs" ] && echo '{{}}' || {{ echo 'Error (NotFound): none' >&2; exit 1; }} ;;
    "get jobs")
        echo '{{"items": ['
        between=
        for job in "$cluster"/jobs/*; do [ ! -e "$job" ] || {{ echo "$between"; cat "$job"; between=,; }}; done
        echo ']}}'
        ;;
    "delete job") rm -f "$cluster/jobs/$3" ;;
    "delete -f") rm -rf "$cluster/jobs" ;;
    "apply -f") [ "$3" != - ] || cat >/dev/null ;;
    "exec "*)
        while [ "$1" != -- ]; do shift; done
        shift
        for word; do
            shift
            set -- "$@" "$(echo "$word" | sed "s|^/results/|$cluster/results/|")"
        done
        exec "$@"
        ;;
    "logs "*) echo 'error: runc: it is not installed' ;;
esac
"""
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}]}


class Cluster:
    """A cluster of two nodes with a Job each."""

    def __init__(self, place):
        self.place, self.folder = place / "cluster", place / "night"
        (self.place / "jobs").mkdir(parents=True)
        (self.place / "results").mkdir()
        cluster.begin(self.folder, PLAN)

    def job(self, node, status):
        name = cluster_objects.job_name(node)
        (self.place / "jobs" / name).write_text(json.dumps({"metadata": {"name": name}, "status": status}))

    def complete(self, node):
        self.job(node, COMPLETE)
        fake_campaign.write(self.result(node), fake_campaign.Shape(blocks=3, workloads=("prime-slices",)))

    def result(self, node):
        return self.place / "results" / cluster_objects.file_name(PLAN, node)

    @property
    def log(self):
        return (self.place / "log").read_text()

    @property
    def empty(self):
        """Nothing is left, neither objects nor results."""
        return not (self.place / "jobs").exists() and not [*(self.place / "results").iterdir()]


@pytest.fixture
def there(tmp_path, monkeypatch):
    program = tmp_path / "kubectl"
    made = Cluster(tmp_path)
    program.write_text(KUBECTL.format(cluster=made.place))
    program.chmod(0o755)
    monkeypatch.setattr(kubectl, "program", lambda: str(program))
    return made


def ignore(_rows):
    pass


def states(rows):
    return {row.host: row.state for row in rows}


def test_status_says_how_nodes_stand_and_fetches_nothing(there):
    there.complete("node1")
    there.job("node2", {"active": 1})
    rows = cluster.status(there.folder, ignore)
    assert [(row.state, row.doing) for row in rows] == [(HostState.RUNNING, NOT_FETCHED), (HostState.RUNNING, "")]
    assert not [*there.folder.glob("*.tare")]
    assert "exec" not in there.log
    assert cluster.read_rows(there.folder) == rows


def test_fetch_takes_what_is_complete_and_deletes_all_after_the_last(there):
    there.complete("node1")
    there.job("node2", {"active": 1})
    rows = cluster.fetch(there.folder, ignore)
    assert [(row.state, row.blocks) for row in rows] == [(HostState.DONE, 3), (HostState.RUNNING, None)]
    assert (there.folder / "node1.tare").is_file()
    assert not there.result("node1").exists()
    assert "delete pod fetch-node1" in there.log
    assert (there.place / "jobs").exists()

    there.complete("node2")
    rows = cluster.fetch(there.folder, ignore)
    assert [(row.state, row.blocks) for row in rows] == [(HostState.DONE, 3)] * 2
    assert there.empty
    asked = there.log
    assert cluster.status(there.folder, ignore) == rows  # known without the cluster
    assert there.log == asked


def test_a_failed_node_has_its_last_words_and_keeps_the_objects(there):
    there.complete("node1")
    there.job("node2", FAILED)
    rows = cluster.fetch(there.folder, ignore)
    assert [(row.state, row.reason) for row in rows] == [
        (HostState.DONE, ""),
        (HostState.FAILED, "error: runc: it is not installed"),
    ]
    assert (there.place / "jobs").exists()


def test_the_fetching_pod_goes_where_fetching_fails(there):
    there.job("node1", COMPLETE)  # and left no file
    there.job("node2", {"active": 1})
    rows = cluster.fetch(there.folder, ignore)
    assert states(rows) == {"node1": HostState.FAILED, "node2": HostState.RUNNING}
    assert "delete pod fetch-node1" in there.log


def test_clean_keeps_what_runs_or_was_not_fetched(there):
    there.complete("node1")
    there.job("node2", {"active": 1})
    rows = cluster.clean(there.folder, ignore, force=False)
    assert [(row.state, row.reason) for row in rows] == [
        (HostState.FAILED, "its campaign was not fetched, so nothing is removed; --force removes it"),
        (HostState.RUNNING, "its Job still runs, so nothing is removed; --force removes it"),
    ]
    assert there.result("node1").exists()
    assert "delete" not in there.log


def test_clean_by_force_ends_jobs_before_it_removes_results(there):
    there.complete("node1")
    there.job("node2", {"active": 1})
    there.result("node2").write_text("half")
    there.result("node2").with_name(f"{there.result('node2').name}-wal").write_text("half")
    rows = cluster.clean(there.folder, ignore, force=True)
    assert states(rows) == {"node1": HostState.ABSENT, "node2": HostState.ABSENT}
    assert there.empty
    said = there.log
    assert said.index(f"delete job {cluster_objects.job_name('node2')}") < said.index("exec fetch-node2")


def test_clean_after_everything_was_fetched_needs_no_force(there):
    there.complete("node1")
    there.job("node2", {"active": 1})
    cluster.fetch(there.folder, ignore)
    there.complete("node2")
    cluster.status(there.folder, ignore)
    (there.folder / "node2.tare").write_bytes(there.result("node2").read_bytes())
    assert states(cluster.clean(there.folder, ignore, force=False)) == dict.fromkeys(PLAN.nodes, HostState.ABSENT)
    assert not (there.place / "jobs").exists()
    assert (there.folder / "node1.tare").is_file()  # what was fetched stays


def test_clean_of_a_cluster_without_the_fleet_says_where_results_may_be(there):
    for job in [*(there.place / "jobs").iterdir()]:
        job.unlink()
    (there.place / "jobs").rmdir()
    rows = cluster.clean(there.folder, ignore, force=False)
    assert states(rows) == dict.fromkeys(PLAN.nodes, HostState.ABSENT)
    assert {row.note for row in rows} == {"a campaign that was not fetched is in /var/lib/tare-fleet"}


def test_status_beside_a_controller_is_what_that_wrote(there):
    with playing.owned(there.folder):
        with pytest.raises(HostError, match="another tare fleet works"):
            cluster.status(there.folder, ignore)
        (there.folder / cluster.ROWS).write_text(
            json.dumps({"schema": cluster.SCHEMA, "hosts": [{"host": "node1", "state": "running"}]})
        )
        assert cluster.status(there.folder, ignore) == [HostRow("node1", HostState.RUNNING)]
        with pytest.raises(HostError, match="another tare fleet works"):
            cluster.fetch(there.folder, ignore)


@pytest.mark.parametrize(("status", "code"), [({"active": 1}, 3), (FAILED, 2), (COMPLETE, 3)])
def test_commands_end_as_the_nodes_stand(there, status, code, capsys):
    for node in PLAN.nodes:
        there.job(node, status)
    with pytest.raises(typer.Exit) as ended:
        fleet_run.status(there.folder, forks=1, as_json=True)
    assert ended.value.exit_code == code
    assert [row["host"] for row in json.loads(capsys.readouterr().out)["hosts"]] == ["node1", "node2"]
