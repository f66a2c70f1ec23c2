"""What only a lab can show: KVM, gVisor on KVM, Xen and Firecracker, each on a host that has it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tare.host import state
from tare.host.resources.journal import Journal, sweep

pytestmark = [pytest.mark.lab, pytest.mark.host, pytest.mark.timeout(3600)]

TARE = Path(sys.executable).with_name("tare")
DETECT = ["python3", "tests/lab/detect.py"]
KVM = ("--time-limit", "50m")
#: Four guests at once beside dom0.
XEN = ("--flavour", "xen", "--memory", "6G", "--time-limit", "50m")
FIRECRACKER = ("firecracker", "jailer")
CHECKS = (
    *("start-is-seen", "start-is-split", "same-bits", "stream-is-clean", "memory-holds", "network-both-ways"),
    *("death-is-noticed", "stop-leaves-nothing"),
)
#: Of a variant, what it does itself; the platform that it varies keeps the rest.
PARTS = tuple(word for check in CHECKS for word in ("--only", check))
#: Of a life: it is made, entered, paused, ended and removed, and a restored one has the same memory.
LIVES = ("--only", "lives-by-its-commands", "--only", "restored-remembers")
#: A campaign with a black box, which ends well only if it has answered.
BOX = ("sh", "tests/lab/black_box.sh")


def lab(*words):
    """`tare lab run` with these words, to its end."""
    return subprocess.run([TARE, "lab", "run", *words], capture_output=True, text=True, check=False)


def kept(*words):
    """`tare lab run` with these words ends well."""
    done = lab(*words)
    assert done.returncode == 0, done.stdout + done.stderr


def started(*words):
    """Start `tare lab run`, and wait until something of it is on the host; the process and the lab's label."""
    process = subprocess.Popen([TARE, "lab", "run", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None:
        for entry in Journal(state.journal()).entries():
            if entry.owner.pid == process.pid and entry.resource.kind == "folder":
                return process, Path(entry.resource.facts["path"]).name
        time.sleep(0.05)
    raise AssertionError(process.communicate())


def left(label):
    """Processes, folders and groups of one lab on this host."""
    paths = [str(path) for path in state.work().glob(label)]
    paths += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/tare-{label}")]
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if label.encode() in cmdline.read_bytes():
                paths.append(str(cmdline))
        except OSError:
            continue
    return paths


def test_output_results_files_and_the_exit_code_come_through(tmp_path):
    tool = tmp_path / "lab-tool"
    tool.write_text("#!/bin/sh\necho from the tool\n")
    tool.chmod(0o755)
    script = "lab-tool; echo heard >&2; mkdir /lab/out/below; uname -r >/lab/out/below/release; exit 7"
    process, label = started("--file", str(tool), "--out", str(tmp_path / "out"), "--", "sh", "-c", script)
    out, err = process.communicate()
    assert process.returncode == 7, err
    assert out == b"from the tool\n"
    assert b"heard\n" in err
    assert "cloud" in (tmp_path / "out/below/release").read_text()
    assert left(label) == []


def test_a_command_that_goes_on_is_ended_at_its_limit_and_a_signal_is_told():
    done = lab("--time-limit", "3s", "--", "sleep", "1000")
    assert done.returncode == 124, done
    assert lab("--", "sh", "-c", "kill -9 $$").returncode == 137


@pytest.mark.parametrize("after_s", [0, 1, 15])
def test_an_interrupted_lab_leaves_nothing(after_s):
    process, label = started("--", "sleep", "1000")
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert left(label) == []


@pytest.mark.parametrize("after_s", [0, 3])
def test_a_killed_lab_leaves_nothing_that_clean_does_not_find(after_s):
    process, label = started("--", "sleep", "1000")
    time.sleep(after_s)
    process.kill()
    process.communicate()
    assert left(label)
    assert [step for step in sweep(Journal(state.journal())) if step.kept and label in str(step.resource)] == []
    assert left(label) == []


def test_it_is_a_host_whose_kvm_runs_guests():
    done = lab("--", *DETECT, "qemu", "gvisor-kvm", "runc", "crun", "gvisor", "bubblewrap", "nspawn", "lxc")
    assert done.returncode == 0, done
    answers = json.loads(done.stdout)
    assert answers["qemu"]["details"]["accelerator"] == "kvm: a guest came up"
    assert {name: answer["reason"] for name, answer in answers.items() if not answer["available"]} == {}


@pytest.mark.parametrize("platform", ["qemu", "gvisor-kvm"])
def test_a_platform_on_kvm_keeps_the_contract(platform):
    kept(*KVM, "--", "tare", "platform", "check", platform)


@pytest.mark.parametrize("platform", ["qemu-kvm", "qemu-microvm"])
def test_a_variant_on_kvm_keeps_what_is_its_own(platform):
    kept(*KVM, "--", "tare", "platform", "check", platform, *PARTS)


def test_dom0_answers_and_runs_a_paravirtual_guest():
    done = lab("--flavour", "xen", "--", "sh", "-ec", "xl info; xl list; sh tests/lab/pv_guest.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "xen_version            : 4.17" in done.stdout
    assert "Domain-0" in done.stdout
    assert "tare-guest-runs" in done.stdout


def test_xen_keeps_the_contract():
    kept(*XEN, "--", "tare", "platform", "check", "xen-pv")


def test_xen_by_libvirt_keeps_what_is_its_own():
    kept(*XEN, "--", "tare", "platform", "check", "libvirt-xen", *PARTS)


def test_black_boxes_answer_on_xen():
    kept(*XEN, "--", *BOX, "blackbox-xen")


@pytest.mark.skipif(shutil.which("firecracker") is not None, reason="firecracker is on PATH")
def test_without_its_program_firecracker_says_so():
    answer = json.loads(lab("--", *DETECT, "firecracker").stdout)["firecracker"]
    assert not answer["available"]
    assert "firecracker" in answer["reason"]
    assert "PATH" in answer["fix"]


@pytest.mark.skipif(shutil.which("firecracker") is None, reason="firecracker is not on PATH: no registry has it")
@pytest.mark.parametrize(
    "command",
    [
        ("tare", "platform", "check", "firecracker"),
        ("tare", "platform", "check", "firecracker-api", *PARTS, *LIVES),
        ("tare", "platform", "check", "firecracker-restored", *PARTS),
        ("tare", "platform", "check", "firecracker-jailer", *PARTS),
        (*BOX, "blackbox-firecracker"),
    ],
    ids=lambda command: command[-1] if command[0] == "sh" else command[3],
)
def test_firecracker_keeps_the_contract(command):
    programs = [os.path.realpath(program) for name in FIRECRACKER if (program := shutil.which(name))]
    assert [Path(program).name for program in programs] == list(FIRECRACKER), "a lab has programs by their own name"
    kept(*KVM, *(word for program in programs for word in ("--file", program)), "--", *command)


@pytest.mark.skipif(shutil.which("firecracker") is None, reason="firecracker is not on PATH: no registry has it")
def test_kills_in_operations_of_firecrackers_leave_nothing():
    program = os.path.realpath(shutil.which("firecracker"))
    kills = ("python3", "-m", "pytest", "-q", "-m", "slow", "-k", "firecracker", "tests/campaign/test_life_kill.py")
    kept(*KVM, "--file", program, "--", *kills)
