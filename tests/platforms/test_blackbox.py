"""Black boxes: the file that describes one, its command, and what a machine without an agent can promise."""

import ipaddress
import json
import os
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import pytest

from tare.campaign.execution.runs import run_trial
from tare.campaign.execution.slices import run_slices
from tare.campaign.plan.schedule import Stage
from tare.contract.leftovers import packet_rules
from tare.errors import HostError, PlatformError, UsageError
from tare.host import processes, userns
from tare.host.kernel import process_table
from tare.host.network import dhcp
from tare.image import guest
from tare.model import Arm, Mode
from tare.platforms import blackbox, monitors, platform_registry, xen
from tare.platforms.blackbox import OWN
from tare.platforms.monitors import GuestSetup, firecracker_settings, qemu_command, xen_domain
from tare.platforms.parts.machines import vm
from tare.platforms.parts.machines.boxfile import Box, Device, GuestAnswers, load
from tare.platforms.watchers.guest_service import CONSOLE, UDP_ECHO, FirstAnswer, GuestService, is_page
from tare.workloads import workload_registry as workloads

pytestmark = pytest.mark.own_host

GOOD = """\
kernel = "kernel"
cmdline = 'box_ip={ip}/{prefix} via {gateway} {"json": {}}'
memory = 64
[answers]
udp = 7
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "kernel").write_bytes(b"kernel")
    (tmp_path / "box.toml").write_text(GOOD)
    return tmp_path / "box.toml"


def without_cmdline(more):
    """`GOOD`, without the lines that ``more`` has in their place."""
    return "".join(line for line in GOOD.splitlines(True) if not (line.startswith("cmdline") and "cmdline" in more))


def test_a_file_is_read_and_its_paths_are_relative_to_it(file):
    box = load(file)
    assert box.files == {"kernel": file.parent / "kernel"}
    assert (box.vmm, box.cpus, box.answers.udp, box.answers.tcp) == ("qemu", 1, 7, None)
    filled = box.command_line(ip="192.0.2.9", prefix="24", netmask="255.255.255.0", gateway="192.0.2.1", mac="02")
    assert filled == 'box_ip=192.0.2.9/24 via 192.0.2.1 {"json": {}}'
    [platform] = platform_registry.choose([f"blackbox:{file}"])
    assert platform.name == f"blackbox:{file}"
    assert not platform.has_agent


def test_the_example_in_the_documentation_is_a_file_that_is_read(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "platforms.md").read_text()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "app.elf").touch()
    (tmp_path / "box.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    box = load(tmp_path / "box.toml")
    assert (box.answers.udp, box.answers.http, box.console) == (7, 80, "listening on")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("memory = 64", 'memory = "64"', "memory: Input should be a valid integer"),
        ("memory = 64", "memory = 1", "memory: Input should be greater than or equal to 2"),
        ("memory = 64", "memory = 4", "memory: qemu takes 8 MiB or more"),
        ("memory = 64", "memry = 64", "memry: there is no such key"),
        ("memory = 64", 'vmm = "vmware"', "vmm: Input should be 'qemu'"),
        ("memory = 64", 'machine = "pv"', "qemu has no machine pv: q35, pc, microvm"),
        ("memory = 64", 'vmm = "firecracker"\nmachine = "microvm"', "firecracker has no machine microvm"),
        ("memory = 64", 'vmm = "xen"\nlink = "user"', "link is a choice of QEMU's, and the box is xen's"),
        ('kernel = "kernel"', 'vmm = "xen"\ndisk = "kernel"', "xen boots a kernel: name one"),
        ("memory = 64", 'network = "ne2000"', "network: Input should be 'virtio-net-pci'"),
        ("memory = 64", 'console = "("', "console: not a regular expression"),
        ("memory = 64", 'disk = "none.img"', "disk: there is no file"),
        ('kernel = "kernel"', 'kernel = "krnel"', "kernel: there is no file"),
        ('kernel = "kernel"', "", "name a kernel or a disk"),
        ('kernel = "kernel"', 'disk = "kernel"', "initrd and cmdline go with a kernel"),
        ("{ip}", "none", "how does the guest get its address? {ip} in cmdline, dhcp = true"),
        ("udp = 7", "udp = 70000", "answers.udp: Input should be less than or equal to 65535"),
        ("udp = 7", "", "answers: name at least one port"),
        ("udp = 7", 'http = 80\npath = "index"', "answers.path: String should match pattern"),
        ("[answers]\nudp = 7", "", "answers: Field required"),
        ("memory = 64", "memory = = 64", "is not TOML"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_field(file, old, new, message):
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(UsageError) as caught:
        platform_registry.choose([f"blackbox:{file}"])
    assert message in caught.value.what
    assert "\n" not in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('ip = "192.0.2.300"', "ip: Expected 4 octets|ip: Octet 300"),
        ('ip = "192.0.2.3"\ndhcp = true', "ip is the guest's own address, and dhcp gives it one"),
        ('link = "user"\ndhcp = true', 'ip and dhcp go with link = "tap"'),
        ('link = "none"', 'link = "none" leaves console as its only answer'),
        ('vmm = "spt"\ncpus = 2', "cpus: spt runs one file on one CPU"),
        ('vmm = "hvt"\ninitrd = "kernel"', "initrd: hvt runs one file on one CPU"),
        ('net_name = "service"', "net_name is a choice of Solo5's tenders (hvt, spt), and the box is qemu's"),
        ('vmm = "xen"\ndevices = ["VGA"]', "devices is a choice of QEMU's, and the box is xen's"),
        ('machine_options = "rtc=on;x"', "machine_options: 'rtc=on;x' is not NAME=VALUE"),
        ('cpu = "-S"', "cpu: String should match pattern"),
        ('devices = ["vfio-pci"]', "devices.1: Input should be 'VGA'"),
        ("modern_virtio = true", 'modern_virtio goes with machine = "microvm"'),
        ('vmm = "spt"\ncmdline = "it\'s {ip}"', "cmdline: No closing quotation; spt takes words"),
    ],
)
def test_what_does_not_go_together_is_one_line(file, more, message):
    file.write_text(without_cmdline(more).replace("memory = 64", f"memory = 64\n{more}"))
    with pytest.raises(UsageError) as caught:
        load(file)
    assert any(words in caught.value.what for words in message.split("|"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('arguments = ["-incoming", "exec:id >PWN"]', "arguments: there is no such key"),
        ('disk = "/etc/shadow"', "disk: there is no file /etc/shadow in the folder of the box's file"),
        ('disk = "../outside"', "disk: there is no file"),
        ('disk = "link"', "disk: there is no file"),
        ('disk = "linked/outside"', "disk: there is no file"),
        ('disk = "evil.qcow2"', "disk: FOLDER/evil.qcow2 is qcow2, which can name other files of this host"),
        ('initrd = "kernel,/etc/shadow"', "initrd: there is no file"),
        ('disk = "pipe"', "disk: there is no file"),
        ('disk = "."', "disk: there is no file"),
        ('disk = "a\\u0000b"', "disk: it has a control character"),
        ('cpu = "max,x=$(id) y"', "cpu: String should match pattern"),
        ('machine_options = "firmware=etc"', "machine_options: 'firmware=etc' is not NAME=VALUE"),
        ('machine_options = "rtc=on,dumpdtb=x"', "machine_options: 'dumpdtb=x' is not NAME=VALUE"),
        ('machine_options = "accel=xen"', "machine_options: 'accel=xen' is not NAME=VALUE"),
        ('devices = ["virtio-rng-pci,rng=x"]', "devices.1: Input should be 'VGA'"),
        ('ip = "169.254.169.254"', "ip: 169.254.169.254 is no private address"),
        ('ip = "9.9.9.9"', "ip: 9.9.9.9 is no private address"),
        ('ip = "127.0.0.53"', "ip: 127.0.0.53 is no private address"),
        ('vmm = "xen"\ncmdline = "{ip}\\nbootloader=x"', "cmdline: it has a control character"),
        ('net_name = "a,b"', "net_name: String should match pattern"),
    ],
)
def test_a_box_of_a_stranger_reaches_nothing_of_the_host(file, more, message):
    folder = file.parent
    (folder.parent / "outside").write_bytes(b"the host's")
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "linked").symlink_to(folder.parent)
    (folder / "evil.qcow2").write_bytes(b"QFI\xfb and a backing file")
    os.mkfifo(folder / "pipe")
    file.write_text(without_cmdline(more).replace("memory = 64", more))
    with pytest.raises(UsageError) as caught:
        load(file)
    assert message.replace("FOLDER", str(folder)) in caught.value.what
    assert "\n" not in str(caught.value)


def test_a_file_that_became_a_link_after_it_was_looked_at_is_refused(file, tmp_path):
    box = load(file)
    (tmp_path / "kernel").unlink()
    (tmp_path / "kernel").symlink_to("/etc/shadow")
    folder = tmp_path / "instance"
    folder.mkdir()
    with pytest.raises(PlatformError, match="is not there any more, or is a link now"):
        monitors.MONITORS["xen"].ready(box, setup(folder), None, None)
    assert not (folder / "kernel").exists()


def test_what_nanos_on_a_microvm_needs_is_on_the_command_line(file, tmp_path):
    settings = """
        machine = "microvm"
        machine_options = "rtc=on,ioapic2=off"
        cpu = "max,-svm"
        disk = "kernel"
        dhcp = true
        devices = ["virtio-rng-device", "isa-debug-exit"]
        modern_virtio = true
    """
    file.write_text(GOOD.replace("memory = 64", settings).replace("box_ip={ip}/{prefix}", "mask={netmask}"))
    box = load(file)
    argv = qemu_command(box, setup(tmp_path, netdev="tap,id=net"), "tcg", disk=9)
    text = " ".join(argv)
    assert "-cpu max,-svm -M microvm,rtc=on,ioapic2=off -smp 1 -m 256M" in text
    assert "-device virtio-net-device,netdev=net,mac=02:00:00:00:00:01" in text
    assert "-device virtio-blk-device,drive=disk" in text
    assert "-device virtio-rng-device -device isa-debug-exit,iobase=0xf4,iosize=0x04" in text
    assert argv[-2:] == ["-global", "virtio-mmio.force-legacy=false"]
    filled = box.command_line(ip="192.0.2.9", prefix="24", netmask="255.255.255.0", gateway="192.0.2.1", mac="02")
    assert filled.startswith("mask=255.255.255.0 via")


@pytest.mark.parametrize("vmm", ["hvt", "spt"])
def test_a_tender_of_solo5_is_called_as_it_documents(file, tmp_path, vmm):
    file.write_text(f"""
        vmm = "{vmm}"
        kernel = "kernel"
        disk = "kernel"
        cmdline = "--ipv4={{ip}}/{{prefix}} --hello='two words' $(id)"
        memory = 32
        [answers]
        ping = true
    """)
    argv = monitors.tender_command(load(file), setup(tmp_path, cmdline="--a='two words' $(id)"))
    assert argv == [
        *("--mem=32", "--net:service=tareab1x2", "--net-mac:service=02:00:00:00:00:01"),
        *("--block:storage=/box/disk", "--", "/box/kernel", "--a=two words", "$(id)"),
    ]


@pytest.mark.parametrize("vmm", ["hvt", "spt"])
def test_a_tender_that_is_not_there_is_one_line_with_the_fix(monkeypatch, vmm):
    monkeypatch.setattr("tare.host.processes.find", lambda name: None if "solo5" in name else shutil.which(name))
    answer = monitors.MONITORS[vmm].detect(Box(vmm=vmm, kernel=Path("/k"), dhcp=True, answers=GuestAnswers(ping=True)))
    assert answer.reason == f"solo5-{vmm} is not installed"
    assert "opam install solo5" in answer.fix


def test_a_host_without_the_dhcp_server_is_one_line_with_the_package(monkeypatch):
    monkeypatch.setattr("tare.host.network.dhcp.processes.find", lambda _: None)
    assert dhcp.missing().fix == "apt-get install dnsmasq-base"


def test_the_dhcp_server_gives_each_mac_of_the_bridge_its_own_address():
    argv = dhcp.arguments(ipaddress.IPv4Network("192.0.2.0/24"))
    assert "--dhcp-host=02:7a:c0:00:02:0a,192.0.2.10" in argv
    assert "--dhcp-option=option:router,192.0.2.1" in argv
    assert len([word for word in argv if word.startswith("--dhcp-host=")]) == 241


def test_a_port_is_shown_as_the_guest_knows_it_beside_tares_own():
    assert (
        str(GuestService(UDP_ECHO, "192.0.2.1", 20099, inside=7))
        == "udp-echo on its port 7 (by port 20099 of 192.0.2.1)"
    )
    assert str(GuestService(UDP_ECHO, "192.0.2.9", 7, inside=7)) == "udp-echo on port 7 of 192.0.2.9"


def test_a_line_of_the_console_is_an_answer_of_its_own_even_of_a_guest_that_ends_with_it(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"")
    watcher = FirstAnswer([GuestService(CONSOLE, str(log), 0, "^SUCCESS$")])
    log.write_bytes(b"SUCCESS\nsolo5_exit(0) called\n")
    assert watcher.wait(10, gone=lambda: True) is not None


def test_an_expression_made_to_hang_does_not_hang_the_console_watch(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"")
    watcher = FirstAnswer([GuestService(CONSOLE, str(log), 0, "(a+)+$")])
    log.write_bytes(b"a" * 60_000 + b"!")
    began = time.monotonic()
    assert watcher.wait(0.5) is None
    assert time.monotonic() - began < 5


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        platform_registry.choose([f"blackbox:{tmp_path}/none.toml"])


def setup(tmp_path, **changes):
    usual = {"name": "tare-ab1x2", "folder": tmp_path, "link": "tareab1x2", "netdev": ""}
    return GuestSetup(**{**usual, "mac": "02:00:00:00:00:01", "cmdline": "ip=192.0.2.9 -- a", "cpus": (1,), **changes})


def test_firecracker_is_told_of_the_same_box(tmp_path):
    box = Box(vmm="firecracker", kernel=Path("/k"), cmdline="{ip}", memory=64, answers=GuestAnswers(udp=7))
    settings = firecracker_settings(box.model_copy(update={"disk": Path("d")}), setup(tmp_path))
    assert settings["boot-source"] == {"kernel_image_path": "/box/kernel", "boot_args": "ip=192.0.2.9 -- a"}
    assert settings["machine-config"] == {"vcpu_count": 1, "mem_size_mib": 64}
    assert [drive["path_on_host"] for drive in settings["drives"]] == ["/box/disk"]
    assert settings["network-interfaces"][0]["host_dev_name"] == "tareab1x2"


def test_xen_is_told_of_the_same_box(tmp_path):
    box = Box(vmm="xen", kernel=Path("/k"), machine="pvh", cmdline="{ip}", memory=64, answers=GuestAnswers(udp=7))
    lines = xen.config(xen_domain(box, setup(tmp_path, cpus=(1, 2)), ["/dev/loop0"])).splitlines()
    assert {'type = "pvh"', f'kernel = "{tmp_path}/kernel"', "memory = 64", "vcpus = 1", 'cpus = "1,2"'} <= set(lines)
    assert not [line for line in lines if line.startswith("ramdisk")]
    assert 'cmdline = "ip=192.0.2.9 -- a"' in lines
    assert "/dev/loop0" in next(line for line in lines if line.startswith("disk"))


def test_no_text_of_a_box_ends_a_string_of_xens_configuration(tmp_path):
    """As libxlutil's lexer and xlu__cfgl_dequote read it: a backslash before a quotation mark and before itself."""
    box = Box(vmm="xen", kernel=Path("k"), cmdline="{ip}", answers=GuestAnswers(udp=7))
    words = 'a" bootloader="/bin/sh \\'
    lines = xen.config(xen_domain(box, setup(tmp_path, cmdline=words), [])).splitlines()
    assert r'cmdline = "a\" bootloader=\"/bin/sh \\"' in lines
    with pytest.raises(PlatformError, match="no control characters"):
        xen.config(xen_domain(box, setup(tmp_path, cmdline="a\nb"), []))


