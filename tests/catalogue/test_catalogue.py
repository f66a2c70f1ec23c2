"""`tare store push` and what reads the catalogue, with a real PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import threading
from pathlib import Path

import hostile_files
import psycopg
import pytest
from typer.testing import CliRunner

import fake_campaign
from tare.catalogue import database as database_errors
from tare.catalogue.address import is_address, masked, parse
from tare.catalogue.database import MIGRATIONS, connected, migrate, newest
from tare.cli.commands.app import app
from tare.cli.push import push_files
from tare.errors import StoreError, TareError, UsageError
from tare.report.formats.columns import COLUMNS
from tare.report.formats.table_frames import whole
from tare.report.formats.tables import CampaignTable
from tare.store import create_store, open_store, read_store

DAYS = 12
#: In addresses that are refused.
PASSWORD = "correct-horse-8"


def write(path: Path, day: int = 0, times: float = 1.2, *, blocks: int = 3, host: dict | None = None) -> Path:
    shape = fake_campaign.Shape(
        blocks=blocks,
        rounds=2,
        seed=day,
        slowdown={"native": 1.0, "gvisor": times},
        workloads=("prime-slices",),
        failing=None,
        unsupported=None,
        stolen=False,
    )
    record = fake_campaign.record(shape)
    facts = {"created": record.created + day * 86_400, "host": record.host | (host or {})}
    with create_store(path, record.model_copy(update=facts)) as store:
        fake_campaign.fill(store, shape)
    return path


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(word) for word in arguments])
    if isinstance(done.exception, TareError):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


def rows(address: str, query: str) -> list[tuple]:
    with psycopg.connect(address) as connection:
        return connection.execute(query.encode()).fetchall()


COUNTS = """SELECT (SELECT count(*) FROM tare.campaign), (SELECT count(*) FROM tare.figure),
    (SELECT count(*) FROM tare.series), (SELECT count(*) FROM tare.fact), (SELECT count(*) FROM tare.platform)"""


def test_a_campaign_is_there_once_with_the_figures_of_an_export(database: str, tmp_path: Path) -> None:
    file = write(tmp_path / "web1.tare", host={"cpu": {"model": "Invented 9000", "microcode": "0x2"}})
    assert run("store", "push", file, database) == f"{file}: added\n"
    before = rows(database, COUNTS)
    assert run("store", "push", file, database) == f"{file}: there already\n"
    assert rows(database, COUNTS) == before
    with read_store(file) as store:
        exported = whole(store, CampaignTable.RESULTS)
    columns = ", ".join(exported.columns)
    assert sorted(rows(database, f"SELECT {columns} FROM tare.figure"), key=repr) == sorted(exported.rows(), key=repr)
    [(host, name, trials, work)] = rows(database, "SELECT host, file, trials, seconds FROM tare.campaign")
    assert (host, name, trials) == ("web1", "web1.tare", 9)
    assert work > 0
    assert ("microcode", "0x2") in rows(database, "SELECT name, value FROM tare.fact")


def test_the_tables_have_the_columns_of_an_export(database: str) -> None:
    """Another column of an export is a migration here."""
    with connected(parse(database), "test", read_only=False) as connection:
        migrate(connection, parse(database))
    there = rows(
        database,
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'tare' AND table_name = 'figure'"
        " ORDER BY ordinal_position",
    )
    assert [name for (name,) in there] == [column.name for column in COLUMNS[CampaignTable.RESULTS]]


def test_a_file_that_went_on_replaces_what_was_there_and_an_older_copy_does_not(database: str, tmp_path: Path) -> None:
    file = tmp_path / "web1.tare"
    shape = fake_campaign.Shape(blocks=3, rounds=1, workloads=("sysbench-cpu",), failing=None, unsupported=None)
    with create_store(file, fake_campaign.record(shape)) as store:
        blocks = list(fake_campaign._blocks(shape))
        for block, trials in blocks[:2]:
            store.plan_block(block, [trial.key for trial in trials])
            store.commit_trials(trials)
    shutil.copy(file, tmp_path / "early.tare")
    run("store", "push", file, database)
    with open_store(file) as store:
        for block, trials in blocks[2:]:
            store.plan_block(block, [trial.key for trial in trials])
            store.commit_trials(trials)
    assert "brought up to the file" in run("store", "push", file, database)
    assert rows(database, "SELECT blocks FROM tare.campaign") == [(3,)]
    assert {blocks for (blocks,) in rows(database, "SELECT cardinality(logs) FROM tare.series")} == {3}
    with pytest.raises(StoreError, match="1 of 1 campaigns were not pushed"):
        run("store", "push", tmp_path / "early.tare", database, "--host", "web1")
    assert rows(database, "SELECT blocks FROM tare.campaign") == [(3,)]


def test_one_odd_file_of_a_folder_ends_nothing(database: str, tmp_path: Path) -> None:
    write(tmp_path / "web1.tare")
    write(tmp_path / "web2.tare", 1)
    (tmp_path / "broken.tare").write_text("no campaign")
    done = CliRunner().invoke(app, ["store", "push", str(tmp_path), database, "--json"])
    data = json.loads(done.output)
    assert data["schema"] == "tare.push/1"
    assert [(entry["host"], entry.get("outcome")) for entry in data["campaigns"]] == [
        ("broken", None), ("web1", "added"), ("web2", "added")
    ]  # fmt: skip
    assert isinstance(done.exception, StoreError)
    assert rows(database, "SELECT name FROM tare.host ORDER BY name") == [("web1",), ("web2",)]


def test_a_campaign_belongs_to_one_host(database: str, tmp_path: Path) -> None:
    file = write(tmp_path / "web1.tare")
    run("store", "push", file, database)
    with pytest.raises(StoreError):
        run("store", "push", file, database, "--host", "web2")
    assert rows(database, "SELECT host FROM tare.campaign") == [("web1",)]


def test_pushes_at_once_make_one_catalogue(database: str, tmp_path: Path) -> None:
    files = [write(tmp_path / f"web{at}.tare", at) for at in range(3)]
    faults: list[TareError] = []

    def push(file: Path) -> None:
        try:
            push_files([file, files[0]], parse(database), None, as_json=False)
        except TareError as fault:
            faults.append(fault)

    threads = [threading.Thread(target=push, args=(file,)) for file in files for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert rows(database, "SELECT count(*) FROM tare.campaign") == [(3,)]


def test_the_history_of_a_host_is_that_of_its_files(database: str, tmp_path: Path) -> None:
    folder = tmp_path / "nights"
    folder.mkdir()
    for day in range(DAYS):
        write(folder / f"{day:02}.tare", day, 1.2 * (1.05 if day >= 6 else 1.0))
        run("store", "push", folder / f"{day:02}.tare", database, "--host", "web1")
    write(tmp_path / "web2.tare", 99)
    run("store", "push", tmp_path / "web2.tare", database)
    of_files = run("history", folder, "--json", code=1)
    assert json.loads(run("history", database, "--host", "web1", "--json", code=1)) == json.loads(of_files)
    of_files = run("history", folder, "--json", "--absolute", code=3)
    assert json.loads(run("history", database, "--host", "web1", "--json", "--absolute", code=3)) == json.loads(
        of_files
    )
    with pytest.raises(UsageError, match="several hosts") as error:
        run("history", database)
    assert error.value.fix == "--host with one of: web1, web2"
    with pytest.raises(UsageError, match="no host web3"):
        run("history", database, "--host", "web3")


def test_the_fleet_report_is_that_of_the_files(database: str, tmp_path: Path) -> None:
    for host in range(5):
        write(tmp_path / f"web{host}.tare", host + 1, 1.2 + host / 100)
    write(tmp_path / "old.tare", 0, 1.3)
    run("store", "push", tmp_path / "old.tare", database, "--host", "web0")
    (tmp_path / "old.tare").unlink()
    run("store", "push", tmp_path, database)
    ours, theirs = (json.loads(run("fleet", "report", place, "--json")) for place in (tmp_path, database))
    assert ours == theirs
    assert {figure["n_hosts"] for figure in ours["figures"]} == {5}


def test_what_the_catalogue_says_is_believed_no_more_than_a_file(database: str, tmp_path: Path) -> None:
    for host in range(4):
        write(tmp_path / f"web{host}.tare", host)
    run("store", "push", tmp_path, database)
    with psycopg.connect(database) as connection:
        connection.execute(b"UPDATE tare.campaign SET record = '{}' WHERE host = 'web0'")
        connection.execute(b"UPDATE tare.campaign SET record = repeat('x', 16777300) WHERE host = 'web2'")
        connection.execute(b"UPDATE tare.series SET logs = '{NaN,1}' WHERE campaign = "
                           b"(SELECT id FROM tare.campaign WHERE host = 'web1')")  # fmt: skip
    data = json.loads(run("fleet", "report", database, "--json"))
    assert [(entry["name"], entry["why"]) for entry in data["left_out"]] == [
        ("web0/web0.tare", "unreadable"), ("web2/web2.tare", "unreadable"), ("web1.tare", "too-few-blocks")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        "ALTER TABLE tare.campaign ALTER COLUMN file DROP NOT NULL; UPDATE tare.campaign SET file = NULL",
        "ALTER TABLE tare.campaign ALTER COLUMN record DROP NOT NULL; UPDATE tare.campaign SET record = NULL",
        "ALTER TABLE tare.campaign ALTER COLUMN boots DROP NOT NULL; UPDATE tare.campaign SET boots = NULL",
        "ALTER TABLE tare.campaign ALTER COLUMN record TYPE integer USING 5",
        "ALTER TABLE tare.campaign ALTER COLUMN file TYPE integer USING 5",
        "ALTER TABLE tare.campaign ALTER COLUMN boots TYPE integer USING 5",
        "ALTER TABLE tare.series ALTER COLUMN mean DROP NOT NULL; UPDATE tare.series SET mean = NULL",
        "ALTER TABLE tare.series ALTER COLUMN logs TYPE text USING 'x'",
        "UPDATE tare.series SET logs = '{{1,2},{3,4}}'",
        "ALTER TABLE tare.schema_version ALTER COLUMN number TYPE text USING 'x'",
    ],
)
def test_tables_of_other_types_are_one_line_or_left_out(changed: str, database: str, tmp_path: Path) -> None:
    file = write(tmp_path / "web1.tare")
    run("store", "push", file, database)
    with psycopg.connect(database) as connection:
        connection.execute(changed.encode())
    for words in (("history",), ("fleet", "report"), ("store", "push", file)):
        done = CliRunner().invoke(app, [*map(str, words), database])
        assert done.exception is None or isinstance(done.exception, TareError | SystemExit), (words, done.exception)


def test_a_reason_without_end_is_masked_in_no_time() -> None:
    address = parse("postgresql://tare@127.0.0.1/x")
    reason = database_errors._reason(address, ValueError("a://a:" * 500_000))
    assert len(reason) == database_errors._MAX_REASON


def test_a_superuser_runs_no_trigger_of_another_roles(database: str, tmp_path: Path) -> None:
    file = write(tmp_path / "web1.tare")
    with psycopg.connect(database) as connection:
        connection.execute(b"DROP ROLE IF EXISTS mallory")
        connection.execute(b"CREATE ROLE mallory LOGIN")
        connection.execute(b"DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO mallory', current_database());"
                           b" END $$")  # fmt: skip
    theirs = database.replace("//tare@", "//mallory@")
    run("store", "push", file, theirs)
    with psycopg.connect(theirs) as connection:
        connection.execute(b"CREATE FUNCTION tare.trap() RETURNS trigger LANGUAGE plpgsql AS"
                           b" $$ BEGIN EXECUTE 'ALTER ROLE mallory SUPERUSER'; RETURN NEW; END $$")  # fmt: skip
        connection.execute(b"CREATE TRIGGER trap BEFORE INSERT ON tare.campaign"
                           b" FOR EACH ROW EXECUTE FUNCTION tare.trap()")  # fmt: skip
    for words in (("store", "push", write(tmp_path / "web2.tare", 2)), ("history",), ("fleet", "report")):
        with pytest.raises(StoreError, match="mallory's, and its triggers would run as a superuser"):
            run(*words, database)
    assert "1 campaign" in run("history", theirs, code=3)
    with psycopg.connect(database) as connection:
        [(raised,)] = connection.execute(b"SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'").fetchall()
        connection.execute(b"DROP OWNED BY mallory CASCADE")
        connection.execute(b"DROP ROLE mallory")
    assert not raised


@pytest.mark.thorough
def test_hostile_files_are_pushed_or_refused_in_a_line(database: str, tmp_path: Path) -> None:
    for name, make in hostile_files.MAKERS.items():
        make(tmp_path / f"{name}.tare")
    write(tmp_path / "web1.tare")
    done = CliRunner().invoke(app, ["store", "push", str(tmp_path), database, "--json"])
    assert isinstance(done.exception, StoreError)
    outcomes = json.loads(done.output)["campaigns"]
    assert len(outcomes) == len(hostile_files.MAKERS) + 1
    assert outcomes[-1]["outcome"] == "added"
    assert not [entry for entry in outcomes if "\n" in entry.get("error", "") or "\x1b" in entry.get("error", "")]
    pushed = {entry["host"] for entry in outcomes if "outcome" in entry}
    assert {host for (host,) in rows(database, "SELECT host FROM tare.campaign")} == pushed
    assert not Path(hostile_files.TRAP).exists()


# --- tables of other versions ----------------------------------------------------------------------------------


def test_tables_are_brought_up_one_step_after_the_other_or_not_at_all(database: str, tmp_path: Path) -> None:
    address = parse(database)
    shutil.copytree(MIGRATIONS, tmp_path / "m")
    (tmp_path / "m" / f"{newest() + 1:04}.sql").write_text("ALTER TABLE tare.host ADD COLUMN rack text;")
    with connected(address, "test", read_only=False) as connection:
        migrate(connection, address)
    with connected(address, "test", read_only=False) as connection:
        migrate(connection, address, tmp_path / "m")
        migrate(connection, address, tmp_path / "m")
    assert rows(database, "SELECT number FROM tare.schema_version ORDER BY number") == [
        (number,) for number in range(1, newest() + 2)
    ]
    (tmp_path / "m" / f"{newest() + 2:04}.sql").write_text("CREATE TABLE tare.half (); ALTER TABLE nowhere ADD x text;")
    with pytest.raises(StoreError), connected(address, "test", read_only=False) as connection:
        migrate(connection, address, tmp_path / "m")
    assert rows(database, "SELECT to_regclass('tare.half')") == [(None,)]
    file = write(tmp_path / "web1.tare")
    for words in (["store", "push", file, database], ["history", database]):
        with pytest.raises(StoreError, match="the catalogue of a newer tare"):
            run(*words)


@pytest.mark.parametrize("words", [["history"], ["fleet", "report"]])
def test_a_database_without_a_catalogue_is_named(database: str, words: list[str]) -> None:
    with pytest.raises(StoreError, match="has no catalogue of tare's") as error:
        run(*words, database)
    assert "tare store push" in str(error.value.fix)


def test_a_reader_without_the_right_to_write_reads(database: str, tmp_path: Path) -> None:
    run("store", "push", write(tmp_path / "web1.tare"), database)
    with psycopg.connect(database) as connection:
        connection.execute(b"CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA tare TO reader;"
                           b"GRANT SELECT ON ALL TABLES IN SCHEMA tare TO reader")  # fmt: skip
    reader = database.replace("tare@", "reader@")
    assert "1 host: overheads" in run("fleet", "report", reader)
    with pytest.raises(StoreError, match="permission denied"):
        run("store", "push", write(tmp_path / "web2.tare", 2), reader)


# --- passwords -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://tare:{PASSWORD}@127.0.0.1/x",
        f"postgresql://tare@127.0.0.1/x?password={PASSWORD}",
        f"postgres://tare@127.0.0.1/x?sslmode=prefer&PASSWORD={PASSWORD}",
        f"postgresql://:{PASSWORD}@/x",
        f"postgresql://tare:{PASSWORD}@[::1/x",
        f"PostgreSQL://tare:{PASSWORD}@127.0.0.1/x",
        f"postgresql://tare:a/{PASSWORD}@127.0.0.1/x",
        f"postgresql://tare:a@{PASSWORD}@127.0.0.1/x",
        f"postgresql://tare@127.0.0.1/x?p%61ssword={PASSWORD}",
    ],
)
def test_an_address_with_a_password_is_refused_without_showing_it(url: str, tmp_path: Path) -> None:
    assert is_address(url)
    for words in (["store", "push", write(tmp_path / "web1.tare"), url], ["history", url], ["fleet", "report", url]):
        with pytest.raises(UsageError) as error:
            run(*words)
        assert PASSWORD not in str(error.value)
        (tmp_path / "web1.tare").unlink(missing_ok=True)
    assert PASSWORD not in masked(url)


def test_what_is_no_address_is_refused() -> None:
    for text in ("nights", "mysql://x/y", "postgresql:/x", ""):
        assert not is_address(text)
        with pytest.raises(UsageError):
            parse(text)


def test_the_password_comes_from_the_environment_or_a_file_and_is_nowhere_else(
    server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = server.new()
    by_password = server.address(name, by_password=True)
    file = write(tmp_path / "web1.tare")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(StoreError) as error:
        run("store", "push", file, by_password)
    assert "PGPASSFILE or PGPASSWORD" in str(error.value.fix)
    monkeypatch.setenv("PGPASSWORD", f"{server.password}-wrong")
    with pytest.raises(StoreError) as error:
        run("store", "push", file, by_password)
    assert server.password not in str(error.value)
    monkeypatch.setenv("PGPASSWORD", server.password)
    printed = [run("store", "push", file, by_password)]
    monkeypatch.delenv("PGPASSWORD")
    secret = tmp_path / "pass"
    secret.write_text(f"127.0.0.1:{server.port}:*:tare:{server.password}\n")
    secret.chmod(stat.S_IRUSR | stat.S_IWUSR)
    monkeypatch.setenv("PGPASSFILE", str(secret))
    page = tmp_path / "fleet.html"
    printed += [run("store", "push", file, by_password), run("fleet", "report", by_password, "--html", page)]
    printed += [page.read_text(), (server.folder / "log").read_text(), *_stored(server.address(name))]
    assert not [text for text in printed if server.password in text]


def _stored(address: str) -> list[str]:
    return [repr(rows(address, f"SELECT * FROM tare.{table}")) for table in ("campaign", "fact", "figure")]


def test_a_database_that_does_not_answer_is_an_error_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as error:
        run("store", "push", write(tmp_path / "web1.tare"), f"postgresql://tare@/x?host={tmp_path}")
    assert re.search(r"postgresql://tare@/x\?host=.*: connection", error.value.what)
    assert "psql postgresql://" in str(error.value.fix)
    assert "\n" not in str(error.value)


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match="tare store push needs psycopg") as error:
        run("store", "push", write(tmp_path / "web1.tare"), "postgresql://tare@/x")
    assert "psycopg[binary]>=3.2" in str(error.value.fix)
    assert os.sep in str(error.value.fix)
