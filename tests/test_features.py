"""tare works without its features: their folders are deleted from a copy, and the commands that are left are run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fake_campaign
import tare

SOURCE = Path(tare.__file__).parent


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """Runs `tare` from a copy that has the feature `diff` and no other."""
    place = tmp_path_factory.mktemp("without")
    copy = place / "tare"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "tare-agent"))
    for folder in (copy / "features").iterdir():
        if folder.is_dir() and folder.name != "diff":
            shutil.rmtree(folder)

    def run(*arguments):
        code = f"import sys; sys.path.insert(0, {str(place)!r}); from tare.cli import main; main()"
        argv = [sys.executable, "-P", "-c", code, *map(str, arguments)]
        environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "TARE_HOME": str(place / "home")}
        return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120, env=environment)

    return run


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaigns")
    shape = fake_campaign.Shape(blocks=3, rounds=2)
    ids = (fake_campaign.record(shape).id, "11111111-2222-4333-8444-555555555555")
    files = []
    for name, campaign_id in zip(("old.tare", "new.tare"), ids, strict=True):
        record = fake_campaign.record(shape).model_copy(update={"id": campaign_id})
        with tare.store.create_store(folder / name, record) as store:
            fake_campaign.fill(store, shape)
        files.append(folder / name)
    return files


def test_the_report_needs_no_feature(without, campaigns, tmp_path):
    done = without("report", campaigns[0], "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert "gvisor" in done.stdout
    assert "c1-capacity" not in (tmp_path / "page.html").read_text()


def test_diff_needs_no_other_feature(without, campaigns):
    done = without("diff", *campaigns)
    assert done.returncode in {0, 1, 3}, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout


def test_run_is_there_and_the_deleted_commands_are_gone(without):
    done = without("run", "-p", "dokcer")
    assert done.returncode == 2
    assert "docker" in done.stderr
    listed = without("--help").stdout
    assert " run " in listed
    assert " capacity " not in listed
    gone = without("history", "nights")
    assert gone.returncode == 2
    assert "Traceback" not in gone.stderr
