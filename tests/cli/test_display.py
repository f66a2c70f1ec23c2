"""The display of a campaign on a terminal: whatever of it fails, the work goes on."""

import io
import time
from dataclasses import replace

import pytest
from rich.console import Console
from rich.text import Text

import fake_campaign
from tare.campaign.plan.interim import Interim
from tare.cli import progress
from tare.cli.progress import CampaignDisplay, Drawn
from tare.store import read_store


class Terminal(io.StringIO):
    """A terminal that can vanish."""

    gone = False

    def write(self, text):
        if self.gone:
            raise OSError(5, "Input/output error")
        return super().write(text)


@pytest.fixture
def terminal():
    return Terminal()


@pytest.fixture
def console(terminal):
    return Console(file=terminal, force_terminal=True, width=100)


@pytest.fixture
def interim(tmp_path):
    shape = replace(fake_campaign.Shape(), blocks=2, workloads=("sysbench-cpu",))
    with read_store(fake_campaign.write(tmp_path / "x.tare", shape)) as store:
        yield Interim(store)


class Unrenderable:
    def __rich_console__(self, console, options):
        yield Text("half of it")
        raise IndexError("a drawing bug")


def work(shown, interim):
    """What a campaign tells."""
    for number in range(3):
        shown.block(number, 1.0, 2.0, interim)
        shown.doing("starting runc")
        time.sleep(0.3)
        shown.fault("a fault")


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["render", "table", "table of a block"])
def test_a_drawing_bug_turns_the_display_off_with_one_line(console, terminal, interim, monkeypatch, capfd, where):
    monkeypatch.setattr(progress, "REDRAWS", 20)
    shown = CampaignDisplay(console)
    if where == "render":
        monkeypatch.setattr(shown, "_render", lambda: 1 / 0)
    elif where == "table":
        shown._table = Unrenderable()
    else:
        monkeypatch.setattr(progress, "headlines", lambda *_: ().index(0))
    with shown:
        work(shown, interim)
    written = terminal.getvalue()
    assert written.count("the display is off, and the work goes on: ") == 1
    assert {"render": "ZeroDivisionError", "table": "IndexError"}.get(where, "ValueError") in written
    assert "Traceback" not in written + capfd.readouterr().err


@pytest.mark.thorough
def test_a_terminal_that_vanishes_ends_nothing(console, terminal, interim, monkeypatch, capfd):
    monkeypatch.setattr(progress, "REDRAWS", 20)
    with CampaignDisplay(console) as shown:
        time.sleep(0.2)
        terminal.gone = True
        work(shown, interim)
    assert "Traceback" not in capfd.readouterr().err


def test_an_interrupt_passes(console, interim, monkeypatch):
    shown = CampaignDisplay(console)

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(shown, "_narrow", interrupt)
    with pytest.raises(KeyboardInterrupt), shown:
        shown.block(1, 1.0, None, interim)


def test_a_foreword_that_fails_is_left_out(console, terminal):
    with CampaignDisplay(console, foreword=lambda: {}["line"]) as shown:
        shown.doing("starting runc")
    assert "the display is off, and the work goes on: KeyError: 'line'" in terminal.getvalue()


def test_a_display_that_is_taller_than_the_window_ends_with_where_the_rest_is():
    class Tall(Drawn):
        def _render(self):
            return Text("\n".join(f"row {number}" for number in range(40)))

    console = Console(width=60)
    console._force_terminal = True
    console._height = 12
    lines = "".join(segment.text for segment in Tall(console)._cropped()).splitlines()
    assert len(lines) == 11
    assert lines[-1].strip() == "... the rest is below this window, and in the report at the end"
    console._height = 50
    assert "row 39" in "".join(segment.text for segment in Tall(console)._cropped())


def test_a_platform_that_did_not_take_part_is_not_compared(commands, tmp_path):
    fake_campaign.write(tmp_path / "night.tare", fake_campaign.Shape(blocks=2, rounds=2))
    done = commands.run("compare", "night.tare", "-p", "lxc", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: lxc did not take part in this campaign\nfix: name of native, runc")
