"""What a controller does without a host: its folder, its lock, what it packs, and what it takes from a stranger."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

import fake_campaign
from tare.cli.commands import fleet_run_command
from tare.errors import HostError, TareError, UsageError
from tare.fleet import packing, playing, run_fleet, written_out
from tare.fleet.host_states import HostRow, HostState
from tare.fleet.playing import Inventory
from tare.host import processes
from tare.model import CampaignStatus
from tare.store import open_store

WORDS = ["-p", "runc"]


@pytest.fixture
def campaign(tmp_path):
    file = tmp_path / "arrived.tare"
    fake_campaign.write(file, fake_campaign.Shape(blocks=3, workloads=("prime-slices",)))
    return file


def hash_of(file):
    return run_fleet._digest(file)


def test_a_host_s_file_takes_its_place_when_it_is_whole(campaign, tmp_path):
    digest = hash_of(campaign)
    place = tmp_path / "alpha.tare"
    assert run_fleet.take(campaign, place, digest) == 3
    assert hash_of(place) == digest
    assert not campaign.exists()


def refused(arrived, place, digest, match):
    with pytest.raises(TareError, match=match):
        run_fleet.take(arrived, place, digest)
    assert not place.exists()


def test_what_a_hostile_host_sends_is_refused_with_a_reason(campaign, tmp_path):
    place = tmp_path / "alpha.tare"
    refused(campaign, place, "0" * 64, "changed on the way")
    link = tmp_path / "link.tare"
    link.symlink_to(campaign)
    refused(link, place, hash_of(campaign), "no file, or too large")
    noise = tmp_path / "noise.tare"
    noise.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    refused(noise, place, hash_of(noise), "no campaign")
    huge = tmp_path / "huge.tare"
    with huge.open("wb") as file:
        file.truncate(playing.MAX_FILE_BYTES + 1)
    refused(huge, place, "", "no file, or too large")


def test_a_campaign_that_is_not_complete_is_no_result(campaign, tmp_path):
    with open_store(campaign) as store:
        store.set_status(CampaignStatus.INTERRUPTED)
    refused(campaign, tmp_path / "alpha.tare", hash_of(campaign), "not complete")


def test_a_file_of_another_campaign_is_never_replaced(campaign, tmp_path):
    place = tmp_path / "alpha.tare"
    place.write_bytes(b"of last night")
    with pytest.raises(HostError, match=r"alpha\.tare is there, and is of another campaign"):
        run_fleet.take(campaign, place, hash_of(campaign))
    assert place.read_bytes() == b"of last night"


def test_a_folder_keeps_its_order_and_takes_no_other(tmp_path):
    folder = tmp_path / "night"
    inventory = Inventory(("a.example,b.example",))
    order = run_fleet.begin(folder, inventory, WORDS)
    assert run_fleet.begin(folder, Inventory(()), []) == order
    assert run_fleet.begin(folder, inventory, WORDS).id == order.id
    with pytest.raises(UsageError, match="a fleet with other options: -p runc"):
        run_fleet.begin(folder, inventory, ["-p", "crun"])
    with pytest.raises(UsageError, match="there is no fleet in"):
        run_fleet.begin(tmp_path / "none", Inventory(()), [])
    (folder / run_fleet.ORDER).write_text("{}")
    with pytest.raises(UsageError, match="cannot be read"):
        run_fleet.begin(folder, Inventory(()), [])


def test_a_second_controller_is_told_who_has_the_folder(tmp_path):
    told = pytest.raises(HostError, match=f"works in {tmp_path}: process {os.getpid()}")
    with playing.owned(tmp_path), told, playing.owned(tmp_path):
        pass


@pytest.mark.parametrize("obeys", [True, False])
def test_forks_of_a_killed_controller_are_ended_or_named(obeys, tmp_path, monkeypatch):
    """What holds the lock of the plays lives on where its controller is killed."""
    monkeypatch.setattr(playing, "_END_LIMIT_S", 1.0)
    (tmp_path / playing.WORK).mkdir()
    lock = str(tmp_path / playing.WORK / "play")
    ignoring = "" if obeys else "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    program = f"{ignoring}import sys; print(1, flush=True); sys.stdin.read()"
    argv = ["flock", "--no-fork", lock, sys.executable, "-c", program]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as survivor:
        survivor.stdout.read(1)
        if obeys:
            with playing.owned(tmp_path):
                assert survivor.wait() == -signal.SIGTERM
        else:
            with pytest.raises(HostError, match="still works in") as caught, playing.owned(tmp_path):
                pass
            assert str(survivor.pid) in caught.value.fix
        survivor.stdin.close()
    with playing.owned(tmp_path):
        pass


def test_ansible_writes_no_file_beyond_the_bound_and_holds_the_lock_meanwhile(tmp_path, monkeypatch):
    """A host may send without end: the kernel ends what writes it."""
    monkeypatch.setattr(playing, "MAX_FILE_BYTES", 1 << 20)
    file = tmp_path / "fetched"
    flood = ["dd", "if=/dev/zero", f"of={file}", "bs=64K"]
    done = processes.run([*playing._guarded(tmp_path), *flood], time_limit_s=20)
    assert (done.code != 0, done.timed_out, file.stat().st_size) == (True, False, 1 << 20)
    within = [*playing._guarded(tmp_path), "flock", "--nonblock", str(tmp_path / "play"), "true"]
    assert processes.run(within).code != 0
    assert processes.run(within[-4:]).code == 0


@pytest.mark.parametrize("deep", [False, True])
def test_connections_in_the_background_end_with_the_command_and_with_the_next(tmp_path, monkeypatch, deep):
    """Those of a killed controller too; a socket's path has its limit, so that a deep folder has them elsewhere."""
    folder = tmp_path / ("x" * 40 if deep else "x")
    monkeypatch.setattr(playing, "_MAX_CONTROL_PATH", 1000 if not deep else 60)
    ended = []
    monkeypatch.setattr(playing.processes, "run", lambda argv, **_: ended.append(argv[-2]) or done(argv))
    with playing.owned(folder) as work:
        control = playing._control_folder(work)
        assert (work in control.parents) is not deep
        with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(control):
            listening.bind("0123456789")
    assert ended[1:] == [f"ControlPath={control}/0123456789"]
    assert not control.exists()


