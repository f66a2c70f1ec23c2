"""`tare sql`: the exports' tables as views over all files, and nothing else to be read."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import fake_campaign
from tare.cli.commands.app import app
from tare.errors import TareError
from tare.report.formats.campaign_sql import query, views
from tare.report.formats.columns import COLUMNS
from tare.report.formats.table_frames import whole
from tare.report.formats.tables import CampaignTable
from tare.store import create_store, read_store

SHAPE = fake_campaign.Shape(blocks=2, rounds=2, workloads=("sysbench-cpu", "startup"), telemetry=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two campaigns in a folder whose name has a quote."""
    folder = tmp_path_factory.mktemp("o'sql")
    paths = []
    for name in ("a", "b"):
        paths.append(folder / f"{name}.tare")
        record = fake_campaign.record(SHAPE).model_copy(update={"id": name * 8})
        with create_store(paths[-1], record) as store:
            fake_campaign.fill(store, SHAPE)
    return paths


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["sql", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_a_table_has_the_rows_of_all_files(files: list[Path]) -> None:
    counts = query(files, "select campaign, count(*) as n from samples group by all order by all")
    assert counts["campaign"].to_list() == ["a" * 8, "b" * 8]
    with read_store(files[0]) as store:
        assert counts["n"].to_list() == [whole(store, CampaignTable.SAMPLES).height] * 2


def test_every_table_can_be_asked_with_its_types(files: list[Path]) -> None:
    assert {name.replace("_", "-") for name in views()} == {table.value for table in COLUMNS}
    for name, table in views().items():
        answer = query(files[:1], f"FROM {name.upper()} LIMIT 1 -- a comment")
        assert answer.schema == {column.name: column.dtype() for column in COLUMNS[table]}, name


@pytest.mark.parametrize(
    "statement",
    [
        "select * from read_csv('/etc/passwd')",
        "from '/etc/passwd'",
        "select 1) to '/tmp/tare-was-here' (format csv); copy (select 1",
        "drop view samples",
        "install httpfs",
        "select * from nothing",
        "attach '/tmp/tare-was-here'",
        "set enable_external_access = true",
        "",
    ],
)
def test_what_is_no_query_of_these_tables_is_an_error(files: list[Path], statement: str) -> None:
    with pytest.raises(TareError, match="the query fails") as error:
        query(files[:1], statement)
    assert "\n" not in error.value.what
    assert "samples" in (error.value.fix or "")
    assert not Path("/tmp/tare-was-here").exists()


@pytest.mark.thorough
def test_answers_come_in_every_form(files: list[Path], tmp_path: Path) -> None:
    statement = "select platform, count(*) as n from trials group by all order by all limit 2; "
    assert run(files[0], statement).splitlines()[0] == "| platform | n |"
    rows = list(csv.DictReader(io.StringIO(run(files[0], statement, "--format", "csv"))))
    lines = [json.loads(line) for line in run(files[0], statement, "--format", "jsonl").splitlines()]
    assert [{name: str(value) for name, value in line.items()} for line in lines] == rows
    assert r"\begin{tabular}{lr}" in run(files[0], statement, "--format", "latex")
    run(files[0], statement, "--format", "parquet", "-o", tmp_path / "x.parquet")
    assert pl.read_parquet(tmp_path / "x.parquet").rows(named=True) == lines


def test_values_of_any_type_are_shown(files: list[Path]) -> None:
    statement = "select date '2026-01-02' as d, [1, 2] as l, null as n, 'a|b' as t, 1.5::decimal(4, 2) as e, true as b"
    assert run(files[0], statement).splitlines()[2] == r"| 2026-01-02 | \[1, 2\] | – | a\|b | 1.50 | yes |"


def test_rows_of_a_query_are_neither_folded_nor_measurements(files: list[Path]) -> None:
    for form in ("folded", "openmetrics", "influx"):
        done = CliRunner().invoke(app, ["sql", str(files[0]), "select 1", "--format", form])
        assert done.exit_code == 2
        assert f"'{form}' is not one of" in done.output


#: DuckDB does not look at an interrupt within a function.
ENDLESS = ["select count(*) from range(100000000000) a, range(100000000000) b where a.range * b.range = 7"]
ENDLESS += ["select levenshtein(repeat('a', 2000000), repeat('b', 2000000))"]


@pytest.mark.thorough
@pytest.mark.parametrize("statement", ENDLESS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_endless_query(files: list[Path], tmp_path: Path, statement: str, number: int) -> None:
    argv = [sys.executable, "-c", "from tare.cli import main; main()", "sql", str(files[0]), statement]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    children: list[int] = []
    try:
        while not (children := _children(process.pid)) or not _is_at_work(children[0]):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
    except BaseException:
        for pid in (*children, process.pid):  # they would go on beside all other tests
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    assert list(tmp_path.iterdir()) == []


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_at_work(pid: int) -> bool:
    """Whether it has used a second of processor time: its modules are loaded by then."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return int(user) + int(system) > 1.5 * os.sysconf("SC_CLK_TCK")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "statement",
    [
        "select * from duckdb_settings()",
        "select interval 1 day as i",
        "select 'infinity'::date as d",
        "select '-infinity'::timestamptz as t",
    ],
)
@pytest.mark.parametrize("form", ["markdown", "jsonl"])
def test_rows_that_cannot_be_shown_are_an_error(files: list[Path], statement: str, form: str) -> None:
    with pytest.raises(TareError, match="the rows cannot be") as error:
        run(files[0], statement, "--format", form)
    assert "\n" not in error.value.what
    assert "::varchar" in (error.value.fix or "")


def test_nested_rows_are_no_csv(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(TareError, match="the rows cannot be written as csv"):
        run(files[0], "select [1, 2] as l", "--format", "csv", "-o", tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("select 1",), "the campaigns or the query are missing"),
        (("no.tare", "select 1"), "no.tare"),
        (("{}", "select 1", "--format", "parquet"), "Parquet is written to a file"),
        (("{}", "select 1", "-o", "{}"), "never overwritten"),
    ],
)
def test_what_does_not_fit_is_said_first(files: list[Path], arguments: tuple[str, ...], what: str) -> None:
    with pytest.raises(TareError) as error:
        run(*(argument.format(files[0]) for argument in arguments))
    assert what in error.value.what


#: The query's own process with 9 files: those of Python, and no room for a campaign's tables.
FEW_FILES = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))
from tare.report.formats import sql_child
sys.exit(sql_child.main(sys.stdin.buffer.read()))
"""


def test_more_campaigns_than_files_may_be_open_is_a_limit_and_no_mistake_in_the_query(files: list[Path]) -> None:
    typed = ["tare", "sql", *map(str, files), "select count(*) from samples"]
    script = (
        f"import sys; from tare.cli import main, sql; sql._CHILD = ('-c', {FEW_FILES!r}); sys.argv = {typed!r}; main()"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "open files (ulimit -n)" in done.stderr
