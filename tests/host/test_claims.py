"""The journal obeys root's own entries alone, and of those only what can be tare's: whatever an entry says."""

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from host import machines
from tare.errors import HostError
from tare.features.kernel.reading import kmodule
from tare.host import cgroup, processes
from tare.host.daemons import dockerd, lxd_access
from tare.host.daemons.dockerd_traces import Traces
from tare.host.kernel import mounts
from tare.host.network import bridge, fence, outside
from tare.host.resources import claims, removers
from tare.host.resources.claims import LXC_LOCKS, NSPAWN, OPENED, Bounds, fault
from tare.host.resources.journal import FORMAT, CleanupStack, Journal, sweep
from tare.host.resources.resource import HostResource
from tare.host.tuning import tune

HOME = Path("/var/lib/tare")
WORK = HOME / "work"


def of_a_client_on_another_machine():
    client = outside.Outside("198.18.0.2", "198.18.0.1", "eth0")
    return [
        *outside.gate_rules(client),
        *outside.passing_rules(client, guarded=True),
        *outside.leading_rules(client, 20_101, "10.77.0.10", 20_101),
        *outside.forwarding_rules(client),
    ]


def ours(home=HOME):
    """One thing of each shape that tare makes."""
    space = home / "work" / "ab12cx3"
    own_lxd = lxd_access.LxdAccess("lxc", space, None, space / "client")
    hosts_incus = lxd_access.LxdAccess("incus", space, Path("/var/lib/incus/unix.socket"), space / "client")
    docker = removers.docker_container("tare-ab12cx3")
    container = "1" * 64
    record = Path("/var/lib/docker/containers", container)
    rootless = "/var/lib/docker/fuse-overlayfs/ab/merged"  # of a kernel before 5.11
    mounts = [
        "/var/lib/docker/overlay2/ab/merged",
        rootless,
        "/run/docker/netns/a76b8162d5ec",
        str(record / "mounts/shm"),
    ]
    snapshot = f"/var/lib/docker/rootfs/overlayfs/{container}"  # where containerd keeps the images
    return [
        removers.mount(space / "root"),
        removers.mount(NSPAWN / "unix-export" / "tare-ab12cx3"),
        removers.folder(space),
        removers.folder(NSPAWN / "propagate" / "tare-ab12cx3"),
        removers.folder(LXC_LOCKS / str(space).lstrip("/"), below=LXC_LOCKS),
        removers.folder(OPENED / "tare-ab12cx3", below=OPENED.parent),
        removers.mount(OPENED / "tare-17ab" / "shmounts"),
        removers.folder(Path("/var/log/lxd/tare-ab12cx3")),
        removers.folder(Path("/var/snap/lxd/common/lxd/logs/tare-ab12cx3")),
        removers.file(NSPAWN / "locks" / "inode-65024:1234"),
        removers.file(LXC_LOCKS / ".tare-ab12cx3"),
        removers.control_group("tare"),
        removers.control_group("tare/ab12cx3/tool"),
        removers.control_group("tare-detect17abcd"),
        removers.control_group("tare-daemon-libvirt-lxc-17-18ab"),
        removers.network_namespace(bridge.CLIENT_NAMESPACE),
        removers.packet_rules("tare-ab12cx3"),
        *(removers.iptables_rule(*rule) for rule in of_a_client_on_another_machine()),
        removers.setting(Path("/proc/sys/net/ipv4/conf/eth0/forwarding"), "0", "1"),
        removers.packet_chain("tare-forward"),
        removers.link(fence.BRIDGE),
        removers.link("tareab12cx3"),
        removers.oci_container("/usr/sbin/crun", space / "state", "tare-ab12cx3", without_v2=True),
        docker,
        HostResource("container", {**docker.facts, **removers.of_docker(container, record, mounts)}),
        HostResource("container", {**docker.facts, **removers.of_docker(container, record, [snapshot])}),
        removers.docker_image("tare:0123456789ab"),
        removers.dockerd_traces(Traces(False, True, "1", "DROP", frozenset({"/run/docker/netns/a76b"}))),
        removers.containerd_container("/run/containerd/containerd.sock", "tare-ab12cx3"),
        removers.containerd_container(str(home / "work/tare-17ab/containerd.sock"), "tare-ab12cx3"),
        removers.pod("/run/containerd/containerd.sock", "tare-ab12cx3"),
        HostResource("pod", {**removers.pod("/run/containerd/containerd.sock", "tare-a").facts, "ids": [container]}),
        removers.cluster_pod("tare", "tare-ab12cx3", "tare/ab12cx3"),
        removers.containerd_image("/run/k3s/containerd/containerd.sock", "localhost/tare:0123456789ab"),
        removers.podman_image("tare:0123456789ab"),
        removers.podman_container("tare-ab12cx3", "tare/ab12cx3"),
        removers.of_lxd(own_lxd, "container", "tare-ab12cx3", "tare/ab12cx3"),
        removers.of_lxd(hosts_incus, "storage", "tare-17abcdef"),
        removers.libvirt_domain("lxc:///", "tare-ab12cx3", ""),
        removers.libvirt_domain("qemu+unix:///system?socket=/proc/17/root/run/libvirt/libvirt-sock", "tare-a", ""),
        removers.loop(space / "data.raw"),
        removers.xen_domain("tare-ab12cx3"),
        removers.kernel_module(kmodule.NAME),
        removers.setting(Path("/proc/irq/43/smp_affinity_list"), "0-1", "0"),
    ]  # fmt: skip