@pytest.mark.parametrize("vmm", ["firecracker", "xen"])
def test_a_monitor_that_does_not_run_here_is_one_line_with_the_fix(vmm):
    answer = platform_registry.choose([f"blackbox-{vmm}"])[0].detect()
    assert answer.available or (answer.reason and answer.fix)


def test_the_command_of_a_box_with_a_disk(tmp_path):
    box = Box(
        disk=Path("a,snapshot=off"),
        link="user",
        network="e1000",
        answers=GuestAnswers(http=80),
        memory=64,
        cpus=2,
        machine="pc",
    )
    argv = qemu_command(box, setup(tmp_path, link="", netdev="user,id=net"), "tcg", disk=9)
    text = " ".join(argv)
    assert "-M pc -smp 2 -m 64M" in text
    assert "-add-fd fd=9,set=1 -drive if=none,id=disk,file=/dev/fdset/1,format=raw,snapshot=on" in text
    assert "-device virtio-blk-pci,drive=disk" in text
    assert "a,snapshot=off" not in text
    assert "-device e1000,netdev=net,mac=02:00:00:00:00:01" in text
    assert "-kernel" not in argv


def test_what_counts_as_a_page():
    assert is_page(b"HTTP/1.0 200")
    assert is_page(b"HTTP/1.1 302")
    assert not is_page(b"HTTP/1.1 503")
    assert not is_page(b"SSH-2.0-Open")
    assert not is_page(b"HTTP/1.1")


