"""`tare quick`: what it sets up, starts and measures, without a host."""

import contextlib

import pytest

from tare.campaign.plan.campaign_request import CampaignRequest
from tare.cli import quick, run
from tare.cli.choices import ProgressOptions, ProgressStyle
from tare.errors import HostError


@pytest.fixture
def done(monkeypatch):
    """What was done, in order; and what a step refuses with."""
    done, refuses = [], {}

    def set_up(asked, *, dry_run, tell):
        done.append(f"set up {asked}{' dry' if dry_run else ''}")
        if "set up" in refuses:
            raise refuses["set up"]

    @contextlib.contextmanager
    def lent():
        if "dockerd" in refuses:
            raise refuses["dockerd"]
        done.append("dockerd begins")
        yield True
        done.append("dockerd ends")

    def measure(request, *_, **__):
        done.append(f"measure {','.join([*request.platforms, *(f'({name})' for name in request.second)])}")

    monkeypatch.setattr(quick, "set_up", set_up)
    monkeypatch.setattr(quick.own_dockerd, "lent", lent)
    monkeypatch.setattr(quick.processes, "find", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(quick, "measure", measure)
    monkeypatch.setattr(quick.bridged, "tracks_connections", lambda: "dockerd begins" in done)
    return done, refuses


def test_it_sets_up_and_measures_with_a_docker_daemon_that_is_there_for_that_time(done, tmp_path):
    quick.first_answer(["docker", "gvisor"], ["docker", "gvisor"], tmp_path / "x.tare", dry_run=False)
    assert done[0] == ["set up docker,gvisor", "dockerd begins", "measure docker,gvisor,(native-veth)", "dockerd ends"]


def test_without_docker_no_daemon_is_started_and_a_dry_run_measures_nothing(done, tmp_path):
    quick.first_answer(["runc"], ["runc"], tmp_path / "x.tare", dry_run=False)
    quick.first_answer(["docker"], ["docker"], tmp_path / "x.tare", dry_run=True)
    assert done[0] == ["set up runc", "measure runc", "set up docker dry"]


def test_what_cannot_be_set_up_or_started_is_told_and_the_rest_is_measured(done, tmp_path, capsys):
    done[1].update({"set up": HostError("no apt here"), "dockerd": HostError("it ended with 1", fix="see its log")})
    quick.first_answer(["docker"], ["docker", "runc"], tmp_path / "x.tare", dry_run=False)
    assert done[0] == ["set up docker", "measure docker,runc"]
    said = capsys.readouterr().err
    assert "not all is there: no apt here" in said
    assert "without Docker: it ended with 1 (fix: see its log)" in said


def test_a_second_baseline_that_is_asked_for_is_one_of_the_platforms(done, tmp_path):
    quick.first_answer([], ["docker", "native-veth"], tmp_path / "x.tare", dry_run=False)
    assert "measure docker,native-veth" in done[0]


@pytest.mark.parametrize(
    ("platform", "workload"), [("docker", "engine-restart"), ("docker", "exec"), ("lxd", "engine-restart")]
)
def test_a_daemon_of_tares_own_is_there_where_docker_is_to_be_restarted(
    done, tmp_path, monkeypatch, platform, workload
):
    monkeypatch.setattr(run.run_campaign, "begin", lambda *_: done[0].append("measure"))
    monkeypatch.setattr(run.own_namespaces, "enter", lambda _home: None)
    monkeypatch.setattr(run, "show", lambda *_, **__: None)
    request = CampaignRequest(platforms=["runc", platform], workloads=[workload])
    run.measure(request, tmp_path / "x.tare", ProgressOptions(ProgressStyle.AUTO, None), as_json=False)
    own = (platform, workload) == ("docker", "engine-restart")
    assert done[0] == (["dockerd begins", "measure", "dockerd ends"] if own else ["measure"])
