"""What the host says may be missing, empty or not UTF-8, in every file: that ends nothing, and is said as it is."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from host import machines
from tare.errors import HostError
from tare.host import cgroup, distribution
from tare.host.daemons import activation
from tare.host.facts import counters, machine_facts, memory
from tare.host.host_checks import checks
from tare.host.kernel import host_text, owner, settings, sysinfo

#: As a processor, a vendor or a user may have it.
ODD = b"caf\xe9 \xff\xfe\x00 \xed\xb3\xbf"
MAPS = """
import mmap, sys
file = open(sys.argv[1], "r+b")
mapped = mmap.mmap(file.fileno(), 0)
mapped[:] = b"x" * len(mapped)
print(flush=True)
input()
"""
MAIN = "from tare.cli import main; main()"


def test_bytes_that_are_not_utf_8_are_shown(tmp_path):
    (tmp_path / "file").write_bytes(b" caf\xe9 \xc3\xa9\n")
    assert host_text.read(tmp_path / "file") == " caf\\xe9 é\n"
    assert host_text.said(str(tmp_path / "file")) == "caf\\xe9 é"


def test_what_is_not_there_says_nothing(tmp_path):
    (tmp_path / "empty").touch()
    for name in ("empty", "missing", ".", "empty/below"):
        assert host_text.said(tmp_path / name) == ""
    with pytest.raises(FileNotFoundError):
        host_text.read(tmp_path / "missing")


@pytest.fixture
def gathered(monkeypatch, tmp_path):
    """The facts of a machine whose /proc, /sys and /etc are a folder."""
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(machine_facts, "ROOT", tmp_path / "root")
    (tmp_path / "root").mkdir()
    return machine_facts.gather


def test_a_machine_that_says_nothing_has_facts(gathered):
    facts = gathered()
    assert (facts.cpu.model, facts.cpu.threads, facts.steal) == ("unknown", os.cpu_count(), None)
    answered = sysinfo.read()
    assert (facts.memory_bytes, facts.swap_bytes) == (answered.memory_bytes, answered.swap_bytes)
    assert facts.uptime_s > 0
    assert all(check.name for check in checks(facts))
    assert machine_facts.HostFacts.model_validate_json(facts.model_dump_json()) == facts


@pytest.mark.parametrize("odd", [b"", ODD, b"\n\n:\n=\n", b"-1 x y\n", b"9" * 5000], ids=range(5))
def test_a_machine_whose_every_file_is_odd_has_facts(gathered, tmp_path, odd):
    files = machines.LAPTOP | machines.SERVER | machines.captured()
    files |= {f"proc/{name}": "" for name in ("cpuinfo", "meminfo", "stat", "loadavg", "uptime")}
    files |= {"etc/os-release": "", "sys/class/dmi/id/sys_vendor": "", "sys/class/dmi/id/product_name": ""}
    for name in machines.write(tmp_path / "root", files).rglob("*"):
        if name.is_file():
            name.write_bytes(odd)
    facts = gathered()
    assert machine_facts.HostFacts.model_validate_json(facts.model_dump_json()) == facts
    assert all(check.name for check in checks(facts))


def test_names_of_processors_and_distributions_keep_what_can_be_read(gathered, tmp_path):
    for name, content in {
        "proc/cpuinfo": b"model name\t: Genuine Intel(\xae) CPU\nflags\t: hypervisor\n",
        "etc/os-release": b'PRETTY_NAME="Linux \xff"\n',
    }.items():
        file = tmp_path / "root" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    facts = gathered()
    assert facts.cpu.model == r"Genuine Intel(\xae) CPU"
    assert facts.distribution == r"Linux \xff"


@pytest.mark.parametrize("odd", ["", "x", "nan 0 0", "1e300 1 1", "-1 0 0", "inf"])
def test_a_load_that_cannot_be_is_the_kernels_own_answer(odd):
    assert machine_facts.parse_load(odd, 0.25) == 0.25
    assert machine_facts.parse_load("0.50 0.10 0.10 1/100 200", 0.25) == 0.5
    assert 0 <= counters.load() < machine_facts.MAX_LOAD


def test_the_kernels_own_answer_is_as_proc_has_it():
    answered = sysinfo.read()
    assert answered.memory_bytes == pytest.approx(
        machine_facts.parse_meminfo(host_text.read("/proc/meminfo"), "MemTotal"), rel=0.01
    )
    assert answered.load == pytest.approx(float(host_text.read("/proc/loadavg").split()[0]), abs=0.5)


def test_counters_of_a_kernel_that_counts_less_are_zero():
    four = "cpu  10 0 10 70\ncpu0 10 0 10 70\ncpu1 x 0 10 70\nintr 5\n"
    assert counters.parse_cpu_times(four, 10) == {0: (100, 0, 100, 700, 0, 0, 0, 0)}
    assert machine_facts.parse_steal(four) is None


@pytest.mark.parametrize("read", [counters.disk, counters.pressure_us, lambda _: counters.run_times()])
def test_counters_that_are_no_numbers_are_unknown(monkeypatch, read):
    for odd in ("some total=x\ncpu0 a b c d e f g h\n8 0 sda x x x x x x x x x x\n", "some\ncpu0\n8\n"):
        monkeypatch.setattr(counters.host_text, "read", lambda _path, odd=odd: odd)
        assert not read((8, 0))


def test_a_mapped_file_with_an_odd_name_is_counted(tmp_path):
    name = os.fsdecode(b"lib\xff\x85\x0bSize: 4 kB")
    (tmp_path / name).write_bytes(bytes(1 << 20))
    argv = [sys.executable, "-c", MAPS, str(tmp_path / name)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert memory.mapping_bytes([process.pid], 1 << 20) >= 1 << 20
        assert memory.resident([process.pid]).pss >= 1 << 20
        process.kill()


def test_a_control_group_with_an_odd_name_is_read(monkeypatch, tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_bytes(b"4:cpuacct:/a:b\x0b\x85\xff\n0::/a:b\x0b\x85\xff\n")
    monkeypatch.setattr(cgroup, "Path", lambda *parts: tmp_path.joinpath(*parts[0].split("/")[2:]))
    path = os.fsdecode(b"/a:b\x0b\x85\xff")
    assert list(cgroup._memberships(7)) == [["4", "cpuacct", path], ["0", "", path]]


@pytest.mark.parametrize(
    "path", [b"\0odd \xff", b"\0\n0000000000000000: 00000002 00000000 zz 0001 01 1 /x", b"\0\x0b\x1c a"]
)
def test_a_socket_that_any_user_may_name_hides_no_other(tmp_path, path):
    with socket.socket(socket.AF_UNIX) as odd, socket.socket(socket.AF_UNIX) as listener:
        odd.bind(path)
        listener.bind(str(tmp_path / "sock"))
        listener.listen()
        assert activation.only_init_listens(listener.getsockname(), init=os.getpid())


def test_a_setting_that_is_not_utf_8_is_read(tmp_path):
    (tmp_path / "setting").write_bytes(b"always [\xff] never\n")
    assert settings.read(tmp_path / "setting") == r"\xff"


def test_without_a_boot_id_it_is_said_what_hides_it(monkeypatch, tmp_path):
    monkeypatch.setattr(owner, "BOOT_ID", str(tmp_path / "boot_id"))
    with pytest.raises(HostError, match="sees only a part of /proc") as error:
        owner.boot_id()
    assert "subset=pid" in error.value.fix


def test_an_os_release_that_is_not_there_names_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(distribution, "OS_RELEASE", tmp_path / "os-release")
    distribution.here.cache_clear()
    assert distribution.here() == {}
    distribution.here.cache_clear()


@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount another /proc")
@pytest.mark.parametrize("options", ["subset=pid", "hidepid=2", "hidepid=invisible,subset=pid"])
def test_with_a_part_of_proc_every_command_answers_or_says_one_line(tmp_path, options):
    file = Path(__file__).parent.parent / "store" / "released" / "whole-1.tare"
    for words in (["report", str(file)], ["doctor", "native"], ["clean", "--dry-run"], ["list", "platforms"]):
        script = f'mount -t proc -o {options} proc /proc && exec "$@"'
        argv = ["unshare", "--mount", "--propagation=private", "sh", "-c", script, "sh", sys.executable, "-c", MAIN]
        env = {**os.environ, "TARE_HOME": str(tmp_path / "home"), "TERM": "dumb"}
        done = subprocess.run([*argv, *words], capture_output=True, text=True, env=env, check=False)
        assert "Traceback" not in done.stderr, (words, done.stderr)
        assert done.returncode in {0, 1, 2}, (words, done.stderr)
        assert len(re.findall("^error: ", done.stderr, re.MULTILINE)) == (done.returncode == 2), done.stderr
        if words[0] == "clean" and "subset" in options:
            assert "sees only a part of /proc" in done.stderr
