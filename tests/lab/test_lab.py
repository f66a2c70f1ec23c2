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
from tare.host.journal import Journal, sweep
from tare.platforms import registry

pytestmark = [pytest.mark.lab, pytest.mark.host, pytest.mark.timeout(3600)]

TARE = Path(sys.executable).with_name("tare")
DETECT = ["python3", "tests/lab/detect.py"]


def lab(*words):
    """`tare lab run` with these words, to its end."""
    return subprocess.run([TARE, "lab", "run", *words], capture_output=True, text=True, check=False)


def started(*words):
    """Start `tare lab run`, and wait until something of it is on the host; the process and the lab's label."""
    process = subprocess.Popen([TARE, "lab", "run", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None:
        for entry in Journal(state.journal()).entries():
            if entry.owner.pid == process.pid and entry.thing.kind == "folder":
                return process, Path(entry.thing.facts["path"]).name
        time.sleep(0.05)
    raise AssertionError(process.communicate())


def left(label):
    """Processes, folders and groups of one lab on this host."""
    found = [str(path) for path in state.work().glob(label)]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/tare-{label}")]
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if label.encode() in cmdline.read_bytes():
                found.append(str(cmdline))
        except OSError:
            continue
    return found


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
    said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert left(label) == []


@pytest.mark.parametrize("after_s", [0, 3])
def test_a_killed_lab_leaves_nothing_that_clean_does_not_find(after_s):
    process, label = started("--", "sleep", "1000")
    time.sleep(after_s)
    process.kill()
    process.communicate()
    assert left(label)
    assert [step for step in sweep(Journal(state.journal())) if step.kept and label in str(step.thing)] == []
    assert left(label) == []


def test_it_is_a_host_whose_kvm_runs_guests():
    done = lab("--", *DETECT, "qemu", "gvisor-kvm", "runc", "crun", "gvisor", "bubblewrap", "nspawn", "lxc")
    assert done.returncode == 0, done
    seen = json.loads(done.stdout)
    assert seen["qemu"]["details"]["accelerator"] == "kvm: a guest came up"
    assert {name: answer["reason"] for name, answer in seen.items() if not answer["available"]} == {}


@pytest.mark.parametrize("platform", ["qemu", "gvisor-kvm"])
def test_a_platform_on_kvm_keeps_the_contract(platform):
    done = lab("--time-limit", "50m", "--", "tare", "platform", "check", platform)
    assert done.returncode == 0, done.stdout + done.stderr


def test_dom0_answers_and_runs_a_paravirtual_guest():
    done = lab("--flavour", "xen", "--", "sh", "-ec", "xl info; xl list; sh tests/lab/pv_guest.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "xen_version            : 4.17" in done.stdout
    assert "Domain-0" in done.stdout
    assert "tare-guest-runs" in done.stdout


@pytest.mark.skipif("xen-pv" not in registry.all_platforms(), reason="there is no driver for Xen yet")
def test_xen_keeps_the_contract():
    done = lab("--flavour", "xen", "--time-limit", "50m", "--", "tare", "platform", "check", "xen-pv")
    assert done.returncode == 0, done.stdout + done.stderr


def test_firecracker_keeps_the_contract_or_its_program_is_missing():
    program = shutil.which("firecracker")
    if program is None:
        done = lab("--", *DETECT, "firecracker")
        answer = json.loads(done.stdout)["firecracker"]
        assert not answer["available"]
        assert "firecracker" in answer["reason"]
        assert "PATH" in answer["fix"]
        return
    named = os.path.realpath(program)
    assert Path(named).name == "firecracker", "a lab has programs by their own name"
    done = lab("--file", named, "--time-limit", "50m", "--", "tare", "platform", "check", "firecracker")
    assert done.returncode == 0, done.stdout + done.stderr
