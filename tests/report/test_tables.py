"""Every table of an export has the columns that are documented, with types, units and meanings, in each format."""

from __future__ import annotations

import base64
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import fake_campaign
import fake_footprints
import fake_surfaces
from tare.cli.commands.app import app
from tare.errors import TareError
from tare.report.formats import extras
from tare.report.formats import table_export as export_module
from tare.report.formats.columns import COLUMNS
from tare.report.formats.documents import Document, Span, of_frame, to_latex, to_markdown
from tare.report.formats.table_export import export, export_parquet
from tare.report.formats.table_frames import frames, whole
from tare.report.formats.tables import CampaignTable, Format
from tare.report.parts.escaping import latex, markdown
from tare.store import Store, create_store, read_store

#: What each is in LaTeX, Markdown, XML or a spreadsheet.
HOSTILE = (
    r"\input{/etc/passwd}\write18{id}",
    "a & b \\\\ \\hline % c",
    "$x_1^2$ {#} ~ -- --- \"q\" 'a' `b`",
    "| a | <script>alert(1)</script> [l](u) *b* `c`",
    "\x1b[31m\x00\ufffe\ud800".encode("utf-8", "surrogatepass").decode(errors="replace"),
    "=cmd|' /C calc'!A0",
    "a\nb\r\nc",
    "\u202eevil\u202c 🦀 ümlaut",
)
#: The only commands that a table of ours has.
_COMMANDS = {
    "begingroup", "sisetup", "begin", "toprule", "midrule", "bottomrule", "end", "endgroup", "num", "char", "textpm",
    "textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar", "textasciigrave",
    "footnotesize", "scriptsize", "setlength", "tabcolsep", "linewidth",
    "textbraceleft", "textbraceright", "textminus", "texttimes", "textmu", "textendash", "ldots", "textrightarrow",
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A campaign with a row in every table."""
    shape = fake_campaign.Shape(blocks=2, rounds=2, telemetry=True)
    path = tmp_path_factory.mktemp("tables") / "all.tare"
    with create_store(path, fake_campaign.record(shape)) as whole_store:
        fake_campaign.fill(whole_store, shape)
        for footprint in (
            fake_footprints.footprint({"read": 3}),
            fake_footprints.footprint({"write": 1}, workload=None),
        ):
            whole_store.add_footprint(footprint)
        for surface in (fake_surfaces.surface(),):
            whole_store.add_surface(surface)
    with read_store(path) as opened:
        yield opened


@pytest.mark.parametrize("table", COLUMNS)
def test_a_table_has_the_columns_that_are_documented(store: Store, table: CampaignTable) -> None:
    documented = [column.name for column in COLUMNS[table]]
    pieces = list(frames(store, table))
    assert sum(piece.height for piece in pieces) > 0
    assert all(piece.columns == documented for piece in pieces)
    assert whole(store, table).schema == {column.name: column.dtype() for column in COLUMNS[table]}
    assert all(column.meaning for column in COLUMNS[table])


def test_every_table_is_documented_but_those_without_columns_of_their_own() -> None:
    assert set(CampaignTable) - set(COLUMNS) == {CampaignTable.OVERHEADS, CampaignTable.STACKS}


@pytest.mark.thorough
@pytest.mark.parametrize("table", [CampaignTable.SAMPLES, CampaignTable.RESULTS, CampaignTable.HOST])
def test_parquet_has_the_same_rows_and_says_what_each_column_is(
    store: Store, tmp_path: Path, table: CampaignTable
) -> None:
    file = tmp_path / "t.parquet"
    assert export_parquet(store, table, file) == whole(store, table).height
    assert pl.read_parquet(file).equals(whole(store, table))
    facts = pl.read_parquet_metadata(file)
    assert (facts["tare.schema"], facts["tare.table"]) == ("tare.export/1", table.value)
    assert facts["tare.campaign"] == store.record.id
    fields = base64.b64decode(facts["ARROW:schema"])
    for column in COLUMNS[table]:
        assert column.meaning.encode() in fields
        assert column.unit.encode() in fields


def test_numbers_that_are_none_stay_such_in_parquet(store: Store, tmp_path: Path) -> None:
    frame = whole(store, CampaignTable.SAMPLES).head(2).with_columns(value=pl.Series([float("nan"), float("inf")]))
    file = tmp_path / "t.parquet"
    export_module.parquet.write(frame, CampaignTable.SAMPLES, file, campaign="c")
    assert str(pl.read_parquet(file)["value"].to_list()) == "[nan, inf]"


def test_a_missing_extra_is_named_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TareError, match="needs tare_no_such_module, which is not installed") as error:
        extras.load("tare_no_such_module.part", "Parquet")
    assert error.value.fix == f"{sys.executable} -m pip install tare_no_such_module"


def test_a_package_is_asked_for_in_the_versions_that_tare_needs() -> None:
    assert extras.required("duckdb") == "duckdb>=1.4"
    assert extras.required("nosuch") == "nosuch"


def grammar(text: str) -> list[list[str]]:
    """The cells of a table in LaTeX; fails where it is not what TeX would take for one, or has another command."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    assert all(line.isprintable() for line in lines)
    body = "\n".join(lines)
    assert set(re.findall(r"\\([a-zA-Z]+)", body)) <= _COMMANDS
    bare = re.sub(r"\\[\\&%$#_{}]", "", body).replace("]~", "]").replace("}~", "}")  # before a unit
    depth = 0
    for char in bare:
        depth += (char == "{") - (char == "}")
        assert depth >= 0
        assert char not in "~^#$_"
    assert depth == 0
    start, end = lines.index(r"\toprule"), lines.index(r"\bottomrule")
    rows = [line for line in lines[start + 1 : end] if line != r"\midrule"]
    rows = [line.removesuffix("[2pt]") for line in rows]  # the space after a row of two lines
    assert all(line.endswith(r" \\") for line in rows)
    return [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in rows]


def test_a_table_in_latex_is_one_whatever_is_in_it() -> None:
    rows = [[text, number, None, Span("-1.5", ("-2", "+1"), "ms")] for number, text in enumerate(HOSTILE)]
    document = Document(HOSTILE[:4], HOSTILE[4:], [False, True, True, True], rows, HOSTILE)
    text = to_latex(document)
    cells = grammar(text)
    assert {len(row) for row in cells} == {4}
    assert len(cells) == 2 + len(HOSTILE)
    assert cells[2][3] == r"\num{-1.5} [\num{-2}, \num{+1}]~ms"
    comments = [line for line in text.splitlines() if line.startswith("%")]
    assert len(comments) == 1 + len(HOSTILE)


def test_a_table_in_markdown_is_one_whatever_is_in_it() -> None:
    rows = [[text, 1.25, True, Span("-1.5", ("-2", "+1"))] for text in HOSTILE]
    text = to_markdown(Document(HOSTILE[:4], HOSTILE[4:], [False, True, False, True], rows, HOSTILE))
    lines = text.split("\n\n")[0].splitlines()
    assert len(lines) == 2 + len(HOSTILE)
    assert {len(re.findall(r"(?<!\\)\|", line.replace(r"\\", ""))) for line in lines} == {5}
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "−1.5 [−2, +1]" in lines[2]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"\write18{id}", r"\textbackslash{}write18\textbraceleft{}id\textbraceright{}"),
        ("100 % & more_of #1", r"100 \% \& more\_of \#1"),
        ("a -- b --- c", "a -{}- b -{}-{}- c"),
        ("4.2 µs ± 1", r"4.2 \textmu{}s \textpm{} 1"),
        ("größer 🦀", "größer ?"),
    ],
)
def test_text_for_latex(text: str, shown: str) -> None:
    assert latex(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(1.25, "1.25"), (-0.0, "0"), (1795413421.5, "1795413421.5"), (float("nan"), "nan"), (7, "7")]
)
def test_a_number_loses_nothing_that_matters(value: float, shown: str) -> None:
    text = to_markdown(Document(["n"], [""], [True], [[value]]))
    assert text.splitlines()[2] == f"| {shown} |"


