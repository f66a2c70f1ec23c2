"""Two signals at once, as a terminal that hangs up sends them, interrupt a command wherever it is."""

import os
import pty
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MAIN = "from tare.cli import main; main()"
FILE = Path(__file__).parents[1] / "store" / "released" / "whole-1.tare"
#: Of a process that ended before tare's first line.
EARLY = {-signal.SIGINT, -signal.SIGTERM}


@pytest.mark.thorough
def test_two_signals_at_once_are_one_interrupt():
    """Of 100 such pairs ten had become an exception in a library, and exit code 4."""
    moments = random.Random(39)
    for _ in range(40):
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "report", str(FILE)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(moments.uniform(0.1, 0.6))
        for number in (signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode in {0, 130, *EARLY}, said


def test_a_fault_after_an_interrupt_is_the_interrupt():
    script = (
        "from tare import cli\n"
        "def app(**_options):\n"
        "    try:\n        cli.interrupts.interrupt()\n"
        "    except KeyboardInterrupt:\n        raise TypeError('of a library') from None\n"
        "cli.app = app\ncli.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert "interrupted" in done.stderr


def test_an_interrupt_while_the_end_is_told_is_an_interrupt():
    """A terminal that hung up on a busy host was exit code 4: "error: KeyboardInterrupt()"."""
    script = (
        "from tare import cli\n"
        "cli.app = lambda **_: print('an answer')\n"
        "cli._warn_of_unremoved = lambda _: cli.interrupts.interrupt()\ncli.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.partition(":")[0]) == (130, "interrupted")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_after_all_is_printed_changes_no_exit_code(name):
    """It was 143 while Python took itself apart, where it has no handlers any more."""
    script = (
        "import signal\nfrom tare.cli import main\n"
        f"class Late:\n    def __del__(self, send=signal.raise_signal):\n        send(signal.{name})\n"
        "late = Late()\nlate.itself = late\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", script, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("comes", "code"), [(True, 130), (False, 5)])
def test_a_terminal_refuses_data_before_its_signal_comes(comes, code):
    ours, theirs = pty.openpty()
    script = (
        "import signal\nfrom tare import cli\n"
        "signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGHUP))\n"
        "def app(**_options):\n"
        f"    if {comes}:\n        signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "    print('an answer', flush=True)\n"
        "cli.app = app\ninput()\ncli.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE, text=True
    )
    os.close(theirs)
    os.close(ours)
    _, said = process.communicate("\n", timeout=60)
    assert process.returncode == code, said
    assert ("interrupted" in said) == comes
