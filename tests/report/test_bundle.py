"""`tare bundle`: what is in it, and that whatever was changed of it is found."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import fake_campaign
from tare.cli.commands.app import app
from tare.cli.exit_codes import ExitCode
from tare.errors import TareError
from tare.report.formats import bundled
from tare.report.formats.bundled import verify
from tare.report.formats.crate import CAMPAIGN, CRATE, MANIFEST, REPORT, write

SHAPE = fake_campaign.Shape(blocks=2, rounds=2, workloads=("sysbench-cpu", "startup"), telemetry=True)
Change = Callable[[dict[str, bytes]], object]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    file = fake_campaign.write(folder / "night.tare", SHAPE)
    with (folder / "night.zip").open("wb") as out:
        write(file, out)
    return folder / "night.zip"


def contents(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(place: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return place


def test_a_bundle_has_the_campaign_and_what_was_made_of_it(bundle: Path) -> None:
    members = contents(bundle)
    assert {CAMPAIGN, REPORT, CRATE, MANIFEST, "report.html", "citation.bib", "method.txt", "environment.json"} <= set(
        members
    )
    assert {"tables/samples.parquet", "tables/results.csv", "tables/overheads.tex"} <= set(members)
    assert "tables/footprints.parquet" not in members, "a table without rows"
    assert members[CAMPAIGN] == bundle.with_name("night.tare").read_bytes()
    environment = json.loads(members["environment.json"])
    assert environment["measured"]["host"]["kernel"] == "6.1.0-fake"
    assert {"numpy", "polars"} <= set(environment["bundled"]["packages"])


def test_it_is_a_crate_that_describes_every_file(bundle: Path) -> None:
    members = contents(bundle)
    crate = json.loads(members[CRATE])
    assert crate["@context"] == "https://w3id.org/ro/crate/1.1/context"
    graph = {entity["@id"]: entity for entity in crate["@graph"]}
    assert graph[CRATE]["about"] == {"@id": "./"}
    root = graph["./"]
    assert {"name", "description", "datePublished", "license"} <= set(root)
    assert {part["@id"] for part in root["hasPart"]} == set(members) - {CRATE, MANIFEST}
    for part in root["hasPart"]:
        data = members[part["@id"]]
        entity = graph[part["@id"]]
        assert (entity["@type"], entity["contentSize"]) == ("File", str(len(data)))
        assert entity["sha256"] == hashlib.sha256(data).hexdigest()
    referred = [value["@id"] for entity in graph.values() for value in entity.values() if isinstance(value, dict)]
    assert {name for name in referred if not name.startswith("https://")} <= set(graph)


def test_authors_publisher_and_licence_are_named_and_it_still_verifies(bundle: Path, tmp_path: Path) -> None:
    place = tmp_path / "named.zip"
    given = ("--author", "A. Author", "--author", "B. Other", "--publisher", "A House", "--license", "CC-BY-4.0")
    campaign = str(bundle.with_name("night.tare"))
    done = CliRunner().invoke(app, ["bundle", campaign, "-o", str(place), *given])
    assert done.exit_code == 0, done.output
    graph = {entity["@id"]: entity for entity in json.loads(contents(place)[CRATE])["@graph"]}
    root = graph["./"]
    assert [graph[author["@id"]]["name"] for author in root["author"]] == ["A. Author", "B. Other"]
    assert graph[root["publisher"]["@id"]]["name"] == "A House"
    assert graph[root["license"]["@id"]]["name"] == "CC-BY-4.0"
    assert CliRunner().invoke(app, ["bundle", "--verify", str(place)]).exit_code == 0


def test_the_checksums_are_those_that_sha256sum_reads(bundle: Path) -> None:
    members = contents(bundle)
    lines = members[MANIFEST].decode().splitlines()
    assert dict(line.split("  ")[::-1] for line in lines) == {
        name: hashlib.sha256(data).hexdigest() for name, data in members.items() if name != MANIFEST
    }


def test_the_same_campaign_gives_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    with (tmp_path / "again.zip").open("wb") as out:
        write(bundle.with_name("night.tare"), out)
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()


def test_a_whole_bundle_is_verified_elsewhere(bundle: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "from a colleague.zip"
    shutil.copy(bundle, elsewhere)
    done = CliRunner().invoke(app, ["bundle", "--verify", str(elsewhere)])
    assert done.exit_code == ExitCode.DONE, done.output
    assert "computed again are the same" in done.output
    result = verify(elsewhere)
    assert result.problems == ()
    assert result.recomputed > 50


def signed(members: dict[str, bytes]) -> None:
    """Make manifest and crate fit what was changed, as who forges a figure would."""
    graph = json.loads(members[CRATE])
    for entity in graph["@graph"]:
        if entity["@id"] in members and "sha256" in entity:
            entity["sha256"] = hashlib.sha256(members[entity["@id"]]).hexdigest()
    members[CRATE] = json.dumps(graph).encode()
    lines = (f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in members.items() if name != MANIFEST)
    members[MANIFEST] = "".join(lines).encode()


def _forged(members: dict[str, bytes]) -> None:
    report = json.loads(members[REPORT])
    report["results"][0]["platforms"][1]["op_percent"] += 0.5
    members[REPORT] = json.dumps(report).encode()
    signed(members)


def _shapeless(members: dict[str, bytes]) -> None:
    report = json.loads(members[REPORT])
    members[REPORT] = json.dumps(report | {"results": [{"workload": "primes"}]}).encode()
    signed(members)


def _no_objects(members: dict[str, bytes]) -> None:
    members[REPORT] = json.dumps(json.loads(members[REPORT]) | {"results": [3]}).encode()
    signed(members)


def _endless(members: dict[str, bytes]) -> None:
    report = json.loads(members[REPORT])
    report["results"][0]["platforms"][1]["op_percent"] = 10**400
    members[REPORT] = json.dumps(report).encode()
    signed(members)


def _other_campaign(members: dict[str, bytes]) -> None:
    members[REPORT] = json.dumps(json.loads(members[REPORT]) | {"id": "another"}).encode()
    signed(members)


def _no_campaign(members: dict[str, bytes]) -> None:
    members[CAMPAIGN] = b"nothing"
    signed(members)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda members: members.update({"method.txt": b"more"}), "method.txt was changed"),
        (lambda members: members.pop("method.txt"), "method.txt is missing"),
        (lambda members: members.update({"../evil": b""}), "../evil is not in the manifest"),
        (lambda members: members.update({"x\n::error::y": b""}), "x?::error::y is not in the manifest"),
        (lambda members: members.update({CRATE: b"[]"}), "ro-crate-metadata.json is no RO-Crate"),
        (_forged, "op_percent is "),
        (_other_campaign, "of another campaign"),
        (_no_campaign, "cannot be computed again"),
        (_shapeless, "report.json is no report of tare's: KeyError"),
        (_no_objects, "report.json is no report of tare's: TypeError"),
        (_endless, "report.json is no report of tare's: OverflowError"),
    ],
)
def test_whatever_was_changed_is_found(bundle: Path, tmp_path: Path, change: Change, problem: str) -> None:
    members = contents(bundle)
    change(members)
    result = verify(packed(tmp_path / "x.zip", members))
    assert any(problem in line for line in result.problems), result.problems
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.zip"]


@pytest.mark.parametrize("name", [CAMPAIGN, MANIFEST, CRATE, REPORT])
def test_without_its_parts_it_is_no_bundle(bundle: Path, tmp_path: Path, name: str) -> None:
    members = contents(bundle)
    del members[name]
    with pytest.raises(TareError, match=f"it has no {name}"):
        verify(packed(tmp_path / "x.zip", members))


def test_what_is_larger_than_any_campaign_is_not_read(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundled, "_MAX_TEXT_BYTES", 100)
    with pytest.raises(TareError, match="larger than any campaign's"):
        verify(bundle)
    monkeypatch.setattr(bundled, "_MAX_BYTES", 100)
    with pytest.raises(TareError, match="more than any campaign's bundle"):
        verify(bundle)


@pytest.mark.parametrize("name", [CRATE, "environment.json", MANIFEST])
def test_a_description_that_would_fill_the_memory_is_not_read(bundle: Path, tmp_path: Path, name: str) -> None:
    members = contents(bundle)
    members[name] = b"[" + b"[]," * (20 << 20) + b"0]"
    with pytest.raises(TareError, match=f"its {name} is larger than any campaign's"):
        verify(packed(tmp_path / "x.zip", members))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[" + b"[]," * (12 << 20) + b"0]", "far longer than the one that is computed again"),
        (b"[" + b"[]," * (1 << 18) + b"0]", "far more values than the one that is computed again"),
        (b"[" * 5000, "RecursionError"),
    ],
)
def test_a_report_that_would_fill_the_memory_is_not_read(
    bundle: Path, tmp_path: Path, text: bytes, problem: str
) -> None:
    members = contents(bundle)
    members[REPORT] = text
    signed(members)
    result = verify(packed(tmp_path / "x.zip", members))
    assert any(problem in line for line in result.problems), result.problems


def test_zeros_that_unpack_to_gigabytes_are_not_unpacked(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents(bundle).items():
            if name != CAMPAIGN:
                archive.writestr(name, data)
        with archive.open(CAMPAIGN, "w") as member:
            for _ in range(200):
                member.write(bytes(1 << 20))
    assert (tmp_path / "x.zip").stat().st_size < 1 << 20
    with pytest.raises(TareError, match=r"it unpacks to \d+ MiB, which is more than"):
        verify(tmp_path / "x.zip")


@pytest.mark.parametrize("kind", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_bundle_that_is_compressed_in_another_way_is_refused(bundle: Path, tmp_path: Path, kind: int) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", kind) as archive:
        for name, data in contents(bundle).items():
            archive.writestr(name, data)
    with pytest.raises(TareError, match="compressed in another way"):
        verify(tmp_path / "x.zip")


def test_a_list_of_a_million_members_is_not_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for number in range(40_000):
            archive.writestr(zipfile.ZipInfo(f"{number:08}"), b"")
    with pytest.raises(TareError, match=r"its list of members has \d+ bytes"):
        verify(tmp_path / "x.zip")


def test_a_campaign_that_there_is_no_room_for_is_said(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=10))
    with pytest.raises(TareError, match="has room for 0 MiB") as refused:
        verify(bundle)
    assert "TMPDIR" in str(refused.value.fix)


@pytest.mark.thorough
def test_whichever_bytes_are_damaged_it_is_one_line_or_found(bundle: Path, tmp_path: Path) -> None:
    data = bundle.read_bytes()
    random = Random(7)
    tail = range(len(data) - 3000, len(data))  # the directory, which all else is found by
    for number in range(400):
        damaged = bytearray(data)
        for _ in range(random.randint(1, 4)):
            place = random.choice(tail) if number % 2 else random.randrange(len(data))
            damaged[place] = random.randrange(256)
        (tmp_path / "x.zip").write_bytes(damaged)
        with contextlib.suppress(TareError):
            verify(tmp_path / "x.zip")


@pytest.mark.parametrize("cut", [0, 10, 0.5, 0.99])
def test_a_torn_bundle_is_one_line(bundle: Path, tmp_path: Path, cut: float) -> None:
    data = bundle.read_bytes()
    torn = tmp_path / "torn.zip"
    torn.write_bytes(data[: int(cut if cut >= 1 else cut * len(data))])
    with pytest.raises(TareError, match="is no bundle that can be read"):
        verify(torn)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("{file}",), "whether to write a bundle or to check one"),
        (("--verify", "{file}", "-o", "x.zip"), "whether to write a bundle or to check one"),
        (("--verify", "{file}"), "is no bundle that can be read"),
        (("{file}", "-o", "{file}"), "never overwritten"),
    ],
)
def test_what_does_not_fit_is_said(bundle: Path, arguments: tuple[str, ...], what: str) -> None:
    file = bundle.with_name("night.tare")
    done = CliRunner().invoke(app, ["bundle", *(argument.format(file=file) for argument in arguments)])
    assert isinstance(done.exception, TareError)
    assert what in done.exception.what