def test_text_for_markdown_ends_no_cell() -> None:
    assert markdown("a | b\nc <b> &amp;") == r"a \| b c \<b\> &amp;amp;"


@pytest.mark.parametrize("table", COLUMNS)
def test_every_table_is_a_document(store: Store, table: CampaignTable) -> None:
    frame = whole(store, table).head(3)
    cells = grammar(to_latex(of_frame(frame, table)))
    assert {len(row) for row in cells} == {len(COLUMNS[table])}


def test_a_row_of_a_paper_takes_two_lines_and_no_more_than_the_columns_width() -> None:
    span = Span("-1.5", ("-2", "+1"), "ms", sure=True)
    rows = [[text, text, "1 s", span, "at most +6 %"] for text in HOSTILE]
    numeric = [False, False, True, True, True]
    document = Document(["workload", "metric", *HOSTILE[:3]], [""] * 5, numeric, rows, stacked=True)
    text = to_latex(document)
    assert r"\begin{adjustbox}{max width=\linewidth}" in text
    head, *body = grammar(text)
    assert {len(row) for row in (head, *body)} == {4}
    assert len(body) == 2 * len(HOSTILE)
    assert body[0][2] == r"\num{-1.5}~ms*"
    assert body[1][1:] == ["", r"{\scriptsize \num{-2} {\ldots} \num{+1}}", ""]