def test_a_console_must_say_it_too_and_is_no_answer(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo, ThreadPoolExecutor(1) as pool:
        echo.bind(("127.0.0.1", 0))
        echo.settimeout(10)
        services = [
            GuestService(UDP_ECHO, "127.0.0.1", echo.getsockname()[1]),
            GuestService(CONSOLE, str(log), 0, "^up$", counts=False),
        ]
        watcher = FirstAnswer(services)
        data, sender = echo.recvfrom(64)
        echo.sendto(data, sender)
        pool.submit(lambda: (time.sleep(0.2), log.write_bytes(b"booting\r\nup\r\n")))
        began = time.monotonic_ns()
        answered = watcher.wait(10)
    assert answered is not None
    assert answered < began + 150_000_000, "the console's word came later than the answer"


def test_a_program_that_does_not_compile_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    monkeypatch.setattr("tare.image.blackbox_guest.FLAGS", ("-no-such-option",))
    answer = blackbox.BlackBox("other", "other", "way", lambda: blackbox.own_box("qemu")).detect()
    assert not answer.available
    assert "does not compile" in answer.reason or "kernel" in answer.reason


# On real machines; the contract (test_contract.py) has what a stop leaves, four at once and a death.


@pytest.fixture(scope="module")
def launcher(prepared):
    assert OWN.detect().available, OWN.detect().reason
    OWN.prepare(prepared[0].image)
    return prepared[0]


@pytest.fixture(scope="module")
def running(launcher):
    running = launcher.start(OWN, Arm(OWN.name), measured=True)
    yield running
    running.stop()


@pytest.mark.host
def test_it_starts_and_its_start_is_seen_from_outside(running):
    marks = running.marks
    assert 0 < marks.ping_ns < 60e9
    assert 0 < marks.answer_ns < 60e9
    assert marks.first_byte_ns is None
    assert "no agent" in marks.reasons["command_ns"]
    figures = workloads.get("startup").read(marks)
    assert set(figures) == {"ping", "answer", "answer-from-nothing"}
    assert figures["answer"] < figures["answer-from-nothing"], "its network was made first"


@pytest.mark.host
def test_every_service_answers(running):
    services = [
        GuestService(kind, running.instance.address.host, port)
        for kind, port in running.instance.address.services.items()
    ]
    assert {service.kind for service in services} == {"udp-echo", "tcp-echo", "http"}
    assert FirstAnswer(services).wait(20) is not None


@pytest.mark.host
def test_tcp_echoes_a_mebibyte_unharmed(running):
    data = os.urandom(1 << 20)
    with (
        socket.create_connection((running.instance.address.host, 7), timeout=30) as echo,
        ThreadPoolExecutor(1) as pool,
    ):
        sending = pool.submit(echo.sendall, data)
        got = b""
        while len(got) < len(data) and (piece := echo.recv(1 << 16)):
            got += piece
        sending.result()
    assert got == data


@pytest.mark.host
def test_a_request_rate_is_measured_from_the_clients_namespace(running, prepared):
    workload = workloads.get("udp-rtt")
    measured = run_trial(workload, workload.profiles["quick"], running, prepared[1])
    assert measured.outcome.samples["rate"] > 10
    assert measured.cpu_ns > 10_000_000, "QEMU's work is in the instance's group"


@pytest.mark.host
@pytest.mark.parametrize("name", ["http-get", "tcp-rr"])
def test_its_pages_and_echoes_by_tcp_are_measured(running, prepared, name):
    workload = workloads.get(name)
    measured = run_trial(workload, workload.profiles["quick"], running, prepared[1])
    assert measured.outcome.samples["rate"] > 5


@pytest.mark.host
def test_what_needs_an_agent_is_refused_with_the_reason(running, prepared):
    for name in ("sysbench-cpu", "iperf3-tcp", "sysbench-fileio-seqrd"):
        workload = workloads.get(name)
        with pytest.raises(HostError, match="is a black box: no agent runs inside"):
            run_trial(workload, workload.profiles["quick"], running, prepared[1])
    assert running.session.dead is None


@pytest.mark.host
def test_slices_are_refused_with_the_reason(running):
    workload = workloads.get("primes")
    assert workload.mode is Mode.SLICES

    stage = Stage("primes", Mode.SLICES, (running.arm,), ((running.arm,),))
    sliced = run_slices(workload, workload.profiles["quick"], stage, {running.arm: running})[running.arm]
    assert isinstance(sliced.error, HostError)


@pytest.mark.host
def test_its_processes_are_in_its_group_and_on_its_cpus(running):
    pids = running.instance.host_processes()
    assert pids
    for pid in pids:
        assert os.sched_getaffinity(pid) <= set(running.instance.spec.resources.cpus)


def _status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


@pytest.mark.host
def test_its_monitor_has_no_rights_and_sees_no_file_but_its_own(running):
    pids = running.instance.host_processes()
    [pid] = [pid for pid in pids if process_table.argv(pid)[:1] == [vm.PROGRAM]]
    status = _status(pid)
    assert status["Uid"].split() == [str(userns.FIRST)] * 4
    sets = ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")
    assert {name: int(status[name], 16) for name in sets} == dict.fromkeys(sets, 0)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    assert {name.partition(b"=")[0] for name in environment if name} <= {b"PATH", b"TMPDIR", b"PWD"}
    root = Path(f"/proc/{pid}/root")
    assert sorted(path.name for path in (root / "box").iterdir()) == ["initrd", "kernel"]
    assert [path.name for path in (root / "etc").iterdir()] == ["ld.so.cache"]
    for hidden in ("home", "root", "proc", "sys", "var/lib", "run/tare"):
        assert not (root / hidden).exists()
    assert sorted(path.name for path in (root / "dev").iterdir()) == ["net", "null", "shm", "urandom"]


@pytest.fixture(scope="module")
def own_file(tmp_path_factory):
    """The guest of tare's as a user would describe it."""
    box = blackbox.own_box("qemu")
    file = tmp_path_factory.mktemp("box") / "own.toml"
    for name, path in box.files.items():
        shutil.copy(path, file.with_name(name))
    lines = ['kernel = "kernel"', 'initrd = "initrd"', f'cmdline = "{box.cmdline}"', "memory = 128"]
    file.write_text("\n".join([*lines, "MORE", "[answers]", "udp = 7", "tcp = 7", "http = 80"]))
    return file


def _of(own_file, settings):
    file = own_file.with_name(f"{len(settings)}.toml")
    file.write_text(own_file.read_text().replace("MORE", settings))
    return platform_registry.choose([f"blackbox:{file}"])[0]


@pytest.mark.host
@pytest.mark.parametrize("more", ['console = "^blackbox: in service$"', 'link = "user"\nnetwork = "virtio-net-pci"'])
def test_a_box_of_a_file_boots(launcher, own_file, more):
    platform = _of(own_file, more)
    assert platform.detect().available
    running = launcher.start(platform, Arm(platform.name), measured=True)
    assert running.marks.answer_ns > 0
    running.stop()


@pytest.mark.host
def test_a_box_on_qemus_own_network_has_the_bridges_and_not_the_hosts(launcher, own_file):
    running = launcher.start(_of(own_file, 'link = "user"'), Arm("blackbox"), measured=False)
    try:
        networks = {Path(f"/proc/{pid}/ns/net").readlink() for pid in running.instance.host_processes()}
        shown = processes.run(["ip", "-n", f"tare-{running.instance.spec.id}", "-br", "-4", "addr"]).require().text
    finally:
        running.stop()
    assert len(networks) == 1
    assert Path("/proc/self/ns/net").readlink() not in networks
    assert f"{running.instance.address.host}/" in shown


@pytest.mark.host
def test_a_box_with_a_disk_and_every_device_boots_and_writes_nothing(launcher, own_file):
    disk = own_file.with_name("disk.raw")
    disk.write_bytes(b"QF, and no format but raw" + bytes(1 << 20))
    before = disk.read_bytes()
    devices = [name for name in get_args(Device) if not name.endswith("-device")]
    platform = _of(own_file, f'disk = "disk.raw"\ndisk_device = "ide-hd"\ndevices = {json.dumps(devices)}')
    running = launcher.start(platform, Arm(platform.name), measured=True)
    [opened] = [
        path for pid in running.instance.host_processes() for path in process_table.open_files(pid) if "disk" in path
    ]
    running.stop()
    assert running.marks.answer_ns > 0
    assert opened == str(disk)
    assert disk.read_bytes() == before


@pytest.mark.host
def test_a_box_that_does_not_answer_is_one_line_with_its_last_words(launcher, own_file, monkeypatch):
    monkeypatch.setattr(launcher, "start_limit_s", 20.0)
    platform = _of(own_file, 'console = "never said"')
    with pytest.raises(PlatformError, match="does not answer by 'never said' on its console") as caught:
        launcher.start(platform, Arm(platform.name), measured=False)
    assert "blackbox: in service" in caught.value.what


@pytest.mark.host
def test_a_box_that_ends_is_one_line_with_its_last_words(launcher, own_file):
    file = own_file.with_name("ends.toml")
    file.write_text(own_file.read_text().replace("MORE", "").replace("box_prefix={prefix}", "{mac}"))
    [platform] = platform_registry.choose([f"blackbox:{file}"])
    with pytest.raises(PlatformError, match="ended before it answered") as caught:
        launcher.start(platform, Arm(platform.name), measured=False)
    assert "box_ip and box_prefix are not on the command line" in caught.value.what


@pytest.mark.host
@pytest.mark.parametrize(
    ("more", "what"), [("cpus = 64", "cpus: the box takes 64"), ("console = '1'", "memory: the box takes 4096 MiB")]
)
def test_a_box_that_takes_too_much_is_one_line(launcher, own_file, more, what):
    file = own_file.with_name("large.toml")
    text = own_file.read_text().replace("MORE", more)
    file.write_text(text.replace("memory = 128", "memory = 4096") if "memory" in what else text)
    [platform] = platform_registry.choose([f"blackbox:{file}"])
    with pytest.raises(PlatformError, match=what) as caught:
        launcher.start(platform, Arm(platform.name), measured=False)
    assert "in the box's file" in caught.value.fix


#: A guest that knows of its address only what a DHCP server tells it.
BY_DHCP = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev; $b mount -t proc proc /proc; $b mount -t sysfs sys /sys
while read m; do $b insmod /modules/$m.ko; done </modules/order
echo '#!/bin/busybox sh
[ "$1" = bound ] || exit
/bin/busybox ip addr add $ip/$mask dev eth0 && /bin/busybox ip route add default via $router' >/given
$b chmod 755 /given
$b ip link set lo up
until $b ip link set eth0 up; do $b usleep 10000; done
$b udhcpc -n -q -i eth0 -s /given && echo "guest: in service with $($b ip route | $b grep default)"
exec $b sleep 100000
"""


@pytest.fixture(scope="module")
def by_dhcp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dhcp")
    modules = guest.with_needed(["virtio_pci", "virtio_net", "af_packet"])
    shutil.copy(guest.ensure().kernel, folder / "kernel")
    (folder / "initrd").write_bytes(guest.pack(BY_DHCP.encode(), guest.busybox_path(), modules))
    (folder / "box.toml").write_text("""
        kernel = "kernel"
        initrd = "initrd"
        cmdline = "console=ttyS0 quiet panic=-1 reboot=t"
        memory = 128
        dhcp = true
        console = "in service with default via"
        [answers]
        ping = true
    """)
    [platform] = platform_registry.choose([f"blackbox:{folder / 'box.toml'}"])
    return platform


_NET_ADMIN = f"{1 << 12:016x}"


@pytest.mark.host
def test_a_guest_gets_its_address_by_dhcp_and_a_second_one_another(launcher, by_dhcp):
    assert by_dhcp.detect().available
    rules = packet_rules()
    with ThreadPoolExecutor(2) as pool:
        pair = list(pool.map(lambda _: launcher.start(by_dhcp, Arm(by_dhcp.name), measured=True), range(2)))
    try:
        assert len({running.instance.address.host for running in pair}) == 2
        assert all(running.marks.answer_ns > 0 for running in pair)
        [server] = pair[0].instance.daemons[0].pids()
        rights = process_table.status(server)
        assert (rights["CapEff"], rights["CapPrm"], rights["NoNewPrivs"]) == (_NET_ADMIN, _NET_ADMIN, "1")
        assert rights["Uid"].split()[0] != "0"
        assert int(rights["CapBnd"], 16).bit_count() == 5
        assert pair[0].instance.daemons[0].path == pair[1].instance.daemons[0].path
    finally:
        for running in pair:
            running.stop()
    assert packet_rules() == rules


@pytest.mark.host
def test_a_guest_has_an_address_of_its_own_beside_the_subnet_and_only_one_runs(launcher, own_file):
    file = own_file.with_name("address.toml")
    address = str(launcher.network.subnet[0] + 256 + 9)
    text = own_file.read_text().replace("box_ip={ip} box_prefix={prefix}", f"box_ip={address} box_prefix=16")
    file.write_text(text.replace("MORE", f'ip = "{address}"'))
    [platform] = platform_registry.choose([f"blackbox:{file}"])
    assert platform.alone
    running = launcher.start(platform, Arm(platform.name), measured=True)
    try:
        assert running.marks.answer_ns > 0
        with pytest.raises(PlatformError, match=f"its own {address}, and an instance with it runs"):
            launcher.start(platform, Arm(platform.name), measured=False)
    finally:
        running.stop()
    launcher.start(platform, Arm(platform.name), measured=False).stop()


@pytest.mark.host
def test_a_line_on_the_console_is_enough_and_needs_no_network(launcher, own_file):
    file = own_file.with_name("console.toml")
    text = own_file.read_text().replace("MORE", 'link = "none"').replace("box_ip", "no_ip").split("[answers]")[0]
    file.write_text(f"{text}\n[answers]\nconsole = 'box_ip and box_prefix are not'\n")
    [platform] = platform_registry.choose([f"blackbox:{file}"])
    running = launcher.start(platform, Arm(platform.name), measured=True)
    running.stop()
    assert running.marks.answer_ns > 0
    assert running.marks.reasons["ping_ns"] == "it has no network card"
