"""tare works without its features: their folders are deleted from a copy, and what is left is run and tested."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fake_campaign
import tare
from tare.host import state
from tare.image.image_build import agent_path

SOURCE = Path(tare.__file__).parent
HERE = Path(__file__).parents[1]
#: Features beside the instrument: nothing else needs them.
BESIDE = ("kernel", "studies")
#: Tests of what is left without them.
LEFT = ("tests/report/test_diff_report.py", "tests/report/test_build.py", "tests/campaign/test_schedule.py")


class Copy:
    """A copy of tare without some features, and commands of it."""

    def __init__(self, place, deleted):
        self._place = place
        shutil.copytree(SOURCE, place / "tare", ignore=shutil.ignore_patterns("__pycache__", "tare-agent"))
        for name in deleted:
            shutil.rmtree(place / "tare" / "features" / name)

    def __call__(self, *arguments, **variables):
        """Run `tare`. ``variables``: of the environment, in place of the usual ones."""
        code = f"import sys; sys.path.insert(0, {str(self._place)!r}); from tare.cli import main; main()"
        argv = [sys.executable, "-P", "-c", code, *map(str, arguments)]
        environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "TARE_HOME": str(self._place / "home"), **variables}
        return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=240, env=environment)

    def pytest(self, *arguments):
        """Run tests of this tree on the copy."""
        argv = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(self._place)}
        environment.pop("PYTEST_ADDOPTS", None)
        return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=240, env=environment, cwd=HERE)


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """A copy that has the feature `diff` and no other."""
    deleted = [folder.name for folder in (SOURCE / "features").iterdir() if (folder / "__init__.py").is_file()]
    return Copy(tmp_path_factory.mktemp("without"), set(deleted) - {"diff"})


@pytest.fixture(scope="module")
def instrument(tmp_path_factory):
    """A copy without the features that are beside the instrument."""
    return Copy(tmp_path_factory.mktemp("instrument"), BESIDE)


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


def test_options_and_profiles_of_deleted_features_are_gone(instrument, campaigns):
    for arguments in (
        ("report", campaigns[0], "--beside", "karna-2021"),
        ("report", campaigns[0], "--sources", "linux"),
        ("run", "--profile", "karna-2021"),
        ("run", "-w", "dhrystone"),
        ("footprint",),
    ):
        done = instrument(*arguments)
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr
    help_of_run = instrument("run", "--help").stdout
    assert "a study's:" not in help_of_run
    assert "life (start" in help_of_run


def test_stacks_are_refused_in_one_line_without_their_feature(instrument, campaigns):
    done = instrument("export", campaigns[0], "--table", "stacks", "--format", "folded")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "error: this tare has no section with stacks"


@pytest.mark.thorough
def test_tests_of_report_diff_and_schedule_pass_without_kernel_and_studies(instrument):
    done = instrument.pytest("-m", "not thorough and not host", *LEFT)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout


@pytest.mark.host
@pytest.mark.own_host
def test_a_campaign_runs_without_kernel_and_studies(instrument, tmp_path):
    file = tmp_path / "native.tare"
    here = {"TARE_HOME": str(state.home()), "TARE_AGENT": str(agent_path())}
    done = instrument("run", "-p", "native", "-w", "primes", "--blocks", "2", "-o", file, **here)
    assert done.returncode == 0, done.stderr
    assert file.with_suffix(".html").is_file()
    report = json.loads(instrument("report", file, "--json").stdout)
    assert report["status"] == "complete"
    assert report["blocks_done"] == 2
    assert not {"footprints", "surfaces", "beside"} & report.keys()
    done = instrument("diff", file, file)
    assert "Traceback" not in done.stderr
