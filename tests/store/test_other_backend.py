"""A store that is no file, from the command line, as a plug-in: a module and an entry point are all it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dict_store
import pytest
from typer.testing import CliRunner

import fake_campaign
from tare import plugins
from tare.campaign.execution import run_campaign
from tare.cli import app
from tare.errors import StoreError
from tare.host.resources.unremoved import Unremoved
from tare.store import exists, open_store, opening, read_store

NIGHT = "dict:/night.tare"
RUN = ("run", "-p", "runc", "-w", "primes", "--blocks", "1")
SHAPE = fake_campaign.Shape(blocks=2, rounds=2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with an installed plug-in's store that keeps nothing yet, and campaigns that need no host."""
    monkeypatch.chdir(tmp_path)
    info = tmp_path_factory.mktemp("installed") / "tare_dict-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tare-dict\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tare.stores]\ndict = dict_store\n")
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.setenv(plugins.ALLOWED, "tare-dict")
    kind = opening.StoreKind("dict", dict_store.DictBackend())
    monkeypatch.setattr(dict_store, "STORES", (kind,), raising=False)
    opening.plugin_stores.cache_clear()
    monkeypatch.setattr("tare.cli.run.own_namespaces.enter", lambda _home: None)
    monkeypatch.setattr(run_campaign, "begin", lambda _request, place, _watcher: fake_campaign.write(place, SHAPE))
    yield tmp_path
    opening.plugin_stores.cache_clear()


def said(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    if done.exception is not None:
        raise done.exception
    return done.output


def test_a_campaign_is_begun_there_and_read_as_one_in_a_file(folder: Path) -> None:
    shown = said(*RUN, "-o", NIGHT)
    assert f"campaign: {NIGHT}" in shown
    assert [file.name for file in folder.iterdir()] == ["night.html"]
    assert json.loads(said("report", "--json", NIGHT))["file"] == "night.tare"
    fake_campaign.write(folder / "night.tare", SHAPE)
    for command in (["export", "--format", "csv"], ["compare"], ["spread"]):
        assert said(*command, NIGHT) == said(*command, "night.tare")


def test_nothing_there_is_overwritten(folder: Path) -> None:
    said(*RUN, "-o", NIGHT)
    (folder / "night.html").unlink()
    with pytest.raises(StoreError, match=f"{NIGHT} exists and is never overwritten"):
        said(*RUN, "-o", NIGHT)


def test_the_stores_that_there_are_are_named_where_one_is_not() -> None:
    with pytest.raises(StoreError, match=r"^mysql://h/nights: no such store: only files and dict:/\.\.\.") as refused:
        said("report", "mysql://h/nights")
    assert "\n" not in str(refused.value)


def test_an_interrupted_one_says_how_it_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(_request: Any, place: Path, _watcher: Any) -> None:
        fake_campaign.write(place, SHAPE)
        raise KeyboardInterrupt

    monkeypatch.setattr(run_campaign, "begin", begin)
    assert f"to continue: tare run --resume {NIGHT}" in CliRunner().invoke(app, [*RUN, "-o", NIGHT]).output

    def resume(place: Path, *_: Any) -> None:
        with open_store(place) as store:
            store.add_event("info", "gone on with")

    monkeypatch.setattr(run_campaign, "resume", resume)
    monkeypatch.setattr("tare.cli.run.agreed", lambda _place, trusted: "")
    said("run", "--resume", NIGHT)
    with read_store(NIGHT) as store:
        assert store.events()[-1].text == "gone on with"


def test_what_stays_on_the_host_is_kept_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    left = Unremoved(Path("entry"), "file /x", "it is busy")
    monkeypatch.setattr("tare.campaign.execution.run_campaign.unremoved.still_there", lambda: [left])
    run_campaign.keep_unremoved_in(Path(NIGHT))
    assert not exists(NIGHT)
    fake_campaign.write(Path(NIGHT), SHAPE)
    run_campaign.keep_unremoved_in(Path(NIGHT))
    with read_store(NIGHT) as store:
        assert store.events()[-1].text == str(left)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["report", "dict:/none"], "dict:/none does not exist"),
        (["run", "--resume", "dict:/none"], "dict:/none does not exist"),
        (["bundle", NIGHT, "-o", "night.zip"], "is in no file: a bundle has a copy of it"),
        (["cite", NIGHT], "is in no file: a citation has its checksum"),
        (["report", NIGHT, "--share", "copy.tare"], "no copy is made of it"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_it_cannot_is_one_line_and_leaves_no_file(words: list[str], why: str, folder: Path) -> None:
    fake_campaign.write(Path(NIGHT), SHAPE)
    with pytest.raises(StoreError, match=why) as refused:
        said(*words)
    assert "\n" not in str(refused.value)
    assert list(folder.iterdir()) == []


def test_a_store_that_is_none_is_left_out_with_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dict_store, "STORES", ({"dict": 1},))
    with pytest.raises(StoreError, match=f"^{NIGHT.replace('/', '//')}: no such store: only files"):
        opening.backend(NIGHT)
    said_of_it = capsys.readouterr().err
    assert "the plug-in 'dict' of tare-dict 1.0" in said_of_it
    assert "has a dict in STORES" in said_of_it
