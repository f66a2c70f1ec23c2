"""`tare doctor` starts an instance of each platform as a campaign does: what it calls available runs."""

import contextlib
import json
import time
from types import SimpleNamespace

import pytest

from campaign.fakes import FakeLauncher, FakePlatform
from tare.campaign import platform_check
from tare.cli import doctor
from tare.errors import HostError, PlatformError
from tare.platforms.base import Availability


class Guest(FakePlatform):
    own_kernel = True


class Missing(FakePlatform):
    def detect(self):
        return Availability(False, reason="it is not installed", fix="install it")


@pytest.fixture
def examined(monkeypatch, capsys):
    """Runs doctor on these platforms with this launcher, and no host below it; returns the rows by name, and texts."""
    monkeypatch.setattr(doctor.host_checks, "checks", lambda facts, *, image: [])
    of_features = SimpleNamespace(checks=lambda: [doctor.host_checks.HostCheck("ptrace", "ok", "yes")])
    monkeypatch.setattr(doctor, "feature_modules", lambda name: [of_features])
    monkeypatch.setattr(doctor.platforms, "offers", list)
    monkeypatch.setattr(platform_check.platform_contract, "prepared", lambda platform, image: platform.prepare(image))

    def run(platforms, launcher=None, *, refused=None):
        @contextlib.contextmanager
        def ready():
            if refused is not None:
                raise refused
            yield platform_check.Tryout(launcher or FakeLauncher(), SimpleNamespace(own=lambda *_: None))

        monkeypatch.setattr(platform_check, "ready", ready)
        monkeypatch.setattr(doctor.platforms, "all_platforms", lambda: {fake.name: fake for fake in platforms})
        monkeypatch.setattr(doctor.platforms, "choose", lambda names: list(platforms))
        doctor.examine((), as_json=True)
        rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["platforms"]}
        doctor.examine((), as_json=False, whole=True)
        return rows, capsys.readouterr().out

    return run


@pytest.mark.thorough
def test_each_is_started_and_ended(examined):
    launcher = FakeLauncher()
    rows, text = examined([FakePlatform("native", baseline=True), FakePlatform("runc"), Missing("docker")], launcher)
    assert rows["runc"]["details"]["tried"] == "an instance came up"
    assert rows["docker"]["reason"] == "it is not installed"
    assert sorted(launcher.log) == sorted(["start native", "stop native", "start runc", "stop runc"] * 2)
    assert "an instance came up" in text
    assert rows["runc"]["details"]["security inside"].endswith("users: not mapped; label: none")


def test_named_platforms_are_printed_with_what_keeps_them_in(capsys):
    container = {"security inside": "seccomp: none", "security outside": "process: tare-agent; seccomp: none"}
    guest = {"security inside": "seccomp: none", "security outside": "process: qemu; seccomp: filter (1)"}
    doctor._print_security([{"name": "runc", "details": container}, {"name": "qemu", "details": guest}])
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0] == ["What", "keeps", "their", "instances", "in"]
    assert ["runc", "on", "the", "host", "the", "same,", "process:", "tare-agent"] in lines
    assert ["qemu", "on", "the", "host", "process:", "qemu;", "seccomp:", "filter", "(1)"] in lines


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PlatformError("the daemon refuses: cgroup-parent", fix="set a slice"), "the daemon refuses: cgroup-parent"),
        (OSError(13, "Permission denied"), "PermissionError: [Errno 13] Permission denied"),
        (KeyError("IPAddress"), "KeyError: 'IPAddress'"),
    ],
    ids=["PlatformError", "OSError", "KeyError"],
)
@pytest.mark.parametrize("where", ["prepare", "start", "stop"])
def test_one_that_does_not_start_is_not_available_and_the_others_are(examined, monkeypatch, where, error, reason):
    def fail(*_, **__):
        raise error

    docker, launcher = FakePlatform("docker"), FakeLauncher()
    start = launcher.start

    def begin(platform, arm, **more):
        if platform is docker and where == "start":
            raise error
        running = start(platform, arm, **more)
        if platform is docker and where == "stop":
            running.stop = fail
        return running

    monkeypatch.setattr(launcher, "start", begin)
    if where == "prepare":
        monkeypatch.setattr(docker, "prepare", fail)
    rows, _ = examined([FakePlatform("native", baseline=True), docker], launcher)
    assert rows["native"]["available"]
    assert not rows["docker"]["available"]
    assert rows["docker"]["reason"].startswith(f"an instance does not start: {reason}")
    assert rows["docker"]["fix"] == (getattr(error, "fix", None) or "")


