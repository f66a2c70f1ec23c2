"""A container platform inside a machine: what its guest is made of and told, and what a broken one says."""

import itertools
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from platforms import guests
from tare.contract.leftovers import left_on_host
from tare.errors import PlatformError
from tare.host import processes
from tare.image import outer
from tare.model import Arm
from tare.platforms import nested
from tare.platforms.base import Availability
from tare.platforms.nested import Nested
from tare.platforms.parts.machines.qemu_line import command
from tare.platforms.parts.nested import inner
from tare.platforms.parts.nested.inner import DOCKER, Task, docker_import, padded, runtime
from tare.platforms.qemu import Qemu

#: As `runc spec` and `crun spec` have it.
NO_DEVICES = {"devices": [{"allow": False, "access": "rwm"}]}

TASK = Task(
    agent=("/usr/local/bin/tare-agent", "serve", "--beacon", "10.77.0.1:914"),
    port=20_105,
    cpus=2,
    memory_bytes=256 << 20,
)
MACHINE = replace(guests.MACHINE, agent=(), further=(Path("/outer.ext4"), Path("/order")), words=("tare.outer",))


def _config(order):
    return json.loads(order.partition("<<'END'\n")[2].partition("\nEND\n")[0])


def test_a_runtimes_bundle_is_the_guests_disks_and_its_network():
    order = runtime("runc").order(TASK)
    config = _config(order)
    assert config["process"]["args"] == [*TASK.agent, "--userspace-at", "@began@"]
    assert config["root"] == {"path": "/image", "readonly": False}
    assert {"type": "network", "path": "/proc/1/ns/net"} in config["linux"]["namespaces"]
    assert config["linux"]["resources"] == {**NO_DEVICES, "cpu": {"cpus": "0,1"}, "memory": {"limit": 256 << 20}}
    [data] = [mount for mount in config["mounts"] if mount["destination"] == "/data"]
    assert data["source"] == "/data"
    assert order.splitlines()[-1] == "runc --root /run/state run --bundle /run/bundle tare"


def test_only_the_guest_knows_when_its_userspace_began():
    order = runtime("crun").order(TASK)
    # As the guest's shell runs it, but for the file's place and the runtime.
    here = order.replace("mkdir /run/bundle\n", "").replace(">/run/bundle/config.json", "")
    result = subprocess.run(
        ["sh", "-c", "began=3.25; crun() { :; }\n" + here], capture_output=True, check=True, text=True
    ).stdout
    assert json.loads(result)["process"]["args"][-2:] == ["--userspace-at", "3.25"]


def test_docker_publishes_the_port_of_both_kinds_and_runs_the_agent():
    [run] = [line for line in DOCKER.order(TASK).splitlines() if line.startswith("docker run")]
    assert run == (
        "docker run --rm -i --publish 20105:20105 --publish 20105:20105/udp --volume /data:/data tare "
        '/usr/local/bin/tare-agent serve --beacon 10.77.0.1:914 --userspace-at "$began"'
    )


@pytest.mark.parametrize(
    "order",
    [runtime("runc").order(TASK), DOCKER.order(TASK), docker_import("/dev/vde")],
    ids=["oci", "docker", "import"],
)
def test_an_order_is_a_script_that_fills_whole_sectors(order):
    disk = padded(order)
    assert len(disk) % 512 == 0
    assert disk.rstrip(b"\n") == order.encode().rstrip(b"\n")
    subprocess.run(["sh", "-n"], input=disk, check=True)


def test_the_system_and_the_order_are_the_third_and_fourth_disk_and_never_written():
    argv = command(MACHINE)
    drives = [after for before, after in itertools.pairwise(argv) if before == "-drive"]
    assert [drive.split("file=")[1].split(",")[0] for drive in drives] == [
        "/root.qcow2", "/data.ext4", "/outer.ext4", "/order",
    ]  # fmt: skip
    assert all("snapshot=on" in drive for drive in drives[2:])
    devices = [word for word in argv if word.startswith("virtio-blk-pci")]
    names = ("root", "data", "further0", "further1")
    assert [device.split(",")[1] for device in devices] == [f"drive={name}" for name in names]
    [append] = [after for before, after in itertools.pairwise(argv) if before == "-append"]
    assert "tare.outer" in append.partition(" -- ")[0].split()


