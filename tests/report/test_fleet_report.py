"""`tare fleet report` as people and programs read it: a table, odd hosts with their facts, JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fake_campaign
from tare.cli.commands.app import app
from tare.cli.fleet_report import files_of
from tare.errors import TareError
from tare.store import create_store

HOSTS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign a host; on web07 gvisor is a third slower, and its microcode is another."""
    folder = tmp_path_factory.mktemp("fleet")
    spread = np.linspace(-0.015, 0.015, HOSTS)
    for host in range(HOSTS):
        slower = (4 / 3 if host == 7 else 1.0) * float(np.exp(spread[host]))
        shape = fake_campaign.Shape(
            blocks=4,
            rounds=2,
            seed=host,
            slowdown={"native": 1.0, "gvisor": 1.2 * slower},
            workloads=("prime-slices",),
            failing=None,
            unsupported=None,
            stolen=False,
        )
        record = fake_campaign.record(shape)
        facts = {"cpu": {"model": "Invented 9000", "microcode": "0x1" if host == 7 else "0x2"}}
        with create_store(
            folder / f"web{host:02}.tare", record.model_copy(update={"host": record.host | facts})
        ) as store:
            fake_campaign.fill(store, shape)
    return folder


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["fleet", "report", *map(str, arguments)])
    if isinstance(done.exception, TareError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_a_figure_is_a_line_and_an_odd_host_is_named_with_its_facts(folder: Path) -> None:
    words = " ".join(run(folder).split())
    assert "12 hosts: overheads against native; + is worse" in words
    assert "gvisor prime-slices rate 12 +1" in words
    assert "Odd: web07: gvisor: prime-slices" in words
    assert "differs in microcode 0x1 (usually 0x2; 0 of 11 others have it)" in words
    assert "12 hosts, 2 figures: 1 odd host, at a false-discovery rate of 5 % (Benjamini and Hochberg)" in words


def test_groups_are_rows(folder: Path) -> None:
    words = " ".join(run(folder, "--by", "microcode").split())
    assert "microcode 0x2 11 +16" in words
    assert "microcode 0x1 1 +3" in words
    assert "1 host –" in words


def test_json_has_every_host_and_reason(folder: Path, tmp_path: Path) -> None:
    for file in folder.glob("*.tare"):
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "broken.tare").write_text("no campaign")
    (tmp_path / "odd.tare").mkdir()
    shutil.copy(folder / "web00.tare", tmp_path / "copy.tare")
    data = json.loads(run(tmp_path, "--json"))
    assert data["schema"] == "tare.fleet/1"
    left_out = [(entry["name"], entry["why"]) for entry in data["left_out"]]
    assert left_out == [
        ("broken.tare", "unreadable"), ("odd.tare", "unreadable"), ("web00.tare", "same-campaign")
    ]  # fmt: skip
    assert [host["name"] for host in data["hosts"] if host["odd"]] == ["web07"]
    rate, _ = data["figures"]
    assert (rate["n_hosts"], rate["headline"], len(rate["hosts"])) == (12, True, 12)
    [odd] = [host for host in rate["hosts"] if host["odd"]]
    assert odd["host"] == "web07"
    assert odd["percent"] == pytest.approx(100 * (1 - 1 / 1.6), abs=2)
    low, high = rate["prediction"]["low"], rate["prediction"]["high"]
    assert low < rate["mean"]["low"] < rate["mean"]["point"] < rate["mean"]["high"] < high


def test_a_host_is_named_by_its_file_or_by_its_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "web1").mkdir()
    for place in (tmp_path / "web1" / "night.tare", tmp_path / "web2.tare", tmp_path / "web3.txt"):
        place.touch()
    assert [(host, file.name) for host, file in files_of([tmp_path])] == [("web2", "web2.tare"), ("web1", "night.tare")]
    assert list(files_of([folder / "web00.tare"])) == [("web00", folder / "web00.tare")]


def test_a_single_file_is_one_host(folder: Path) -> None:
    words = " ".join(run(folder / "web00.tare").split())
    assert "1 host: overheads against native" in words
    assert "none of them is odd" in words


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["none"], "none does not exist"),
        (["."], "there is no *.tare file"),
        ([".", "--false-discoveries", "70"], "--false-discoveries 70 is no such share"),
    ],
)
def test_what_cannot_be_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments, what: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TareError) as error:
        run(*arguments)
    assert what in error.value.what


def test_a_folder_of_broken_files_says_why(tmp_path: Path) -> None:
    (tmp_path / "web1.tare").write_text("no campaign")
    with pytest.raises(TareError) as error:
        run(tmp_path)
    assert "none of 1 files can be read: " in error.value.what
    assert "web1.tare" in error.value.what
