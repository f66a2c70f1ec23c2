"""A fleet of real sshd hosts on this machine: a campaign on each, hosts that cannot, and what stays."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fleet_bed
from tare.fleet import run_fleet
from tare.fleet.host_states import HostState
from tare.host import processes, state
from tare.host.kernel import process_table
from tare.image import image_build
from tare.model import CampaignStatus
from tare.store import read_store

pytestmark = [
    pytest.mark.own_host,
    pytest.mark.host,
    pytest.mark.skipif(processes.find("sshd") is None, reason="needs sshd: apt-get install openssh-server"),
]
SECRET = "tiger-5f3a"
WORDS = ["-p", "native", "-w", "startup", "--blocks", "2"]


def images():
    """The images that there are here, for hosts that have had tare before."""
    image_build.ensure(image_build.agent_path(), progress=lambda what: None)
    return [path for path in state.images().iterdir() if path.is_dir() and not path.name.startswith("new-")]


@pytest.fixture(scope="module")
def hosts():
    """Two hosts with the image, and one without a Python."""
    with fleet_bed.bed() as bed:
        there = images()
        bed.add("alpha", images=there)
        bed.add("beta", images=there)
        bed.add("bare", images=there, hide=["/usr/bin/python3.11"], path="/usr/bin:/bin:/usr/sbin:/sbin")
        more = [f"twin ansible_host={bed.hosts['beta'].address}", "gone ansible_host=127.0.0.1 ansible_port=9"]
        bed.write_inventory({"alpha": f"ansible_become_password={SECRET}", "beta": "tare_options='--seed 7'"}, more)
        yield bed


def tare(*words, **options):
    argv = [sys.executable, "-P", "-m", "tare", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=280, check=False, **options)


def rows(done):
    assert done.stdout.startswith("{"), done.stderr
    return {row["host"]: row for row in json.loads(done.stdout)["hosts"]}


def trials(file):
    """The trials of a complete campaign, each once, by an independent look at its file."""
    with read_store(file) as store:
        assert store.status is CampaignStatus.COMPLETE
        planned, done = store.schedule(), store.done()
    assert len(planned) == len({*planned})
    assert set(planned) == done
    return done


def await_state(folder, names, state):
    """Until one of these hosts is in a state; meanwhile no process is told the secret."""
    deadline = time.monotonic() + 240
    while not any(row.host in names and row.state is state for row in run_fleet.read_rows(folder)):
        assert time.monotonic() < deadline, run_fleet.read_rows(folder)
        assert not [words for words in process_table.command_lines().values() if SECRET in " ".join(words)]
        time.sleep(0.1)


def tell(folder):
    """The files below a folder that have the secret in them."""
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_controller_and_host_killed_then_the_second_command_completes_the_fleet(hosts, tmp_path):
    """Nothing is lost, doubled or left; hosts that cannot are rows with reasons."""
    alpha, beta = hosts.hosts["alpha"], hosts.hosts["beta"]
    folder = tmp_path / "night"
    words = ["fleet", "run", "-i", hosts.inventory, "-o", folder, "--look", 5, "--json", "--", *WORDS]
    argv = [sys.executable, "-P", "-m", "tare", *map(str, words)]
    with (tmp_path / "log").open("wb") as log:
        first = subprocess.Popen(argv, stdout=log, stderr=log)
    await_state(folder, {"alpha"}, HostState.RUNNING)
    await_state(folder, {"beta", "twin"}, HostState.RUNNING)
    refused = tare("fleet", "run", "-o", folder)
    assert refused.returncode == 2
    assert f"another tare fleet works in {folder}: process {first.pid}" in refused.stderr
    first.kill()
    first.wait()
    assert [*folder.rglob(".fleet/*")]  # what a killed controller leaves
    assert tell(tmp_path) == []
    hosts.kill(beta)
    hosts.start(beta)

    done = tare(*words)
    told = rows(done)
    assert done.returncode == 2, done.stderr
    one, other = sorted(("beta", "twin"), key=lambda name: told[name]["state"])
    states = {name: row["state"] for name, row in told.items()}
    assert states == {"alpha": "done", one: "done", other: "failed", "bare": "failed", "gone": "lost"}, done.stderr
    assert told[other]["reason"] == f"it is the same host as {one}, which is in the inventory too"
    assert told["bare"]["reason"].startswith("no Python is installed")
    files = sorted(path.name for path in folder.glob("*.tare"))
    assert files == ["alpha.tare", f"{one}.tare"]
    campaigns = {name: trials(folder / name) for name in files}
    assert all({key.block for key in keys} == {0, 1} for keys in campaigns.values())
    for host in (alpha, beta):
        assert not [*host.folder.glob("runs/*/run.*")]  # its file is here, and its run is forgotten there
        assert not [*host.disk.glob("root/.ansible*")]
    assert not [words for words in process_table.command_lines().values() if str(folder) in " ".join(words)]

    assert SECRET not in done.stdout + done.stderr
    again = rows(tare("fleet", "run", "-o", folder, "--limit", "beta:twin", "--json"))
    assert {name: row["state"] for name, row in again.items()} == {one: "done", other: "failed"}
    assert sorted(path.name for path in folder.glob("*.tare")) == files  # nothing is measured twice


def test_clean_leaves_nothing_of_a_fleet_on_the_hosts(hosts):
    done = tare("fleet", "clean", "-i", hosts.inventory, "--limit", "alpha:beta", "--json")
    assert done.returncode == 0, done.stderr
    for name in ("alpha", "beta"):
        assert not hosts.hosts[name].folder.exists()
        assert [*(hosts.hosts[name].disk / "tare" / "images").iterdir()]  # which were there before


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_host_of_the_group_clients_loads_another_one(tmp_path):
    """Two hosts, one as client: the file, the table and the report name both."""
    with fleet_bed.bed() as bed:
        web = bed.add("web1")  # it gets the image, from which it makes another form for the client
        load = bed.add("load1", extra="mkdir -p /srv/var /var/lib/tare; mount --bind /srv/var /var/lib/tare")
        ends = bed.join(web, load)
        bed.let_in(web, load, ends[1])
        bed.write_inventory({}, ["[clients]", f"load1 tare_client_address=root@{ends[1]}"])
        folder = tmp_path / "two"
        words = ["-p", "runc", "-w", "tcp-rr", "--blocks", "2"]
        done = tare("fleet", "run", "-i", bed.inventory, "-o", folder, "--look", 5, "--json", "--", *words)
        told = {name: (row["state"], row["client"], row["reason"]) for name, row in rows(done).items()}
        assert told == {"web1": ("done", "load1", "")}
        assert trials(folder / "web1.tare")
        with read_store(folder / "web1.tare") as store:
            client = store.record.client
            good = {row["status"] for row in store.trials().iter_rows(named=True)}
        assert good == {"ok"}
        assert (client.client, client.name) == (f"ssh:root@{ends[1]}", "load1")
        assert (client.called, client.address) == ends
        report = json.loads(tare("fleet", "report", folder, "--json").stdout)
        assert [host["facts"]["client"] for host in report["hosts"]] == ["load1"]
        left = [path.name for path in (load.disk / "var" / "remote" / "work").iterdir()]
        assert left == []


@pytest.mark.slow
def test_hosts_of_bad_days_are_rows_with_reasons_and_the_secret_is_nowhere(tmp_path):
    """A full disk under two names, another processor, a password that is asked for, a clock that is days off."""
    there = images()
    with fleet_bed.bed() as bed:
        small = "mount -t tmpfs -o size=48m,mode=700 tmpfs /srv/full"
        bed.add("full", images=there, extra=f"mkdir -p /srv/full; {small}")
        asks = ["AuthorizedKeysFile none", "PasswordAuthentication yes"]
        bed.add("asks", settings=asks)
        bed.add("other", within="setarch i686")
        behind = "mkdir -p /srv/bin; printf '#!/bin/sh\\necho 1600000000\\n' >/srv/bin/date; chmod +x /srv/bin/date"
        bed.add("late", images=there, extra=behind, path="/srv/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        folder_there = "tare_fleet_folder=/srv/full/fleet"
        given = dict.fromkeys(bed.hosts, f"ansible_become_password={SECRET}")
        given["full"] += f" {folder_there}"
        given["late"] += " tare_options='--cpus 4096'"  # `tare run` refuses it, so that nothing is measured
        bed.write_inventory(given, [f"again ansible_host={bed.hosts['full'].address} {folder_there}"])
        words = ["fleet", "run", "-i", bed.inventory, "-o", tmp_path / "x", "--json", "--", *WORDS]
        done = tare(*words)
        told = rows(done)
        report = tare("fleet", "report", tmp_path / "x")
    assert done.returncode == 2
    assert {name: row["state"] for name, row in told.items()} == {
        "full": "failed", "again": "failed", "asks": "lost", "other": "failed", "late": "failed",
    }  # fmt: skip
    assert told["asks"]["reason"].startswith("it lets nobody in without a password")
    assert told["other"]["reason"].startswith("it is i686, and this tare's agent is for x86_64")
    for name in ("full", "again"):
        assert "disk is full" in told[name]["reason"] or "MiB are needed" in told[name]["reason"], told[name]
    assert told["late"]["note"].startswith("its clock is ")
    assert told["late"]["note"].endswith(" behind")
    assert "4096" in told["late"]["reason"]
    assert tell(tmp_path) == []
    assert SECRET not in done.stdout + done.stderr
    assert report.returncode != 0
    assert "again failed: its disk is full" in report.stderr or "MiB are needed" in report.stderr
    assert "; 4 more have none either" in report.stderr


#: In a host of its own: a user that ssh lets in, and a password for root.
USER = """\
cp {allowed} /srv/allowed
for file in passwd shadow; do cp -p /etc/$file /srv/$file; done
echo 'admin:x:1000:1000::/tmp:/bin/sh' >>/srv/passwd
echo 'admin:*:19000::::::' >>/srv/shadow
sed -i 's|^root:[^:]*:|root:{hashed}:|' /srv/shadow
for file in passwd shadow; do mount --bind /srv/$file /etc/$file; done
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_password_to_become_root_is_in_no_file_and_no_process(tmp_path):
    hashed = processes.run(["openssl", "passwd", "-6", "-stdin"], stdin=SECRET.encode()).require().text.strip()
    with fleet_bed.bed() as bed:
        boot = USER.format(allowed=bed.scratch / "allowed", hashed=hashed)
        host = bed.add("right", images=images(), extra=boot, settings=["AuthorizedKeysFile /srv/allowed"])
        becomes = "ansible_user=admin ansible_become=true ansible_become_method=su ansible_become_password"
        wrong = f"{SECRET}x"
        besides = f"wrong ansible_host={host.address} {becomes}={wrong}"
        bed.write_inventory({"right": f"{becomes}={SECRET}"}, [besides])
        folder = tmp_path / "night"
        words = ["fleet", "run", "-i", str(bed.inventory), "-o", str(folder), "--look", "5", "--json", "--", *WORDS]
        with (tmp_path / "log").open("wb") as log:
            controller = subprocess.Popen([sys.executable, "-P", "-m", "tare", *words], stdout=log, stderr=log)
        while controller.poll() is None:
            assert knowing() == []
            time.sleep(0.1)
        log = (tmp_path / "log").read_text()
        told = {row.host: row for row in run_fleet.read_rows(folder)}
        assert (told["right"].state, told["right"].reason) == (HostState.DONE, ""), log
        assert told["wrong"].state is HostState.FAILED, log
        assert told["wrong"].reason.startswith("it wants another password"), log
        assert trials(folder / "right.tare")
        assert tell(tmp_path) == tell(host.disk) == []
        assert not [*host.folder.glob("runs/*/run.*")]


