"""A request goes into a lab as data, is carried out there as here, and its result comes back."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fake_campaign
from tare import __version__
from tare.campaign.execution import provenance
from tare.cli import app
from tare.errors import HostError, ParseError, StoreError, UsageError
from tare.features.kernel import __main__ as in_lab
from tare.features.kernel.exchange.count_request import FootprintRequest
from tare.features.kernel.exchange.result import FootprintResult, Missed, Skipped
from tare.features.kernel.execution import counting, lab, wire
from tare.footprint_model import Footprint, Phase, Scope
from tare.model import Level
from tare.session.frames import STDERR, STDOUT
from tare.store import LeftOut, open_store, read_store

REQUESTS = [
    FootprintRequest(level=Level.FUNCTIONS),
    FootprintRequest(
        ("native", "docker"), ("primes", "cpu"), Level.LINES, repeats=2, idle_s=2.5, seed=7, cpus=(0, 1),
        memory_bytes=(512 << 20) + 1, subnet="10.99.0.0/24",
        params={"primes": {"limit": 100, "share": 0.5, "kind": "a b\n", "warm": True}},
    ),
]  # fmt: skip


def footprint(repeat):
    return Footprint(
        level=Level.FUNCTIONS, scope=Scope.HOST, platform="native", phase=Phase.START, workload=None, repeat=repeat,
        seconds=1.5, hits={"do_mmap": 3, "veth_xmit [veth]": 1}, known=35000,
    )  # fmt: skip


def written(path, *counted, warning=None):
    fake_campaign.write(path, fake_campaign.Shape(blocks=1))
    with open_store(path) as store:
        for footprint in counted:
            store.add_footprint(footprint)
        if warning:
            store.add_event("warning", warning)
    return path


class Watching:
    def __init__(self):
        self.lines, self.steps = [], []

    def doing(self, what):
        self.lines.append(what)

    def step(self, done, of, missed):
        self.steps.append((done, of, missed))


RESULT = FootprintResult(
    footprints=(footprint(0), footprint(1)),
    missed=(Missed("kata", None, 0, "no KVM"), Missed("runc", "primes", 1, "killed")),
    skipped=(Skipped("startup", "counted anyway"),),
    left_out=(LeftOut(platform="xen-pv", reason="no Xen", fix="boot Xen"),),
    warnings=("a mount is still there",),
)


@pytest.fixture
def booted(monkeypatch):
    """Labs without a machine: what is sent is carried out in this process, by a counting that is made up."""
    commands, requests = [], []

    def carry_out(request, file, watcher):
        requests.append(request)
        watcher.doing("starting kata, repeat 1 of 2")
        watcher.step(3, 9, 1)
        written(file, *RESULT.footprints, warning="no footprint of kata: no KVM")
        if request.seed == 13:
            raise HostError("the module is not for this kernel", fix="build it again")
        return RESULT

    def run(command, output, progress):
        commands.append(command)
        monkeypatch.setattr(in_lab, "say", lambda line: output(STDOUT, line.encode() + b"\n"))
        code = in_lab.main(command.stdin, command.results)
        output(STDERR, b"docker is there\n")
        return code

    monkeypatch.setattr(counting, "carry_out", carry_out)
    monkeypatch.setattr(lab.lab_run, "run", run)
    monkeypatch.setattr(lab, "module", lambda progress: Path("/nowhere/tare_fcount.ko"))
    monkeypatch.setattr(lab, "_completed", lambda counted, results, level, progress: counted)
    return commands, requests


@pytest.mark.parametrize("request_sent", REQUESTS)
def test_a_request_is_the_same_in_the_lab_and_its_result_the_same_outside(request_sent, booted, tmp_path):
    commands, requests = booted
    watcher = Watching()
    result = lab.carry_out(request_sent, tmp_path / "x.tare", watcher)
    assert requests == [request_sent]
    assert result == RESULT
    assert watcher.steps == [(3, 9, 1)]
    assert watcher.lines[-2:] == ["in the lab: starting kata, repeat 1 of 2", "in the lab: docker is there"]
    assert [word for word in commands[0].argv if "primes" in word or "level" in word] == [], "nothing of it is argv"
    assert [path.name for path in tmp_path.iterdir()] == ["x.tare"]
    with read_store(tmp_path / "x.tare") as store:
        assert list(store.footprints()) == list(RESULT.footprints)


def test_an_error_in_the_lab_is_the_error_here_with_its_fix_and_what_was_counted_stays(booted, tmp_path):
    file = tmp_path / "x.tare"
    with pytest.raises(HostError) as caught:
        lab.carry_out(FootprintRequest(level=Level.FUNCTIONS, seed=13), file, Watching())
    assert caught.value.what == (
        f"counting in the lab ended with 2; 2 footprints are in {file}: the module is not for this kernel"
    )
    assert caught.value.fix == "build it again"
    with read_store(file) as store:
        assert list(store.footprints()) == list(RESULT.footprints)


def test_a_lab_that_ends_without_an_answer_is_told_by_its_last_words(monkeypatch, booted, tmp_path):
    def run(command, output, progress):
        output(STDERR, b"Killed\n")
        return 137

    monkeypatch.setattr(lab.lab_run, "run", run)
    with pytest.raises(HostError, match="counting in the lab ended with 137: Killed"):
        lab.carry_out(REQUESTS[0], tmp_path / "x.tare", Watching())
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_cannot_be_taken_in_is_kept_as_it_is_and_no_link_is_followed(monkeypatch, booted, tmp_path):
    secret, folder = tmp_path / "secret", tmp_path / "here"
    for place in (secret, folder):
        place.mkdir()
    (secret / "key").write_text("of this host")

    def bring(came, counted, file, agreed):
        results = Path(came.location).parent
        (results / "link").symlink_to(secret / "key")
        (results / "tree").symlink_to(secret)
        raise StoreError("the disk is full")

    monkeypatch.setattr(lab, "bring", bring)
    with pytest.raises(StoreError, match="what was counted is kept in") as caught:
        lab.carry_out(REQUESTS[0], folder / "x.tare", Watching())
    [kept] = folder.iterdir()
    assert caught.value.what.endswith(str(kept))
    assert {path.name for path in kept.iterdir()} == {wire.CAMPAIGN, wire.ANSWER, "link", "tree"}
    assert (kept / "link").is_symlink()
    assert (kept / "tree").is_symlink()
    shutil.rmtree(kept)
    assert (secret / "key").read_text() == "of this host"


def test_an_answer_that_is_none_is_said_in_a_line(tmp_path):
    assert wire.read_answer(tmp_path) == wire.LabAnswer()
    (tmp_path / wire.ANSWER).write_text('{"result": {"missed": [{"platform": 3}]}}')
    with pytest.raises(ParseError, match=r"the lab's answer is not valid: result\.missed\.0\.platform"):
        wire.read_answer(tmp_path)
    (tmp_path / wire.ANSWER).unlink()
    (tmp_path / wire.ANSWER).mkdir()
    with pytest.raises(ParseError, match="the lab's answer cannot be read"):
        wire.read_answer(tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (json.dumps({"version": "0.0.7", "order": {}}), "a request of tare 0.0.7 cannot be carried out by tare "),
        (json.dumps({"version": __version__, "request": {"level": "atoms"}}), "invalid request: request.level"),
        (json.dumps({"version": __version__, "request": {"repeats": 0}}), "0 repeats cannot be counted"),
        ("", "invalid request"),
    ],
)  # fmt: skip
def test_the_entry_in_the_lab_answers_what_it_cannot_carry_out(sent, why, tmp_path):
    argv = [sys.executable, "-m", "tare.features.kernel", str(tmp_path)]
    done = subprocess.run(argv, input=sent, capture_output=True, text=True, check=False)
    answer = wire.read_answer(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    assert why in answer.error
    assert answer.result is None


def test_without_here_a_lab_is_sent_for_and_within_one_not_again(monkeypatch, tmp_path):
    received = []

    def in_a_lab(request, file, watcher, programs, agreed):
        received.extend([request, *programs])
        return RESULT

    def on_this_host(request, file, watcher, agreed):
        received.append(request)
        return FootprintResult()

    monkeypatch.setattr(lab, "carry_out", in_a_lab)
    monkeypatch.setattr(counting, "carry_out", on_this_host)
    monkeypatch.delenv("TARE_LAB", raising=False)
    words = ["footprint", "--level", "functions", "-p", "runc", "--cpus", "1,0", "-o", str(tmp_path / "x.tare")]
    program = tmp_path / "firecracker"
    program.touch()
    done = CliRunner().invoke(app, [*words, "--file", str(program)])
    assert done.exit_code == 0, done.output
    for line in RESULT.without:
        assert line in done.output
    monkeypatch.setenv("TARE_LAB", "kvm")
    assert CliRunner().invoke(app, words).exit_code == 0
    request = FootprintRequest(("runc",), level=Level.FUNCTIONS, cpus=(0, 1))
    assert received == [request, program, request]


def test_programs_go_into_the_lab_beside_the_module_and_nowhere_else(tmp_path):
    programs = [tmp_path / "firecracker", tmp_path / "jailer"]
    lines = lab.lab_command(FootprintRequest(level=Level.LINES), tmp_path, None, programs)
    assert (lines.flavour, list(lines.files), lines.env) == ("lines", programs, {})
    functions = lab.lab_command(FootprintRequest(level=Level.FUNCTIONS), tmp_path, tmp_path / "m.ko", programs)
    assert (functions.flavour, list(functions.files)) == ("kvm", [tmp_path / "m.ko", *programs])
    words = ["footprint", "--level", "functions", "--here", "--file", str(programs[0]), "-o", str(tmp_path / "x.tare")]
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, UsageError)
    assert not (tmp_path / "x.tare").exists()


@pytest.mark.parametrize(
    ("platforms", "wanted"),
    [((), True), (("all",), True), (("runc", "docker-gvisor"), True), (("runc", "gvisor"), False)],
)
def test_a_docker_daemon_is_started_there_for_who_wants_one(platforms, wanted, tmp_path):
    request = FootprintRequest(platforms, level=Level.FUNCTIONS)
    command = lab.lab_command(request, tmp_path, tmp_path / "tare_fcount.ko")
    assert ("scripts/with_dockerd.py" in command.argv) == wanted
    assert command.argv[-5:] == ["python3", "-P", "-m", "tare.features.kernel", "/lab/out"]
    assert command.env == {"TARE_FCOUNT": "/lab/files/tare_fcount.ko"}
    assert command.files == (tmp_path / "tare_fcount.ko",)
    assert "clocksource=tsc" in command.kernel


def came(result, file, agreed=""):
    with read_store(result) as store:
        return lab.bring(store, list(store.footprints()), file, agreed)


def test_what_comes_back_is_written_into_a_new_file_and_that_of_the_lab_is_only_read(tmp_path):
    result = written(tmp_path / "there.tare", footprint(0), footprint(1), warning="no footprint of kata: no KVM")
    before = result.read_bytes()
    assert came(result, tmp_path / "here.tare") == (footprint(0), footprint(1))
    assert result.read_bytes() == before
    with read_store(result) as there, read_store(tmp_path / "here.tare") as here:
        assert list(here.footprints()) == [footprint(0), footprint(1)]
        assert here.record == there.record
        assert [event.text for event in here.events()] == [event.text for event in there.events()]
        assert here.status == there.status
        assert provenance.may_be_added_to(here)
        assert not provenance.is_own(here), "what a lab says would be run as root by a resume"


def test_what_comes_back_is_added_to_a_file_that_is_there(tmp_path):
    here = tmp_path / "here.tare"
    came(written(tmp_path / "first.tare", footprint(0)), here)
    second = written(tmp_path / "there.tare", footprint(1), warning="no footprint of kata: no KVM")
    assert came(second, here) == (footprint(2),)
    with read_store(here) as store:
        assert list(store.footprints()) == [footprint(0), footprint(2)], "repeats go on: they are others, not again"
        texts = [event.text for event in store.events()]
    assert "in the lab: no footprint of kata: no KVM" in texts
    assert "footprints that came from a lab on Linux 6.1.0-fake: 1" in texts


def test_a_file_of_another_host_is_only_added_to_with_consent(tmp_path):
    theirs = written(tmp_path / "theirs.tare", footprint(0))
    result = written(tmp_path / "there.tare", footprint(1))
    with pytest.raises(StoreError, match="was not written by this host"):
        came(result, theirs)
    with read_store(theirs) as store:
        assert list(store.footprints()) == [footprint(0)]
        agreed = provenance.digest(store)
    assert came(result, theirs, agreed) == (footprint(2),)


def test_what_a_lab_says_is_passed_on_whatever_pieces_it_comes_in():
    watcher = Watching()
    output = lab._LabOutput(watcher)
    pieces = (
        (STDERR, b"starting na"), (STDOUT, b'{"doing": "ti'), (STDERR, b"tive\ntare: no disk (fix: free some)\n\n"),
        (STDOUT, b'me"}\n{"done": 1, "of": 2, "missed": 0}\n'),
    )  # fmt: skip
    for channel, data in pieces:
        output(channel, data)
    assert watcher.lines == [
        "in the lab: starting native",
        "in the lab: tare: no disk (fix: free some)",
        "in the lab: time",
    ]
    assert watcher.steps == [(1, 2, 0)]
    assert output.last == "tare: no disk (fix: free some)"


@pytest.mark.parametrize(
    "line",
    [
        b'{"doing": 3}',
        b'{"done": 1}',
        b'{"doing": "a", "step": 1}',
        b'{"done": -1, "of": 2, "missed": 0}',
        b"[]",
        b"\xff",
    ],
)
def test_what_is_no_progress_is_a_line_like_any_other(line):
    watcher = Watching()
    output = lab._LabOutput(watcher)
    output(STDOUT, line + b"\n")
    assert output.last == line.decode(errors="replace")
    assert watcher.lines == [f"in the lab: {output.last}"]
