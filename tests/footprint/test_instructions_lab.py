"""A request for instructions boots a machine a repeat, each with a seed of its own; what came back is one file."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import fake_footprints
from tare.cli import app
from tare.errors import HostError, UsageError
from tare.features.kernel.counters import exact_counts
from tare.features.kernel.exchange.count_request import FootprintRequest
from tare.features.kernel.exchange.result import FootprintResult, Missed
from tare.features.kernel.execution import lab, wire
from tare.footprint_model import PARTS, Footprint, Phase, Scope
from tare.model import Level
from tare.store import read_store


class Quiet:
    def doing(self, what):
        pass

    def step(self, done, of, missed):
        pass


@pytest.fixture
def booted(monkeypatch):
    """Machines that are none: each leaves a file with the start of runc, and the plug-in's log of it."""
    runs = []

    def run(command, counting, output, progress):
        runs.append((command, counting.seed, counting.arguments))
        assert counting.symbols == "ffffffff81000000 startup_64\n"
        command.results.mkdir()
        named = Footprint(
            level=Level.INSTRUCTIONS, scope=Scope.HOST, platform="runc", phase=Phase.START, workload=None, repeat=0,
            seconds=1.0, hits={"window:2:tare/a": 1},
        )  # fmt: skip
        fake_footprints.write(command.results / wire.CAMPAIGN, [named])
        counts = [1000 + counting.seed, 5, *[0] * (len(PARTS) - 2)]
        counting.log.write_text(f"window 2 {' '.join(map(str, counts))}\n")
        if counting.seed == 13:
            wire.write_answer(command.results, wire.LabAnswer(error="no runc", fix="apt install runc"))
            return 2
        missed = (Missed("crun", None, 0, "killed"),)
        wire.write_answer(command.results, wire.LabAnswer(result=FootprintResult(footprints=(named,), missed=missed)))
        return 0

    monkeypatch.setattr(lab.exact, "run", run)
    monkeypatch.setattr(lab.plugin, "ensure", lambda progress: Path("/nowhere/icount.so"))
    monkeypatch.setattr(lab.lab_build, "host", lambda flavour, progress: Path("/nowhere"))
    monkeypatch.setattr(lab.vmlinux, "ensure", lambda kernel: Path("/dev/null"))
    monkeypatch.setattr(lab.plugin.btf, "section", lambda elf, name: b"")
    monkeypatch.setattr(lab.plugin.btf, "offsets", lambda types, wanted: {"comm": 2976})
    monkeypatch.setattr(lab.plugin.kallsyms, "functions", lambda kernel: [(0xFFFFFFFF81000000, "startup_64")])
    return runs


def test_each_repeat_is_a_machine_with_a_seed_of_its_own(booted, tmp_path):
    file = tmp_path / "x.tare"
    request = FootprintRequest(("runc",), ("call-getpid",), Level.INSTRUCTIONS, repeats=3, seed=5)
    result = lab.carry_out(request, file, Quiet())
    assert [seed for _, seed, _ in booted] == [5, 6, 7]
    command, _, arguments = booted[0]
    assert (command.cpus, command.env) == (1, {exact_counts.COUNTED: "1"})
    assert arguments == {"memory": "1", "comm": "2976"}
    inner = wire.unpacked(command.stdin)
    assert (inner.repeats, inner.seed, inner.params["call-getpid"]["slice_ms"]) == (1, 5, 10)
    with read_store(file) as store:
        counted = list(store.footprints())
    assert [(footprint.repeat, footprint.hits["user"]) for footprint in counted] == [(0, 1005), (1, 1006), (2, 1007)]
    assert list(result.footprints) == counted
    assert len(result.missed) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["x.tare"]


def test_a_model_of_caches_is_asked_for_by_the_plug_ins_argument_and_of_no_other_level(booted, tmp_path):
    request = FootprintRequest(("runc",), ("call-getpid",), Level.INSTRUCTIONS, repeats=1, caches=True)
    lab.carry_out(request, tmp_path / "x.tare", Quiet())
    assert booted[0][2] == {"memory": "1", "comm": "2976", "caches": "1"}
    with pytest.raises(UsageError, match="sees what an emulator executes"):
        FootprintRequest(caches=True).check()


def test_what_was_counted_before_a_machine_failed_stays_and_the_error_has_the_fix(booted, tmp_path):
    file = tmp_path / "x.tare"
    request = FootprintRequest(("runc",), ("call-getpid",), Level.INSTRUCTIONS, repeats=2, seed=12)
    with pytest.raises(HostError, match=r"ended with 2; 2 footprints are in .*: no runc") as caught:
        lab.carry_out(request, file, Quiet())
    assert caught.value.fix == "apt install runc"


def test_its_machine_has_one_processor(booted, tmp_path):
    with pytest.raises(UsageError, match="CPU 1 is not in the lab"):
        lab.carry_out(FootprintRequest(level=Level.INSTRUCTIONS, cpus=(1,)), tmp_path / "x.tare", Quiet())
    assert booted == []


@pytest.mark.parametrize(("platforms", "named"), [(("runc", "qemu-tcg"), "qemu-tcg"), (("all",), "-tcg")])
def test_an_emulators_own_work_is_refused_before_a_machine_boots(booted, tmp_path, platforms, named):
    request = FootprintRequest(platforms, level=Level.INSTRUCTIONS)
    with pytest.raises(UsageError, match=f"{named} is not counted: its guest runs in an emulator") as caught:
        lab.carry_out(request, tmp_path / "x.tare", Quiet())
    assert "gvisor-kvm" in caught.value.fix
    assert booted == []


def start(count):
    return Footprint(
        level=Level.INSTRUCTIONS, scope=Scope.HOST, platform="runc", phase=Phase.START, workload=None, repeat=0,
        seconds=1.0, hits={"user": count},
    )  # fmt: skip


def test_a_version_is_counted_against_the_labs_own_in_one_command(monkeypatch, tmp_path):
    runs = []

    def in_a_lab(request, file, watcher, programs, agreed):
        brought = {program.name: program.read_text() for program in programs}
        runs.append((file.name, request.platforms, brought))
        counted = start(1000 + 30 * len(brought))
        fake_footprints.write(file, [counted])
        return FootprintResult(footprints=(counted,))

    monkeypatch.setattr(lab, "carry_out", in_a_lab)
    monkeypatch.delenv("TARE_LAB", raising=False)
    version = tmp_path / "runc-1.3"
    version.write_text("new")
    words = ["footprint", "--level", "instructions", "-p", "runc", "--against", str(tmp_path / "base.tare")]
    new = [*words, "--with", f"runc={version}", "-o", str(tmp_path / "new.tare")]
    done = CliRunner().invoke(app, new)
    assert done.exit_code == 1, done.output
    assert "+3.0" in done.output
    assert runs == [("base.tare", ("runc",), {}), ("new.tare", ("runc",), {"runc": "new"})]
    again = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "same.tare")])
    assert again.exit_code == 0, again.output
    assert runs[2:] == [("same.tare", ("runc",), {})], "what is there is not counted again"