def knowing():
    """The processes, of this machine and of its hosts, that have the secret in their words or variables."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                if SECRET.encode() in (place / name).read_bytes():
                    found.append((place.name, (place / "cmdline").read_bytes()))
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_slow_link_that_is_cut_for_a_while_ends_nothing(tmp_path):
    with fleet_bed.bed() as bed:
        far = bed.add("far", images=images())
        bed.slow(far, "30mbit")
        bed.write_inventory()
        folder = tmp_path / "night"
        words = ["fleet", "run", "-i", bed.inventory, "-o", folder, "--look", 5, "--json", "--", *WORDS[:-1], 4]
        with (tmp_path / "log").open("wb") as log:
            argv = [sys.executable, "-P", "-m", "tare", *map(str, words)]
            controller = subprocess.Popen(argv, stdout=log, stderr=log)
        await_state(folder, {"far"}, HostState.RUNNING)
        bed.cut(far, off=True)
        time.sleep(25)  # longer than ssh waits for an answer
        bed.cut(far, off=False)
        assert controller.wait(400) == 0, (tmp_path / "log").read_text()
        assert {key.block for key in trials(folder / "far.tare")} == {0, 1, 2, 3}
        assert not [*far.folder.glob("runs/*/run.*")]


def test_a_host_whose_key_changed_is_refused(hosts, tmp_path):
    alpha = hosts.hosts["alpha"]
    hosts.end(alpha)
    hosts.new_key(alpha, known=False)
    hosts.start(alpha)
    done = tare("fleet", "run", "-i", hosts.inventory, "-o", tmp_path / "x", "--limit", "alpha", "--json", "--", *WORDS)
    row = rows(done)["alpha"]
    assert (done.returncode, row["state"]) == (2, "lost")
    assert row["reason"].startswith("its host key is not the known one")