@pytest.mark.parametrize("resource", ours(), ids=str)
def test_what_tare_makes_is_taken(resource):
    assert fault(resource, Bounds(HOME)) is None


def test_every_kind_has_a_remover_and_a_claim():
    assert claims.kinds() == removers._REMOVERS.keys()
    assert {resource.kind for resource in ours()} | {"iptables"} == claims.kinds()


@pytest.mark.parametrize("machine", [machines.LAPTOP, machines.SERVER], ids=["laptop", "server"])
def test_every_setting_that_is_tuned_may_be_given_back(tmp_path, machine):
    values = tune.look(machines.write(tmp_path, machine))
    planned = [setting for setting in tune.plan(values, (1,)) if setting.wanted is not None]
    assert len(planned) > 5
    for setting in planned:
        assert fault(removers.setting(Path("/", setting.path), setting.present, setting.wanted), Bounds(HOME)) is None


@pytest.mark.parametrize(
    "resource",
    [
        removers.folder(Path("/etc")),
        removers.folder(WORK),
        removers.folder(HOME / "images"),
        removers.folder(WORK / ".." / ".." / "etc"),
        removers.folder(Path("/var/lib/tare/workshop")),
        removers.folder(WORK / "x", below=Path("/etc")),
        HostResource("folder", {"path": f"{WORK}//x"}),
        HostResource("folder", {"path": f"{WORK}/x\n/etc"}),
        HostResource("folder", {"path": f"{WORK}/x", "colour": "blue"}),
        HostResource("folder", {"path": [f"{WORK}/x"]}),
        HostResource("folder", {}),
        removers.folder(OPENED),
        removers.folder(OPENED / "somebodys"),
        removers.mount(OPENED / "tare-x" / ".." / ".." / "y"),
        removers.mount(Path("/")),
        removers.mount(Path("/home")),
        removers.file(Path("/etc/passwd")),
        removers.file(NSPAWN / "locks" / "inode-1:2" / ".." / ".." / "x"),
        removers.control_group("system.slice"),
        removers.control_group("tare/../system.slice"),
        removers.control_group("/"),
        removers.control_group(""),
        removers.control_group("tares"),
        removers.network_namespace("vpn"),
        removers.link("eth0"),
        removers.link("tare"),
        removers.packet_rules("ufw"),
        removers.packet_chain("ufw-user-input"),
        removers.iptables_rule("INPUT", "-i", "tare0", "-j", "ACCEPT"),
        removers.iptables_rule("FORWARD", "-i", "eth0", "-j", "ACCEPT"),
        removers.iptables_rule("FORWARD", "-i", "eth0", "!", "-o", "tare0", "-j", "DROP"),
        removers.iptables_rule("PREROUTING", "-t", "nat", "-s", "1.2.3.4", "-j", "DNAT", "--to", "1.2.3.5:1"),
        removers.iptables_rule("FORWARD", "-i", "tare0", "-j", "ACCEPT", "--modprobe=/x"),
        removers.oci_container("/tmp/evil", WORK / "x", "tare-x"),
        removers.oci_container("runc", Path("/run/runc"), "tare-x"),
        removers.oci_container("runc", WORK / "x", "somebodys"),
        HostResource(
            "oci", {**removers.oci_container("runc", WORK / "x", "tare-x").facts, "within": ["sh", "-c", "id"]}
        ),
        removers.docker_container("somebodys"),
        HostResource("container", {"name": "tare-x", "host": "ssh://-oProxyCommand=id/"}),
        HostResource("container", {"name": "tare-x", "host": "", "id": "1", "record": "/x", "mounts": []}),
        HostResource("container", {"name": "tare-x", "host": "", "id": "1" * 64, "record": "/x", "mounts": ["/home"]}),
        removers.podman_container("somebodys", "tare/x"),
        removers.podman_container("tare-x", "user.slice"),
        removers.cluster_pod("tare", "tare-x", "user.slice"),
        removers.of_lxd(lxd_access.LxdAccess("lxc", Path("/tmp/x"), None, WORK / "c"), "container", "tare-x"),
        removers.of_lxd(
            lxd_access.LxdAccess("lxc", WORK, Path("/tmp/x/unix.socket"), WORK / "c"), "container", "tare-x"
        ),
        removers.of_lxd(lxd_access.LxdAccess("lxc", WORK / "x", None, WORK / "c"), "container", "somebodys"),
        removers.libvirt_domain("qemu+ext:///system?command=/tmp/evil", "tare-x", ""),
        removers.libvirt_domain("qemu:///system?command=/tmp/evil", "tare-x", ""),
        removers.libvirt_domain("qemu+ssh://far/system", "tare-x", ""),
        removers.libvirt_domain("qemu:///system", "somebodys", ""),
        removers.loop(Path("/srv/disk.raw")),
        removers.xen_domain("somebodys"),
        removers.kernel_module("ext4"),
        removers.setting(Path("/proc/sys/kernel/core_pattern"), "|/tmp/evil", "core"),
        removers.setting(Path("/etc/passwd"), "x", "y"),
        HostResource("teapot", {"name": "tare-x"}),
    ],
    ids=lambda resource: str(resource)[:60].replace("\n", " "),
)  # fmt: skip
def test_what_is_not_tares_is_neither_written_nor_obeyed(tmp_path, resource):
    assert fault(resource, Bounds(HOME)) is not None
    journal = Journal(tmp_path / "journal", Bounds(HOME))
    with pytest.raises(HostError, match="the journal takes nothing that"):
        CleanupStack(journal).own(removers.folder(WORK / "harmless"), resource)
    assert not (tmp_path / "journal").exists()
    [file] = plant(tmp_path / "journal", resource)
    assert journal.entries() == []
    [step] = sweep(journal)
    assert step.kept is not None
    assert file.exists()


