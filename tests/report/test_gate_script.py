"""The jobs of docs/examples/ci: their script as a pipeline runs it, with a baseline and without."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import fake_campaign
from tare.cli.exit_codes import ExitCode

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "ci"
SHAPE = fake_campaign.Shape(
    blocks=8,
    rounds=3,
    slowdown={"native": 1.0, "gvisor": 1.2},
    workloads=("prime-slices",),
    failing=None,
    unsupported=None,
    stolen=False,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    slower = {**SHAPE.slowdown, "gvisor": 1.2 * 1.03}
    for name, shape in {"old": SHAPE, "worse": replace(SHAPE, seed=3, slowdown=slower)}.items():
        fake_campaign.write(folder / f"{name}.tare", shape)
    (folder / "tare").write_text(f'#!/bin/sh\nexec {sys.executable} -m tare "$@"\n')
    (folder / "tare").chmod(0o755)
    return folder


def gate(files: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": f"{files}:{os.environ['PATH']}"} | variables
    script = ["sh", EXAMPLES / "gate.sh"]
    return subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, timeout=150, check=False)


@pytest.mark.thorough
def test_a_regression_ends_the_job_and_leaves_what_the_server_reads(files: Path, tmp_path: Path) -> None:
    shutil.copy(files / "old.tare", tmp_path / "main.tare")
    shutil.copy(files / "worse.tare", tmp_path / "new.tare")
    summary = tmp_path / "summary.md"
    (tmp_path / "diff.md").write_text("of an earlier run in this folder")
    (tmp_path / "job.yml").touch()
    done = gate(files, tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary), SOURCE="job.yml")
    assert done.returncode == ExitCode.NO, done.stderr
    assert "::error title=gvisor%3A prime-slices" in done.stdout
    assert summary.read_text().startswith("**▲ regression")
    assert {"diff.md", "diff.xml", "diff.sarif"} <= {file.name for file in tmp_path.iterdir()}


@pytest.mark.thorough
def test_limits_are_taken_and_elsewhere_no_annotation_is_printed(files: Path, tmp_path: Path) -> None:
    shutil.copy(files / "old.tare", tmp_path / "main.tare")
    shutil.copy(files / "worse.tare", tmp_path / "new.tare")
    (tmp_path / "limits.toml").write_text("percent = 10.0\n")
    done = gate(files, tmp_path, LIMITS="limits.toml")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "::" not in done.stdout


def test_without_a_baseline_the_campaign_becomes_it(files: Path, tmp_path: Path) -> None:
    shutil.copy(files / "old.tare", tmp_path / "new.tare")
    done = gate(files, tmp_path)
    assert (done.returncode, "no baseline yet" in done.stdout) == (0, True), done.stderr
    assert (tmp_path / "main.tare").stat().st_size > 0
    assert not (tmp_path / "new.tare").exists(), "the next run measures, and compares no campaign with itself"


@pytest.mark.parametrize("job", ["github.yml", "gitlab.yml"])
def test_the_jobs_run_this_script_and_keep_what_it_writes(job: str) -> None:
    text = (EXAMPLES / job).read_text()
    assert re.search(r"(run:|-) sh docs/examples/ci/gate\.sh$", text, re.MULTILINE)
    written = set(re.findall(r"\bdiff\.(?:md|xml|sarif)\b", text))
    assert written
    assert written <= set(re.findall(r"\bdiff\.\w+\b", (EXAMPLES / "gate.sh").read_text()))


@pytest.mark.host
@pytest.mark.own_host
def test_the_script_measures_where_no_campaign_is_there(files: Path, tmp_path: Path) -> None:
    measure = "-p bubblewrap -w primes --blocks 2"
    first = gate(files, tmp_path, MEASURE=measure)
    assert (first.returncode, "no baseline yet" in first.stdout) == (0, True), first.stderr
    assert not (tmp_path / "new.tare").exists()  # it is the baseline
    (tmp_path / "new.html").unlink()
    second = gate(files, tmp_path, MEASURE=measure)
    assert second.returncode in {ExitCode.DONE, ExitCode.NO, ExitCode.OPEN}, second.stderr
    assert (tmp_path / "diff.xml").exists()


def test_a_change_brings_no_link_that_is_shown_or_replaced(files: Path, tmp_path: Path) -> None:
    """The job may be root's, and the folder has the files of a change that nobody has looked at."""
    secret, folder, summary = tmp_path / "secret", tmp_path / "checkout", tmp_path / "summary.md"
    secret.write_text("root:secret")
    folder.mkdir()
    for name in ("main", "new"):
        shutil.copy(files / "old.tare", folder / f"{name}.tare")
    for name in ("diff.md", "diff.xml", "diff.sarif"):
        (folder / name).symlink_to(secret)
    (folder / "limits.toml").symlink_to(secret)
    environment = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary), "SOURCE": "limits.toml"}
    done = gate(files, folder, LIMITS="limits.toml", **environment)
    assert done.returncode == ExitCode.ERROR, done.stderr
    shown = done.stdout + done.stderr + (summary.read_text() if summary.exists() else "")
    assert "root:secret" not in shown
    gate(files, folder, **{**environment, "SOURCE": "main.tare"})
    assert secret.read_text() == "root:secret"


def test_no_name_of_a_changes_file_is_an_option(files: Path, tmp_path: Path) -> None:
    bin_, words = tmp_path / "bin", tmp_path / "words"
    bin_.mkdir()
    (bin_ / "tare").write_text(f'#!/bin/sh\nfor word; do echo "$word"; done >>{words}\n: >new.tare\n')
    (bin_ / "tare").chmod(0o755)
    (tmp_path / "-pnative").touch()
    gate(files, tmp_path, MEASURE="-w fio -p* --time 1m", PATH=f"{bin_}:{os.environ['PATH']}")
    assert words.read_text().split() == ["run", "-w", "fio", "-p*", "--time", "1m", "-o", "new.tare"]