def test_the_table_of_a_paper(store: Store) -> None:
    out = io.StringIO()
    assert export(store, CampaignTable.OVERHEADS, Format.LATEX, out) > 0
    cells = grammar(out.getvalue())
    assert cells[0][:2] == ["workload", "native"]
    rows = {row[0]: row for row in cells[1:]}
    assert re.fullmatch(r"[\d,.]+ events/s", rows["sysbench-cpu"][1])
    assert any("~ms" in cell for cell in rows["startup"]), "of a short time what is added"
    assert f"campaign {store.record.id}" in out.getvalue()


def test_a_document_that_nobody_would_read_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_module, "MAX_DOCUMENT_ROWS", 10)
    with pytest.raises(TareError, match="and a document 10 at most"):
        export(store, CampaignTable.SAMPLES, Format.MARKDOWN, io.StringIO())


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--table", "overheads", "--format", "csv"), "overheads are a table for people"),
        (("--table", "results", "--format", "parquet"), "Parquet is written to a file"),
        (("--table", "results", "--format", "folded"), "stacks are exported folded"),
    ],
)
def test_what_does_not_fit_is_said(store: Store, arguments: tuple[str, ...], what: str) -> None:
    done = CliRunner().invoke(app, ["export", store.location, *arguments])
    assert isinstance(done.exception, TareError)
    assert what in done.exception.what


def test_a_hostile_output_is_text_in_each_format(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=1, rounds=1, workloads=("sysbench-cpu",), failing=None, unsupported=None)
    record = fake_campaign.record(shape)
    with create_store(tmp_path / "evil.tare", record) as evil:
        fake_campaign.fill(evil, shape)
    with read_store(tmp_path / "evil.tare") as evil:
        frame = whole(evil, CampaignTable.TRIALS)
    rows = (
        pl.concat([frame] * 2)
        .head(len(HOSTILE))
        .with_columns(reason=pl.Series(HOSTILE[: 2 * frame.height]).head(len(HOSTILE)))
    )
    assert {len(row) for row in grammar(to_latex(of_frame(rows, CampaignTable.TRIALS)))} == {
        len(COLUMNS[CampaignTable.TRIALS])
    }
    file = tmp_path / "t.parquet"
    export_module.parquet.write(rows, CampaignTable.TRIALS, file, campaign="c")
    assert pl.read_parquet(file)["reason"].to_list() == rows["reason"].to_list(), "data stay data"