def plant(folder, *cleanup):
    """Write entries of a dead process, without asking anybody."""
    folder.mkdir(mode=0o700, exist_ok=True)
    files = []
    for number, resource in enumerate(cleanup):
        owner = {"pid": 1 << 22, "start_ticks": 1, "boot": "none"}
        file = folder / f"{number:020d}-{resource.kind}-x.json"
        file.write_text(json.dumps({"format": FORMAT, "kind": resource.kind, "facts": resource.facts, "owner": owner}))
        file.chmod(0o600)
        files.append(file)
    return files


def spoil_link(file):
    file.rename(file.with_suffix(".elsewhere"))
    file.symlink_to(file.with_suffix(".elsewhere"))


def spoil_pipe(file):
    file.unlink()
    os.mkfifo(file, 0o600)


def spoil_folder(file):
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (spoil_link, "no regular file"),
        (spoil_pipe, "no regular file"),
        (spoil_folder, "no regular file"),
        (lambda file: file.with_suffix(".other").hardlink_to(file), "it has 2 names"),
        (lambda file: file.chmod(0o660), "others may write it"),
        (lambda file: file.chmod(0o602), "others may write it"),
        (lambda file: file.write_text(file.read_text() + " " * (1 << 16)), "no entry has more than 65536"),
        (lambda file: file.parent.chmod(0o770), "nothing in it is obeyed: others may write it"),
    ],
)
def test_an_entry_that_another_could_have_written_is_not_obeyed_and_not_deleted(tmp_path, spoil, why):
    resource = tmp_path / "work" / "thing"
    resource.mkdir(parents=True)
    journal = Journal(tmp_path / "journal")
    [file] = plant(tmp_path / "journal", removers.folder(resource))
    spoil(file)
    [step] = sweep(journal)
    assert why in step.kept
    assert "\n" not in step.kept
    assert resource.exists()
    assert os.path.lexists(file)