def test_a_machine_without_further_disks_is_as_it_was():
    assert not [
        word for word in command(replace(MACHINE, further=(), words=())) if "further" in word or "outer" in word
    ]


@pytest.mark.parametrize(
    ("missing", "chosen", "fix"),
    [
        ("runc", runtime("runc"), "apt-get install runc"),
        ("docker-proxy", DOCKER, "apt-get install docker.io"),
        ("xtables-legacy-multi", DOCKER, "apt-get install iptables"),
    ],
)
def test_what_the_inner_platform_lacks_is_said_with_the_package(monkeypatch, missing, chosen, fix):
    monkeypatch.setattr(Qemu, "detect", lambda _: Availability(True, version="7.2.22, tcg"))
    monkeypatch.setattr(processes, "find", lambda name: None if name == missing else f"/usr/bin/{name}")
    answer = Nested("x-in-qemu", chosen).detect()
    assert not answer.available
    assert answer.reason == f"{missing} is not installed"
    assert answer.fix == fix


def test_a_host_without_qemu_says_that_first(monkeypatch):
    no = Availability(False, reason="QEMU is not installed", fix="apt-get install qemu-system-x86")
    monkeypatch.setattr(Qemu, "detect", lambda _: no)
    assert Nested("runc-in-qemu", runtime("runc")).detect() is no


def test_what_each_adds_to_what_the_machine_cannot_honour():
    for platform in nested.PLATFORMS:
        assert set(Qemu.not_honoured) < set(platform.not_honoured)
        assert not platform.by_default
        assert platform.own_kernel


@pytest.fixture(scope="module")
def launcher(prepared):
    return guests.with_one_processor(prepared[0])


BAD = [
    pytest.param(
        "no-such-runtime\n", "no-such-runtime: not found", id="a program that is not there", marks=pytest.mark.slow
    ),
    pytest.param(
        runtime("runc").order(replace(TASK, agent=("/no/such/agent",), cpus=1)),
        "/no/such/agent",
        id="a bundle that cannot run",
    ),
]


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize(("order", "message"), BAD)
def test_an_inner_platform_that_fails_ends_the_machine_with_its_words(launcher, order, message):
    broken = Nested("runc-in-qemu-tcg", replace(runtime("runc"), order=lambda _: order), "tcg")
    with pytest.raises(PlatformError) as caught:
        launcher.start(broken, Arm(broken.name), measured=True)
    assert message in caught.value.console.decode()
    assert "the platform inside has ended with" in caught.value.what
    assert left_on_host(f"{launcher.campaign}x") == []


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.slow
def test_a_docker_daemon_that_does_not_start_in_the_guest_says_why(launcher):
    order = DOCKER.order(TASK).replace("--storage-driver overlay2", "--storage-driver no-such-driver")
    # Of the runtime's kind otherwise: no store is needed to see a daemon fail.
    broken = Nested("docker-in-qemu-tcg", replace(DOCKER, order=lambda _: order, store=False), "tcg")
    with pytest.raises(PlatformError) as caught:
        launcher.start(broken, Arm(broken.name), measured=True)
    assert "driver not supported" in caught.value.what
    assert left_on_host(f"{launcher.campaign}x") == []


def test_what_a_program_is_linked_with_is_taken_from_the_loader(tmp_path):
    system = inner.runtime("runc").programs()
    assert system == ("runc",)
    files = outer.with_libraries("/bin/sh")
    assert files[0] == "/bin/sh"
    assert any("ld-linux" in file for file in files)
    static = tmp_path / "script"
    static.write_text("no program\n")
    assert outer.with_libraries(str(static)) == [str(static)]