def test_one_prepares_at_a_time(examined):
    """Docker's platforms share an archive of the image and the daemon's store: two at once broke the one's file."""
    preparing, most = [], []

    class Slow(FakePlatform):
        def prepare(self, image):
            preparing.append(self.name)
            most.append(len(preparing))
            time.sleep(0.05)
            preparing.remove(self.name)
            return super().prepare(image)

    rows, _ = examined([Slow("docker"), Slow("docker-host"), Slow("docker-none")])
    assert all(row["available"] for row in rows.values())
    assert max(most) == 1


def test_what_is_not_started_says_why(examined):
    launcher = FakeLauncher()
    rows, text = examined([FakePlatform("native", baseline=True), Guest("qemu")], launcher)
    assert rows["qemu"]["available"]
    assert rows["qemu"]["details"]["tried"] == "not started: a guest's start may take long"
    assert not [line for line in launcher.log if "qemu" in line]
    assert "a guest's start may" in text


def test_beside_a_campaign_nothing_is_started_and_that_is_said(examined):
    rows, _ = examined([FakePlatform("runc")], refused=HostError("another tare has this host", fix="wait"))
    assert rows["runc"]["available"]
    assert rows["runc"]["details"]["tried"] == "not started: another tare has this host (fix: wait)"


def test_only_platforms_that_run_the_image_here_are_started():
    far, untried = FakePlatform("far"), FakePlatform("untried")
    far.elsewhere = True
    assert platform_check.why_not(FakePlatform("runc")) == ""
    assert platform_check.why_not(far) == "it is on another machine"
    untried.untried = "its shim is a program of the image's"
    assert platform_check.why_not(untried) == "its shim is a program of the image's"


def test_an_interrupt_says_what_it_waits_for(examined, capsys):
    class Interrupted(FakePlatform):
        def detect(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examined([FakePlatform("native", baseline=True), Interrupted("docker")])
    assert "interrupted: the platforms that are being tried come to their end first" in capsys.readouterr().err


def _row(name, reason="", fix=""):
    return {"name": name, "available": not reason, "reason": reason, "fix": fix}


def test_ten_lines_say_what_to_do(capsys):
    host = [
        doctor.host_checks.HostCheck("kernel", "ok", "6.1"),
        doctor.host_checks.HostCheck("load", "warn", "3.2", "wait"),
        doctor.host_checks.HostCheck("swap", "warn", "on", "swapoff -a"),
        doctor.host_checks.HostCheck("disk", "fail", "full", "free 2 GiB"),
        doctor.host_checks.HostCheck("turbo", "warn", "on"),
    ]
    results = [
        *(_row(f"p{number}") for number in range(30)),
        _row("podman", "podman is not installed", "apt-get install podman"),
        _row("gvisor", "runsc is not installed", "tare setup --with gvisor"),
        _row("docker", "the Docker daemon does not answer", "systemctl start docker"),
        _row("qemu-passt", "passt is not installed", "apt-get install passt"),
    ]
    doctor._print_short(host, results, named=False)
    lines = " ".join(capsys.readouterr().out.split())
    assert "can be measured (30): p0, p1," in lines
    assert "and 6 more" in lines
    assert "not here: podman, gvisor; to have them: tare setup --with podman,gvisor" in lines
    assert "not here: docker: the Docker daemon does not answer; fix: systemctl start docker" in lines
    assert lines.index("disk: full; free 2 GiB") < lines.index("load: 3.2; wait") < lines.index("swap: on")
    assert "turbo" not in lines
    assert "qemu-passt" not in lines
    assert lines.endswith("tare doctor --all")


def test_of_named_platforms_each_reason_is_said(capsys):
    doctor._print_short([], [_row("qemu-passt", "passt is not installed", "apt-get install passt")], named=True)
    assert "not here: qemu-passt: passt is not installed; fix: apt-get install passt" in capsys.readouterr().out