def test_a_journal_of_another_users_is_not_obeyed_and_not_written(tmp_path, monkeypatch):
    """The audit's: TARE_HOME is another user's, who planted a command and a folder for root to clean."""
    marker, resource = tmp_path / "ran", tmp_path / "work" / "thing"
    resource.mkdir(parents=True)
    command = {"runtime": "runc", "root": str(tmp_path / "work"), "name": "thing", "within": ["touch", str(marker)]}
    files = plant(tmp_path / "journal", HostResource("oci", command), removers.folder(resource))
    journal = Journal(tmp_path / "journal")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    [step] = sweep(journal)
    assert step.resource.file == tmp_path / "journal"
    assert f"it is user {os.getuid()}'s" in step.kept
    with pytest.raises(HostError, match="not to be relied on"):
        journal.write(removers.folder(resource))
    monkeypatch.undo()
    for file in files:
        file.chmod(0o600)
    planted, removed = sorted(sweep(journal), key=lambda step: step.kept is None)
    assert "is not tare's" in planted.kept or "within" in planted.kept
    assert removed.kept is None  # root's own entry now
    assert not marker.exists()


@pytest.mark.host
def test_an_entry_of_another_users_in_roots_own_journal(tmp_path):
    (tmp_path / "work" / "thing").mkdir(parents=True)
    [file] = plant(tmp_path / "journal", removers.folder(tmp_path / "work" / "thing"))
    os.chown(file, 65534, 65534)
    [step] = sweep(Journal(tmp_path / "journal"))
    assert step.kept == (
        "it is not obeyed: it is user 65534's, and this is user 0; see what it names, then remove the file by hand"
    )
    assert (tmp_path / "work" / "thing").exists()
    assert file.exists()


def test_a_link_on_the_way_leads_nowhere(tmp_path):
    outside = tmp_path / "outside"
    (outside / "x").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(outside)
    plant(tmp_path / "journal", removers.folder(tmp_path / "work" / "link" / "x"))
    [step] = sweep(Journal(tmp_path / "journal"))
    assert "a link leads to" in step.kept
    assert (outside / "x").exists()


#: What a hand that means harm, or a disk that fails, may put into an entry.
EVIL = ("/", "/etc", "", ".", "..", "-rf", "/outside", "tare", "tare-", "tare-x/../../outside", "\0", "\n", "eth0",
        "system.slice", "sh", "ssh://x", "{work}/../../outside", "{work}/link/secret", "{work}/..", "{outside}",
        "{outside}/secret", "tare/../../../outside", 0, -1, [], ["{outside}"], ["sh", "-c", "id"])  # fmt: skip


@st.composite
def mutated(draw):
    """A thing's place among `ours`, and what is done to its facts: JSON text with places to be filled in."""
    cleanup = ours(Path("{home}"))
    resource = draw(st.sampled_from(cleanup))
    kind = draw(st.one_of(st.just(resource.kind), st.sampled_from(sorted(claims.kinds()))))
    facts = dict(resource.facts)
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(facts) or ["path"]))
        value = facts.get(name, "")
        how = draw(st.sampled_from(["evil", "append", "insert", "cut", "swap", "drop", "text"]))
        if how == "evil":
            facts[name] = draw(st.sampled_from(EVIL))
        elif how == "drop":
            facts.pop(name, None)
        elif how == "swap":
            facts[name] = draw(st.sampled_from([value for other in cleanup for value in other.facts.values()]))
        elif how == "text":
            facts[name] = draw(st.text(max_size=30))
        elif isinstance(value, str):
            at = draw(st.integers(0, len(value)))
            piece = draw(st.sampled_from([str(text) for text in EVIL]))
            facts[name] = {"append": value + piece, "insert": value[:at] + piece + value[at:], "cut": value[:at]}[how]
    return json.dumps({"kind": kind, "facts": facts})