def done(argv):
    return processes.Finished(tuple(argv), 0, b"", b"", 0)


@pytest.mark.parametrize("source", ["none.ini", "empty.ini"])
def test_an_inventory_without_hosts_is_an_error_of_one_line(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.ini").write_text("[all]\n")
    with pytest.raises(UsageError, match="inventory"):
        playing.hosts(Inventory((source,)))


def test_hosts_are_those_that_the_limit_leaves():
    assert playing.hosts(Inventory(("a.example,b.example,c.example",), "a.e*:c.e*")) == ["a.example", "c.example"]


def test_ansible_has_no_secret_of_the_environment_and_checks_keys(monkeypatch, tmp_path):
    monkeypatch.setenv("ANSIBLE_BECOME_PASSWORD", "tiger")
    monkeypatch.setenv("ANSIBLE_BECOME_PASS", "tiger")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tiger")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "/etc/vault")
    environment = playing._environment(tmp_path)
    assert "tiger" not in environment.values()
    assert environment["ANSIBLE_VAULT_PASSWORD_FILE"] == "/etc/vault"
    assert environment["ANSIBLE_HOST_KEY_CHECKING"] == "True"
    runners = os.environ | environment | {"ANSIBLE_STDOUT_CALLBACK": "awx_display", "AWX_ISOLATED_DATA_DIR": "/x"}
    whole = playing._for_ansible(runners, environment)
    assert "tiger" not in whole.values()
    assert (whole["ANSIBLE_STDOUT_CALLBACK"], whole["AWX_ISOLATED_DATA_DIR"]) == ("awx_display", "/x")


@pytest.mark.parametrize("told", ["-A -X", "-o ForwardAgent=yes -o ForwardX11=yes", "-F CONFIG"])
def test_no_host_of_a_fleet_gets_the_users_agent_or_screen(tmp_path, told):
    config = tmp_path / "config"
    config.write_text("Host *\n  ForwardAgent yes\n  ForwardX11 yes\n")
    users = told.replace("CONFIG", str(config)).split()
    ours = playing._environment(tmp_path)["ANSIBLE_SSH_EXTRA_ARGS"].split()
    assert _forwarded(users) == {"forwardagent yes", "forwardx11 yes"}
    assert _forwarded([*users, *ours]) == {"forwardagent no", "forwardx11 no"}


def _forwarded(options):
    shown = processes.run(["ssh", "-G", *options, "web.example"], time_limit_s=20).require().text.splitlines()
    return {line for line in shown if line.startswith(("forwardagent ", "forwardx11 "))}


def test_what_is_needed_is_packed_and_no_more():
    needed = packing.needed_distributions()
    assert {"numpy", "polars", "pydantic", "annotated-types"} <= {*needed}
    assert not {"pytest", "duckdb", "ansible-core"} & {*needed}


def test_the_same_files_make_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    source = tmp_path / "a.py"
    source.write_text("x = 1\n")
    first = packing._write("tare-1-a", [("tare/a.py", source)])
    os.utime(source, (1, 1))
    second = packing._write("tare-1-b", [("tare/a.py", source)])
    assert (first.sha256, first.unpacked) == (second.sha256, 4096)
    assert packing._there("tare-1-a") == first


def test_a_host_of_another_processor_is_refused_with_a_way(tmp_path):
    with pytest.raises(HostError, match="it is riscv64, and this tare's agent is for"):
        packing.packed_for(packing.PackTarget("3.11", "riscv64"), lambda what: None)


def test_the_playbook_that_is_written_out_is_one_for_ansible(tmp_path, monkeypatch):
    """The plays parse and take their variables; what is brought lies where Ansible looks for it."""
    part = {"name": "base-x", "file": str(tmp_path / "base-x.tar.zst"), "sha256": "0" * 64, "unpacked": 0}
    (tmp_path / "base-x.tar.zst").write_bytes(b"x")
    monkeypatch.setattr(packing, "packed_for", lambda target, progress: {"packages": part, "tare": part})
    monkeypatch.setattr(packing, "packed_image", lambda progress: part)
    folder = tmp_path / "plays"
    written_out.write(folder, WORDS, lambda what: None)
    variables = json.loads((folder / "fleet.json").read_text())
    assert (folder / "files" / variables["tare_image"]["file"]).read_bytes() == b"x"
    assert variables["tare_words"] == WORDS
    argv = [playing.program("ansible-playbook"), "--syntax-check", "-i", "a.example,", str(folder / "run.yml")]
    argv += ["-e", f"@{folder / 'fleet.json'}"]
    environment = playing._environment(tmp_path)
    processes.run(argv, env=environment).require()
    broken = folder / "run.yml"
    broken.write_text(broken.read_text().replace("tare_host:", "no_such_module:", 1))
    assert processes.run(argv, env=environment).code != 0
    with pytest.raises(UsageError, match="has files in it"):
        written_out.write(folder, WORDS, lambda what: None)


@pytest.mark.parametrize(
    "words",
    [
        ["-o", "x.tare"],
        ["--resume", "x.tare"],
        ["--json", "-p", "runc"],
        ["--progress", "json"],
        ["--more", "5m", "x.tare"],
    ],
)
def test_options_that_the_fleet_gives_itself_are_refused(words):
    with pytest.raises(UsageError, match="is not for a fleet"):
        fleet_run_command.check_words(words)


def test_options_for_hosts_are_checked_before_any_host_is_reached():
    fleet_run_command.check_words(["-p", "runc", "-w", "startup", "--blocks", "3"])
    fleet_run_command.check_words(["-p", "runc", "--", "ls", "-l"])
    with pytest.raises(Exception, match=r"(?i)no such option"):
        fleet_run_command.check_words(["--blokcs", "3"])


def test_rows_of_an_earlier_command_are_read_and_damaged_ones_are_none(tmp_path):
    fleet = run_fleet._Fleet(tmp_path, ["alpha"], lambda rows: None)
    row = replace(HostRow("alpha"), state=HostState.FAILED, reason="its disk is full")
    fleet.put(row)
    assert run_fleet.read_rows(tmp_path) == [row]
    (tmp_path / run_fleet.ROWS).write_text(json.dumps({"hosts": [{"host": "x", "state": "flying"}]}))
    assert run_fleet.read_rows(tmp_path) == []


def test_only_a_file_that_is_still_here_counts_as_done(campaign, tmp_path):
    place = tmp_path / "alpha.tare"
    digest = hash_of(campaign)
    run_fleet.take(campaign, place, digest)
    done = replace(HostRow("alpha"), state=HostState.DONE, sha256=digest)
    run_fleet._Fleet(tmp_path, ["alpha"], lambda rows: None).put(done)

    def known():
        fleet = run_fleet._Fleet(tmp_path, ["alpha"], lambda rows: None)
        fleet.have_here()
        return fleet.rows["alpha"].state

    assert known() is HostState.DONE
    place.write_bytes(b"changed")
    assert known() is HostState.WAITING


def test_no_client_loads_two_hosts_at_once():
    clients = {"a": "", "b": "load1", "c": "load1", "d": "load2", "e": "", "f": "load1"}
    assert run_fleet.waves(clients) == [["a", "b", "d", "e"], ["c"], ["f"]]
    assert run_fleet.waves({}) == []
    assert run_fleet.waves({"a": "", "b": ""}) == [["a", "b"]]


def test_a_host_that_was_killed_or_lost_after_its_start_is_tried_again():
    for state, started, again in [
        (HostState.KILLED, True, True), (HostState.LOST, True, True), (HostState.LOST, False, False),
        (HostState.FAILED, True, False),
        (HostState.DONE, True, False),
    ]:  # fmt: skip
        assert run_fleet._worth_another(replace(HostRow("a"), state=state, started=started)) is again
