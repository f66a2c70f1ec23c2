"""Output is whole or the command fails, by a code of its own; messages that nobody takes end no work."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import fake_campaign
from tare.cli import standard_streams
from tare.cli.commands.app import COMMANDS
from tare.cli.exit_codes import ExitCode

SHAPE = fake_campaign.Shape(blocks=8, rounds=4, workloads=("prime-slices",))
WORSE = fake_campaign.Shape(
    blocks=8, rounds=4, workloads=("prime-slices",), seed=8, slowdown={"native": 1, "runc": 1.5}
)
#: How each command is made to print without a host: FILE and WORSE are campaigns, FOLDER has both.
PRINTING = {
    "app": ["app", "init"],
    "bundle": ["bundle", "BUNDLE", "--verify"],
    "cite": ["cite", "FILE"],
    "clean": ["clean", "--help"],
    "compare": ["compare", "FILE"],
    "diff": ["diff", "FILE", "WORSE"],
    "export": ["export", "FILE", "--format", "jsonl"],
    "figure": ["figure", "--help"],
    "fleet": ["fleet", "report", "FOLDER"],
    "history": ["history", "FOLDER"],
    "image": ["image", "--help"],
    "lab": ["lab", "--help"],
    "list": ["list", "workloads"],
    "literature": ["literature"],
    "platform": ["platform", "checks"],
    "report": ["report", "FILE", "--json"],
    "score": ["score", "FILE"],
    "setup": ["setup", "--help"],
    "store": ["store", "--help"],
    "spread": ["spread", "FILE"],
    "sql": ["sql", "FILE", "select * from samples"],
    **{
        name: [name, "--help"]
        for name in ("calibrate", "capacity", "doctor", "footprint", "quick", "run", "serve", "surface")
    },
}
MAIN = [sys.executable, "-c", "from tare.cli import main; main()"]


@pytest.fixture(scope="module")
def files(tmp_path_factory, reading_commands):
    folder = tmp_path_factory.mktemp("nights")
    places = {"FOLDER": folder, "FILE": folder / "a.tare", "WORSE": folder / "b.tare"}
    fake_campaign.write(places["FILE"], SHAPE)
    fake_campaign.write(places["WORSE"], WORSE)
    places["BUNDLE"] = tmp_path_factory.mktemp("bundle") / "a.zip"
    packed = reading_commands.run("bundle", places["FILE"], "-o", places["BUNDLE"], cwd=folder)
    assert packed.returncode == 0, packed.stderr
    return places


def _ended(reading_commands, files, tmp_path, stdout):
    """How each command ended with such a standard output, by name."""
    each = [[str(files.get(word, word)) for word in words] for words in PRINTING.values()]
    return dict(zip(PRINTING, reading_commands.run_each(each, cwd=tmp_path, stdout=stdout), strict=True))


@pytest.fixture(scope="module")
def whole(tmp_path_factory, reading_commands, files):
    return _ended(reading_commands, files, tmp_path_factory.mktemp("whole"), "file")


def test_every_command_is_tried(whole):
    assert PRINTING.keys() == COMMANDS.keys()
    assert {name: ended.returncode for name, ended in whole.items() if ended.returncode} == {"diff": 1, "history": 3}
    assert all(ended.stdout for ended in whole.values())


@pytest.mark.parametrize(("stdout", "code"), [("closed", ExitCode.CLOSED), ("full", ExitCode.UNWRITTEN)])
def test_output_that_is_not_taken_is_no_verdict(reading_commands, files, tmp_path, stdout, code):
    for name, ended in _ended(reading_commands, files, tmp_path, stdout).items():
        assert ended.returncode == code, (name, ended)
        assert "Traceback" not in ended.stderr
        assert ("No space left on device" in ended.stderr) == (stdout == "full"), name


def test_a_slow_reader_gets_all(reading_commands, files, tmp_path, whole):
    for name, ended in _ended(reading_commands, files, tmp_path, "slow").items():
        assert ended.returncode == whole[name].returncode, (name, ended.stderr)
        assert len(ended.stdout) == len(whole[name].stdout), name


def _script(text, ignored="PIPE"):
    """A program in Python, started by a parent that ignores a signal (by default the one that Python ignores too)."""
    argv = ["env", f"--ignore-signal={ignored}", sys.executable, "-c", text]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def _main_with(app):
    """A program whose command line is a function instead of the app."""
    return f"from tare import cli\ndef app(**_options):\n    {app}\ncli.app = app\ncli.main()"


@pytest.mark.parametrize(
    ("app", "code", "said"),
    [
        ("1 / 0", ExitCode.FAULT, "ZeroDivisionError"),
        ("raise BrokenPipeError(32, 'of a daemon')", ExitCode.FAULT, "of a daemon"),
        ("raise MemoryError", ExitCode.ERROR, "there is not memory enough"),
        ("raise KeyboardInterrupt", ExitCode.INTERRUPTED, "interrupted"),
        ("raise cli.TareError('no', fix='yes')", ExitCode.ERROR, "fix: yes"),
    ],
)
def test_no_fault_is_a_verdict(app, code, said):
    done = _script(_main_with(app))
    assert done.returncode == code
    assert said in done.stderr


@pytest.mark.parametrize("error", ["BrokenPipeError(32, 'of a daemon')", "EOFError('of a file')"])
def test_an_error_that_typer_would_take_for_its_own_is_a_fault(files, error):
    raising = f"import sys, tare.store\ndef f(*a, **k): raise {error}\ntare.store.read_store = f"
    done = _script(f"{raising}\nsys.argv = ['tare', 'cite', {str(files['FILE'])!r}]\nfrom tare.cli import main\nmain()")
    assert done.returncode == ExitCode.FAULT, done.stderr
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(("app", "code"), [("return 0", 0), ("return 3", 3), ("raise cli.TareError('no')", 2)])
def test_a_python_that_would_go_on_interactively_changes_no_exit_code(app, code):
    done = subprocess.run(
        [sys.executable, "-c", _main_with(f"print('whole'); {app}")],
        env={**os.environ, "PYTHONINSPECT": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "whole\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_messages_that_nobody_takes_end_no_work():
    reading, writing = os.pipe()
    os.close(reading)
    work = "import sys; [print(i, file=sys.stderr, flush=True) for i in range(9)]; print('done')"
    done = subprocess.run(
        [sys.executable, "-c", _main_with(work)], stdout=subprocess.PIPE, stderr=writing, check=False, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_messages_wait_for_a_reader_and_go_on_without_one(monkeypatch):
    monkeypatch.setattr(standard_streams, "PATIENCE_S", 0.1)
    reading, writing = os.pipe()
    with (
        os.fdopen(reading, "rb", buffering=0) as pipe,
        contextlib.closing(standard_streams.MessageStream(writing)) as messages,
    ):
        late = threading.Timer(0.05, pipe.read, [1 << 16])
        os.write(writing, bytes(1 << 16))
        late.start()
        messages.write(b"waited for\n")
        late.join()
        assert pipe.read(100) == b"waited for\n"
        assert messages.lost == ""
        os.write(writing, bytes(1 << 16))
        messages.write(b"dropped\n")
        assert messages.lost
        began = time.monotonic()
        messages.write(b"dropped at once\n")
        assert time.monotonic() - began < 0.1
        assert len(pipe.read(1 << 16)) == 1 << 16
        messages.write(b"read again\n")
        assert pipe.read(100) == b"read again\n"
    os.close(writing)


def test_data_waits_for_a_pipe_that_is_full(monkeypatch):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    data = bytes(1 << 20)
    got = []
    with os.fdopen(reading, "rb") as pipe:
        reader = threading.Thread(target=lambda: got.append(pipe.read()))
        threading.Timer(0.1, reader.start).start()
        assert standard_streams.DataStream(writing).write(data) == len(data)
        os.close(writing)
        reader.join()
    assert got == [data]


@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_a_stream_that_was_closed_is_not_the_next_file(tmp_path, descriptor):
    """What is printed would go into a campaign's file."""
    work = "import os, sys; fd = os.open('/dev/null', 0); print(fd, file=sys.__stdout__ or sys.stderr); os.close(fd)"
    argv = ["sh", "-c", f'exec "$@" {descriptor}>&-', "sh", sys.executable, "-c", _main_with(work)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert int((done.stdout + done.stderr).split()[0]) > 2


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_that_the_parent_ignores_stays_ignored(number):
    done = _script(
        _main_with(f"import os; os.kill(os.getpid(), {number:d}); print('went on')"),
        ignored=number.name.removeprefix("SIG"),
    )
    assert (done.returncode, done.stdout) == (0, "went on\n")
    interrupted = _script(_main_with(f"import os, time; os.kill(os.getpid(), {number:d}); time.sleep(9)"))
    assert interrupted.returncode == ExitCode.INTERRUPTED


def test_exit_codes_of_children_are_known_where_the_parent_ignores_sigchld():
    done = _script(
        _main_with("from tare.host import processes; print(processes.run(['false']).code)"),
        ignored="CHLD",
    )
    assert (done.returncode, done.stdout) == (0, "1\n")
