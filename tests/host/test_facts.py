"""The parsers on files captured from a real host (Debian 12 in a KVM guest), and on the shapes of other machines."""

import os
import re
from pathlib import Path

import pytest

from host import machines
from tare.host import cgroup, distribution
from tare.host.facts import machine_facts
from tare.host.host_checks import checks
from tare.host.kernel import mounts

DATA = Path(__file__).parent / "data"


def captured(name):
    return (DATA / name).read_text()


def test_distribution():
    assert distribution.title(distribution.parse(captured("os-release"))) == "Debian GNU/Linux 12 (bookworm)"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("NAME='Alpine Linux'\nID=alpine\n", "Alpine Linux"),
        ("# a comment = no value\nPRETTY_NAME=Plain\n", "Plain"),
        ("", "Linux"),
    ],
)
def test_distributions_of_other_shapes(text, name):
    assert distribution.title(distribution.parse(text)) == name


def test_cpuinfo_of_a_guest():
    assert machine_facts.parse_cpuinfo(captured("cpuinfo")) == ("AMD EPYC", "0x1000065", True)


def test_cpuinfo_of_bare_metal_has_no_hypervisor_flag():
    text = captured("cpuinfo").replace(" hypervisor ", " ")
    assert machine_facts.parse_cpuinfo(text) == ("AMD EPYC", "0x1000065", False)


def test_cpuinfo_of_arm64_has_only_numbers():
    text = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
    assert machine_facts.parse_cpuinfo(text) == ("implementer 0x41, part 0xd0c", None, False)


def test_cpuinfo_that_says_nothing():
    assert machine_facts.parse_cpuinfo("") == ("unknown", None, False)


def test_memory_is_in_bytes():
    assert machine_facts.parse_meminfo(captured("meminfo"), "MemTotal") == 24684084 * 1024
    assert machine_facts.parse_meminfo(captured("meminfo"), "SwapTotal") == 0
    assert machine_facts.parse_meminfo(captured("meminfo"), "NoSuchLine") == 0


def test_steal_is_a_share_of_all_time():
    sum_line = captured("stat").splitlines()[0]
    ticks = [int(word) for word in sum_line.split()[1:9]]
    assert machine_facts.parse_steal(captured("stat")) == pytest.approx(ticks[7] / sum(ticks))
    assert machine_facts.parse_steal("cpu  50 0 25 20 0 0 0 5 40 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n") == pytest.approx(0.05)


@pytest.mark.parametrize("text", ["", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 0 0 0 0 0 0 0 0\n", "cpu 1 2 3 4\n"])
def test_steal_that_cannot_be_told(text):
    assert machine_facts.parse_steal(text) is None


@pytest.mark.parametrize(
    ("mountinfo", "version"),
    [
        (captured("mountinfo"), "hybrid"),
        ("\n".join(line for line in captured("mountinfo").splitlines() if "cgroup2" not in line), "v1"),
        ("31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate", "v2"),
        ("22 27 0:21 / /proc rw - proc proc rw", "none"),
    ],
)
def test_cgroup_versions(mountinfo, version):
    assert machine_facts.cgroup_version(cgroup.hierarchies_among(mounts.parse(mountinfo.encode()))) == version


def test_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    gathered = machine_facts.gather()
    assert gathered.kernel == os.uname().release
    assert gathered.cpu.threads >= gathered.cpu.cores >= gathered.cpu.sockets >= 1
    assert gathered.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert gathered.disk_free_bytes > 0
    assert set(gathered.tools) == set(machine_facts.TOOLS)
    assert machine_facts.HostFacts.model_validate_json(gathered.model_dump_json()) == gathered


def test_campaign_files_are_shared_so_the_machine_is_not_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    # As a word of its own: short names such as "vm" are also parts of other words.
    name = re.compile(rf"(?<![\w-]){re.escape(os.uname().nodename)}(?![\w-])")
    texts = [str(value) for value in machine_facts.gather().model_dump(exclude={"mitigations"}).values()]
    assert not [text for text in texts if name.search(text)]


def _gathered(monkeypatch, tmp_path, texts):
    """The facts of this machine, but for what the files of another say."""
    always = {"proc/loadavg": "0.10 0.10 0.10 1/100 200", "proc/uptime": "100.0 200.0", "proc/stat": captured("stat")}
    monkeypatch.setattr(machine_facts, "ROOT", machines.write(tmp_path / "root", always | texts))
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    return machine_facts.gather()


def test_the_captured_guest(monkeypatch, tmp_path):
    gathered = _gathered(monkeypatch, tmp_path, machines.captured())
    assert (gathered.huge_pages, gathered.aslr, gathered.clock_source) == ("madvise", 2, "tsc")
    assert (gathered.cpu.governors, gathered.cpu.turbo, gathered.cpu.smt) == ((), None, False)
    assert len(gathered.mitigations) == 19
    judged = {check.name: check for check in checks(gathered)}
    assert judged["mitigations"].observed == "2 of 19 known flaws without: spec_rstack_overflow, spec_store_bypass"
    assert (judged["mitigations"].state, judged["aslr"].state, judged["aslr"].observed) == ("warn", "ok", "full")
    assert judged["governor"].observed == "not set by this kernel"


def test_a_laptop_has_every_noise_that_can_be_tuned_away(monkeypatch, tmp_path):
    gathered = _gathered(monkeypatch, tmp_path, machines.LAPTOP)
    assert (gathered.cpu.threads, gathered.cpu.cores, gathered.cpu.sockets) == (4, 2, 1)
    judged = {check.name: check for check in checks(gathered)}
    warned = {name for name in ("governor", "turbo", "smt", "huge pages", "aslr") if judged[name].state == "warn"}
    assert warned == {"governor", "turbo", "smt", "huge pages", "aslr"}
    assert all(judged[name].advice for name in warned)
    assert (judged["mitigations"].state, judged["mitigations"].observed) == ("ok", "all there")


def test_a_server_that_is_tuned_needs_no_advice_on_its_settings(monkeypatch, tmp_path):
    gathered = _gathered(monkeypatch, tmp_path, machines.SERVER)
    judged = {check.name: check for check in checks(gathered)}
    assert {judged[name].state for name in ("governor", "turbo", "smt", "huge pages", "aslr")} == {"ok"}
    assert gathered.cpu.turbo is False
