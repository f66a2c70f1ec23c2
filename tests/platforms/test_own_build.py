"""A user's own build of a runtime as a platform beside the installed one."""

import hashlib
import shutil

import pytest

from campaign.fakes import Quiet
from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.cli.commands import given
from tare.errors import UsageError
from tare.host import processes
from tare.model import Status
from tare.platforms import platform_registry
from tare.platforms.parts.bundles import own_build
from tare.store import read_store


def test_with_a_build_both_it_and_the_installed_program_are_measured():
    assert given.builds(["runc=./runc", "runsc=/new/runsc"]) == ["runc", "runc:./runc", "gvisor", "gvisor:/new/runsc"]
    assert given.builds(["runc=./a", "runc=./b"]) == ["runc", "runc:./a", "runc:./b"]
    assert given.builds([]) == []


@pytest.mark.parametrize(
    ("word", "problem"),
    [("runc", "does not name"), ("runc=", "does not name"), ("dockerd=./x", "does not accept a build of dockerd")],
)
def test_a_word_that_names_no_build_is_refused(word, problem):
    with pytest.raises(UsageError, match=problem):
        given.builds([word])


@pytest.mark.parametrize(("mode", "problem"), [(None, "is no file"), (0o644, "is not executable")])
def test_a_file_that_is_no_program_is_refused_when_the_platform_is_made(tmp_path, mode, problem):
    file = tmp_path / "runc"
    if mode is not None:
        file.write_text("x")
        file.chmod(mode)
    with pytest.raises(UsageError, match=problem):
        platform_registry.choose([f"runc:{file}"])


@pytest.mark.parametrize("family", sorted(set(own_build.FAMILY_OF.values())))
def test_every_family_makes_a_platform_of_its_name_that_no_default_has(tmp_path, family):
    file = tmp_path / "build"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    [platform] = platform_registry.choose([f"{family}:{file}"])
    assert (platform.name, platform.by_default) == (f"{family}:{file}", False)
    assert "a build of" in platform.title


def test_another_runtime_by_that_name_is_not_measured(tmp_path, monkeypatch):
    file = tmp_path / "runc"
    file.write_text("#!/bin/sh\necho crun version 1.21\n")
    file.chmod(0o755)
    monkeypatch.setattr(own_build.runtimes, "find", lambda _: "/usr/sbin/runc")
    unfit = own_build.unfit(str(file), "runc")
    assert unfit is not None
    assert "says that it is crun" in unfit.reason


def test_without_the_installed_runtime_nothing_would_remove_what_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(own_build.runtimes, "find", lambda _: None)
    unfit = own_build.unfit(str(tmp_path), "crun")
    assert unfit is not None
    assert "not installed" in unfit.reason


@pytest.mark.host
@pytest.mark.own_host
def test_two_builds_of_runc_are_two_arms_of_one_campaign(tmp_path):
    file = tmp_path / "runc-new"
    shutil.copy(processes.find("runc"), file)
    order = CampaignRequest(platforms=given.builds([f"runc={file}"]), workloads=("startup", "primes"), blocks=1)
    campaign = tmp_path / "x.tare"
    run_campaign.begin(order, campaign, Quiet())
    with read_store(campaign) as store:
        details = {platform.name: platform.details for platform in store.record.platforms}
        trials = store.trials()
    assert details[f"runc:{file}"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert "sha256" not in details["runc"]
    assert set(trials["status"]) == {Status.OK}
    assert {"native", "runc", f"runc:{file}"} == set(trials["platform"])
