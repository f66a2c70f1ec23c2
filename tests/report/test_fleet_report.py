"""`tare fleet report` as people and programs read it: a table, odd hosts with their facts, JSON."""

from __future__ import annotations

import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import fake_campaign
from tare.analysis.comparisons.merged_hosts import Fleet, Gathering, NoResult, merge
from tare.analysis.comparisons.summaries import LeftOutCampaign, Why, summary
from tare.analysis.comparisons.thresholds import Thresholds
from tare.cli.commands.app import app
from tare.cli.fleet_report import files_of
from tare.errors import TareError
from tare.report.campaign.fleet_views import render, to_json
from tare.report.formats.fleet_page import page, rows
from tare.report.sentences.numbers import quantity
from tare.store import create_store, read_store

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


def test_a_host_without_a_file_is_a_row_with_its_reason(folder: Path, tmp_path: Path) -> None:
    for file in folder.glob("web0[0-2].tare"):
        shutil.copy(file, tmp_path)
    states = {"web00": "done", "web02": "lost", "web98": "failed", "web99": "lost"}
    hosts = [{"host": name, "state": state, "reason": "no\x1b[31m Python"} for name, state in states.items()]
    (tmp_path / "hosts.json").write_text(json.dumps({"schema": "tare.fleet-hosts/1", "hosts": hosts}))
    shown = run(tmp_path)
    assert "3 hosts (2 more without a result): overheads" in shown
    assert [line.split()[:4] for line in shown.splitlines() if line.startswith("web9")] == [
        ["web98", "failed", "no\N{REPLACEMENT CHARACTER}[31m", "Python"],
        ["web99", "lost", "no\N{REPLACEMENT CHARACTER}[31m", "Python"],
    ]
    assert "\x1b" not in shown
    data = json.loads(run(tmp_path, "--json"))
    assert [entry["host"] for entry in data["no_result"]] == ["web98", "web99"]
    html = tmp_path / "fleet.html"
    run(tmp_path, "--html", html)
    assert "Hosts without a result" in html.read_text()
    for file in tmp_path.glob("*.tare"):
        file.unlink()
    with pytest.raises(TareError, match=r"there is no \*\.tare file: web02 lost: no"):
        run(tmp_path)


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
    assert 0 < odd["value"] < min(host["value"] for host in rate["hosts"] if not host["odd"])
    assert (
        f"; itself {quantity(np.median([host['value'] for host in rate['hosts']]), 'events/s')} in the" in rate["text"]
    )
    assert odd["percent"] == pytest.approx(100 * (1 - 1 / 1.6), abs=2)
    low, high = rate["prediction"]["low"], rate["prediction"]["high"]
    assert low < rate["mean"]["low"] < rate["mean"]["point"] < rate["mean"]["high"] < high


def test_a_host_is_named_by_its_file_or_by_its_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "web1").mkdir()
    for place in (tmp_path / "web1" / "night.tare", tmp_path / "web2.tare", tmp_path / "web3.txt"):
        place.touch()
    assert [(host, file.name) for host, file in files_of([tmp_path])] == [("web2", "web2.tare"), ("web1", "night.tare")]
    assert list(files_of([folder / "web00.tare"])) == [("web00", folder / "web00.tare")]


def test_files_of_one_name_are_told_apart_by_their_hosts(folder: Path, tmp_path: Path) -> None:
    for host in ("web1", "web2"):
        (tmp_path / host).mkdir()
        shutil.copy(folder / "web00.tare", tmp_path / host / "run.tare")
    data = json.loads(run(tmp_path, "--json"))
    assert [entry["text"] for entry in data["left_out"]] == [
        "web2/run.tare: the same campaign as web1/run.tare, which counts once"
    ]


def test_a_single_file_is_one_host(folder: Path) -> None:
    words = " ".join(run(folder / "web00.tare").split())
    assert "1 host: overheads against native" in words
    assert "none of them is odd" in words


@pytest.fixture(scope="module")
def fleet(folder: Path) -> Fleet:
    gathering = Gathering()
    for host, file in files_of([folder]):
        with read_store(file) as store:
            gathering.add(host, summary(store, Thresholds(), absolute=False))
    return merge(gathering, by="microcode")


def test_every_host_of_every_figure_is_drawn(folder: Path, tmp_path: Path) -> None:
    run(folder, "--html", tmp_path / "fleet.html")
    drawn = (tmp_path / "fleet.html").read_text()
    assert drawn.count("<svg") == 2
    assert drawn.count('class="symbol baseline"') == 2 * (HOSTS - 1)
    assert drawn.count('class="symbol slower"') == 2
    assert drawn.count('class="text-slower"') == 2, "the odd host is named in both"
    assert "usually 0x2" in drawn
    assert drawn.count("The dark band is its 95 % interval.") == 1


def test_of_more_hosts_than_can_be_drawn_the_odd_ones_are(fleet: Fleet) -> None:
    figure = fleet.figures[0]
    known = rows(figure, 5)
    assert rows(figure, HOSTS) == sorted(range(HOSTS), key=lambda at: -figure.effects[at])
    assert len(known) == 5
    assert set(np.flatnonzero(figure.odd)) <= set(known)


EVIL = "</svg><script>alert(1)</script>\x1b[31m"


def test_hostile_names_are_text_on_the_page_and_in_a_terminal(fleet: Fleet) -> None:
    figures = tuple(replace(figure, platform=EVIL, workload=EVIL) for figure in fleet.figures)
    figures = tuple(
        replace(figure, groups=tuple(replace(group, value=EVIL) for group in figure.groups)) for figure in figures
    )
    hosts = tuple(replace(host, name=EVIL, file=EVIL, facts={EVIL: EVIL, "cpu": EVIL}) for host in fleet.hosts)
    hosts = (replace(hosts[0], facts={"cpu": f"{EVIL}2"}), *hosts[1:])
    evil = replace(
        fleet, by=EVIL, figures=figures, hosts=hosts, left_out=(LeftOutCampaign(EVIL, Why.UNREADABLE, EVIL),),
        no_result=(NoResult(EVIL, EVIL, EVIL),),
        usual={EVIL: {"a": 2}, "cpu": {"b": 1}},
    )  # fmt: skip
    text = page(evil)
    assert "<script>" not in text
    assert text.count("<svg") == text.count("</svg>") == len(figures)
    assert text.count("alert(1)") > HOSTS
    assert re.search(r"default-src 'none'", text)
    console = Console(width=200, record=True, file=io.StringIO(), force_terminal=True)
    console.print(render(evil, every=True))
    assert "\x1b[31m" not in console.export_text()
    json.loads(to_json(evil))


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