class Watched:
    """A small host: what is outside of tare's home, and all that removers run, kill and end, which is only noted."""

    def __init__(self, base, monkeypatch):
        self.base = base
        self.home, self.outside = base / "home", base / "outside"
        self.ran: list[list[str]] = []
        self.ended: list[str] = []
        monkeypatch.setattr(processes, "run", self._run)
        monkeypatch.setattr(cgroup, "destroy", self.ended.append)
        monkeypatch.setattr(dockerd, "listens", lambda host: False)
        monkeypatch.setattr(os, "kill", lambda pid, number: pytest.fail(f"killed {pid}"))
        monkeypatch.setattr(mounts, "points", list)
        monkeypatch.setattr(removers, "until", lambda limit_s: 0.0)  # a daemon that does not answer is not waited for

    def furnish(self):
        self.ran.clear()
        self.ended.clear()
        shutil.rmtree(self.home, ignore_errors=True)
        space = self.home / "work" / "ab12cx3"
        (space / "state" / "tare-ab12cx3").mkdir(parents=True)
        self.outside.mkdir(exist_ok=True)
        (self.outside / "secret").write_text("kept")
        (self.home / "images").mkdir()
        (self.home / "work" / "link").symlink_to(self.outside)

    def _run(self, argv, **_):
        if list(argv[1:]) == ["-w", "-S"]:  # the packet filter's rules, which are only read
            return processes.Finished(tuple(argv), 0, FILTER, b"", 0)
        if argv[-1] != "-S":  # of one table: read too
            self.ran.append(list(argv))
        return processes.Finished(tuple(argv), 1, b"", b"not found", 0)


#: Rules of the host's user and of tare, as iptables lists them.
FILTER = b"""\
-P INPUT ACCEPT
-A INPUT -i docker0 -j DROP
-A INPUT -i docker0 -m comment --comment ufw -j DROP
-A INPUT -i docker0 -m comment --comment tare-ab12cx3 -j DROP
"""
PROGRAMS = {
    *("umount", "ip", "iptables", "ip6tables", "runc", "crun", "runsc", "podman", "env", "virsh", "losetup", "xl"),
    *("kubectl", "rmmod"),
}


@pytest.fixture
def watched(tmp_path, monkeypatch):
    return Watched(tmp_path, monkeypatch)


@pytest.mark.thorough
@settings(max_examples=600, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=mutated(), flip=st.one_of(st.none(), st.tuples(st.integers(0, 1 << 12), st.integers(0, 255))))
def test_no_entry_makes_tare_touch_what_is_not_its_own(watched, text, flip):
    watched.furnish()
    text = text.replace("{home}", str(watched.home)).replace("{work}", str(watched.home / "work"))
    entry = json.loads(text.replace("{outside}", str(watched.outside)))
    [file] = plant(watched.home / "journal", HostResource(entry["kind"], entry["facts"]))
    if flip is not None:
        data = bytearray(file.read_bytes())
        data[flip[0] % len(data)] = flip[1]
        file.write_bytes(bytes(data))
    list(sweep(Journal(watched.home / "journal")))
    assert (watched.outside / "secret").read_text() == "kept"
    assert (watched.home / "images").exists()
    assert (watched.home / "work").exists()
    for path in watched.ended:
        assert path.split("/")[0].startswith("tare")
        assert ".." not in path.split("/")
    for argv in watched.ran:
        words = argv[argv.index("--root") - 1 :] if "unshare" in argv else argv
        assert Path(words[0]).name in PROGRAMS
        assert "tare" in " ".join(words[1:])
        for word in words:
            path = word.partition("=")[2] if "=" in word else word
            assert not Path(path).is_relative_to(watched.outside)
            assert ".." not in Path(path).parts
