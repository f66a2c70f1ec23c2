"""The report in a terminal: tables with the noise floor in every row, cautions, failures and left-out platforms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tare.analysis.answers import AnswerState
from tare.analysis.quality.findings import FindingKind
from tare.analysis.verdicts import REFUSED, VerdictKind
from tare.model import SHOWN_COSTS, Design, Direction, Family, Status
from tare.report.campaign.cautions import turned, widened
from tare.report.campaign.cells import Cell, baseline_cell, cell
from tare.report.campaign.choose import Requirements, against, by_cost, by_use, weights_of
from tare.report.campaign.curve_views import render_curves
from tare.report.campaign.glance_views import glance
from tare.report.campaign.heat import Heat, HeatCell, heat
from tare.report.campaign.use_views import FOOTPRINT_MIB, START_MS, answerable, measured, unweighed
from tare.report.model import Report, ResultReport
from tare.report.section import Place, Screen, Section, alone, of_report
from tare.report.sentences import captions, dimensions, use_words
from tare.report.sentences import glance_words as glances
from tare.report.sentences.captions import SIDE_BY_SIDE, blocks_text, newer_note
from tare.report.sentences.host import (
    age_note,
    client_text,
    cpus_note,
    daemons_note,
    layout_note,
    priorities_note,
    rights_note,
    tracking_note,
    versions_text,
)
from tare.report.sentences.notes import caution_counts, unchanged_note, wide_floors_count, wide_floors_note
from tare.report.sentences.numbers import EMPTY, percent, when
from tare.report.sentences.signs import MARKS, MEANINGS, Open, Sign, how_to_read, sign_of, together, unsure_note
from tare.report.sentences.use_words import UserUse
from tare.safe_text import clean

STYLES: Mapping[Sign, str] = {
    VerdictKind.BASELINE: "",
    VerdictKind.SLOWER: "bold red",
    VerdictKind.FASTER: "bold blue",
    Open.SURELY_WORSE: "red",
    Open.SURELY_BETTER: "blue",
    VerdictKind.EQUIVALENT: "green",
    VerdictKind.TYPICAL: "green",
    Open.BOUNDED: "",
    VerdictKind.INCONCLUSIVE: "yellow",
    VerdictKind.INVALID: "bold magenta",
    VerdictKind.NO_DATA: "dim",
}

_HEAT_STYLES: Mapping[AnswerState, str] = {AnswerState.WORSE: "bold red", AnswerState.BETTER: "bold blue"}

#: Families of workloads that a dimension of the answer is of, or a section of their own.
_ANSWERED = frozenset(Family) - {Family.DENSITY}
#: Number of cautions beside an answer.
_CAUTIONS = 3
#: Characters between two columns of the table.
_PADDING = 2


def render(report: Report, *, width: int = 100, every_metric: bool = False, cautions: bool = False) -> Group:
    """The whole report for a console of this width in characters.

    ``every_metric``: not only headlines, and what CPU time platform and host spend. ``cautions``: each of them, and not
    their number.
    """
    results = [r for r in report.results if every_metric or r.headline or r.metric in SHOWN_COSTS]
    parts: list[RenderableType] = [
        *_missed(report),
        _title(report),
        *_answers(report, width),
        *_sections(report, Screen(width), Place.ANSWER),
    ]
    if alone(report) is None:
        names = [report.baseline, *(platform.name for platform in report.platforms if platform.name != report.baseline)]
        parts += [*_tables(names, results, width), _legend(report, results)]
    parts += [
        *render_curves(report.curves),
        *_sections(report, Screen(width), Place.TOP, Place.FIGURES),
        *_sections(report, Screen(width), Place.HEADLINES),
        *_sections(report, Screen(width), Place.LAST),
        *_newer(report),
        *(_text(f"from {package}: {', '.join(names)}") for package, names in report.plugins.items()),
        *(_cautions(report, results) if cautions else _counted(report, results)),
        *_daemons(report),
        *_unfair(report),
        *_failures(report),
        *_left_out(report),
        *_tuning(report),
    ]
    return Group(*parts)


def render_glance(report: Report, *, width: int = 100, picture: bool = True) -> Group:
    """The answer on one screen: what it is in sentences, the table with its picture, and what it is to be read with.

    ``picture``: whether to draw beside the table, which is for eyes and not for programs.

    What has no answer for a newcomer is shown as `render` does: footprints, surfaces, a study's figures, curves, and
    workloads of no dimension.
    """
    shown = heat(report)
    for section, model in of_report(report):
        if section.workloads and section.workloads >= {result.workload for result in report.results}:
            return _of_section(report, section, model, Screen(width, picture))
    if not (shown.rows and shown.columns):
        return render(report, width=width)
    apart = [result for result in report.results if result.headline and result.family not in _ANSWERED]
    names = [report.baseline, *(platform.name for platform in report.platforms if platform.name != report.baseline)]
    parts: list[RenderableType] = [
        *(_tables(names, apart, width) if apart else ()),
        *_sections(report, Screen(width), Place.ANSWER),
        *render_curves(report.curves),
        *_sections(report, Screen(width), Place.TOP, Place.FIGURES),
        *_sections(report, Screen(width), Place.HEADLINES),
        *_sections(report, Screen(width), Place.LAST),
        *_missed(report),
        _title(report),
        Text(),
        *(_text(sentence, "bold") for sentence in _answer_sentences(report)),
        Text(),
        *_glance_table(report, width, picture=picture),
        *_list(glances.CAUTIONS, _first_cautions(report)),
        *_settling(report),
    ]
    return Group(*parts)


def _of_section(report: Report, section: Section[Any], model: Any, screen: Screen) -> Group:
    """Render a campaign that has nothing but a section, and what is missing of it."""
    return Group(
        *_missed(report),
        _title(report),
        Text(),
        *section.terminal(model, screen),
        *_failures(report),
        *_left_out(report),
    )


def _answer_sentences(report: Report) -> list[str]:
    return glances.sentences(report.answers, glances.own_words(report))


def _glance_table(report: Report, width: int, *, picture: bool) -> Iterator[RenderableType]:
    seen = glance(report, width if picture else 0)
    letters = zip(seen.platforms, seen.letters, strict=True)
    heads = [f"{name} ({letter})" if seen.axis else name for name, letter in letters]
    lines = [[_text(""), *(_text(head, "bold") for head in heads), _text(seen.axis, "dim")]]
    for name, cells, line in seen.rows:
        lines.append([_text(name), *map(_text, cells), _text(line)])
    if not seen.axis:
        lines = [line[:-1] for line in lines]
    for chosen in _groups(lines, 1, width):
        table = _table(lines, chosen, set())
        if seen.axis and chosen[-1] == len(lines[0]) - 1:
            table.columns[-1].justify = "left"  # the picture: its places count
        yield table
    there = heat(report).states
    if not there:
        return  # no dimension has a figure, and there is nothing to explain
    legend = "; ".join(f"{dimensions.MARKS[state]} {dimensions.WORDS[state]}".strip() for state in there)
    drawn = glances.PICTURE if seen.axis else ""
    yield _text(f"{dimensions.heat_note(clean(report.baseline))} {legend}.{unsure_note(seen.cells())}{drawn}", "dim")


def _first_cautions(report: Report) -> list[str]:
    """At most three sentences, those with the largest consequence first."""
    results = [result for result in report.results if result.headline or result.metric in SHOWN_COSTS]
    wide = sum(
        any(caution.kind is FindingKind.WIDE_FLOOR for platform in result.platforms for caution in platform.cautions)
        for result in results
    )
    invalid = sum(platform.verdict is VerdictKind.INVALID for result in results for platform in result.platforms)
    disturbed = sum(
        any(caution.kind is FindingKind.UNMARKED for caution in platform.cautions)
        for result in results
        for platform in result.platforms
    )
    failures = [failure for failure in report.failures if failure.status is Status.FAILED]
    failed = sum(failure.n_trials for failure in failures)
    first = failures[0] if failures else None
    notes = [
        glances.invalid(invalid),
        glances.failed(failed, None if first is None else f"{first.workload} on {first.platform}: {first.reason}"),
        glances.disturbed(disturbed, sum(len(result.platforms) for result in results), widened(results)),
        glances.wide(wide, len(results), report.baseline),
        *_of_all(report, results),
    ]
    shown = [note for note in notes if note]
    return [*shown[:_CAUTIONS], glances.more(max(len(shown) - _CAUTIONS, 0))]


def _settling(report: Report) -> Iterator[RenderableType]:
    if report.settling is None:
        return
    yield _text(f"\n{report.settling_text}")
    if report.settling.command:
        yield _text(f"  {report.settling.command}", "bold")


def headline(names: Sequence[str], results: Sequence[ResultReport], *, width: int = 100) -> Group:
    """The table alone, redrawn while a campaign runs. ``names``: of the platforms, the baseline first."""
    return Group(*_tables(names, results, width))


def render_all(
    reports: list[Report],
    *,
    width: int = 100,
    every_metric: bool = False,
    cautions: bool = False,
    picture: bool = True,
) -> Group:
    """Several reports one below the other, of each the answer last; nothing is pooled.

    ``every_metric`` or ``cautions``: all of the report before the answer.
    """
    parts: list[RenderableType] = []
    for report in reports:
        if every_metric or cautions:
            parts += [render(report, width=width, every_metric=every_metric, cautions=cautions), Text()]
        if report.answers or not (every_metric or cautions):
            parts += [render_glance(report, width=width, picture=picture), Text()]
    if len(reports) > 1:
        parts.append(_text(SIDE_BY_SIDE, "dim"))
    return Group(*parts)


def _heat_table(shown: Heat, baseline: str, width: int) -> Iterator[RenderableType]:
    """The table in as many parts as the width asks for, and its legend; nothing where no dimension has a figure."""
    if not shown.columns:
        return
    weighted = [use_words.WEIGHTED] if any(row.weighted for row in shown.rows) else []
    heads = ["platform", *weighted, "needs", *shown.columns]
    lines = [[_text("\n".join(head.split(" ", 1))) for head in heads]]
    for row in shown.rows:
        cells = [_text(cell.text, _HEAT_STYLES[cell.state] if cell.shade else "") for cell in row.cells]
        cost = [] if row.weighted is None else [_text(_weighted(row.weighted), "bold")]
        lines.append([_text(row.platform, "bold"), *cost, _text(row.needs), *cells])
    # A row a dimension, where that takes fewer tables.
    turned = [list(column) for column in zip(*([_text(head) for head in heads], *lines[1:]), strict=True)]
    best = min((lines, turned), key=lambda way: sum(1 for _ in _groups(way, 1, width)))
    for chosen in _groups(best, 1, width):
        yield _table(best, chosen, set())
    marks = "; ".join(f"{dimensions.MARKS[state]} {dimensions.WORDS[state]}".strip() for state in shown.states)
    texts = [cell.text for row in shown.rows for cell in row.cells]
    yield _text(f"{dimensions.heat_note(clean(baseline))} {marks}.{unsure_note(texts)}", "dim")


def _weighted(cost: HeatCell) -> str:
    return cost.text if cost.order is None else f"{cost.text}\n{cost.title}"


def _text(text: str, style: str = "") -> Text:
    return Text(clean(text), style=style)


def _title(report: Report) -> Text:
    how = "" if report.design is Design.BLOCKS else f", {report.design}"
    how = f" ({report.scale}){how}" if report.scale is not None else how
    plan = f"profile {report.profile}{how}, seed {report.seed}, {blocks_text(report)}"
    facts = f"{report.host_title()}, {when(report.created)}, {_alone(report) or plan}, {report.status}"
    versions = versions_text(report.host, report.platforms, report.baseline)
    client = client_text(report.host_title(), report.client)
    lines = "\n".join(filter(None, (versions, client)))
    return Text.assemble(_text(f"tare {report.tare_version}", "bold"), "  ", _text(facts), "\n", _text(lines))


def _missed(report: Report) -> Iterator[Text]:
    """Yield what was asked for by name and is not in the tables."""
    for omitted in report.left_out:
        if omitted.asked:
            yield _text(captions.missed(omitted.platform, omitted.reason, omitted.fix), "bold yellow")


def render_choice(report: Report, requirements: Requirements, *, width: int = 100) -> Group:
    """The platforms that have what is asked for, the least CPU cost first; and why the others have not."""
    weights = weights_of(requirements)
    ordered = by_cost(report) if weights is None else by_use(report, weights)
    reasons = {answer.platform: against(answer, requirements) for answer in ordered}
    fitting = [answer for answer in report.answers if not reasons[answer.platform]]
    parts: list[RenderableType] = [_title(report)]
    if weights is not None and requirements.use not in answerable(report):
        parts.append(_text(_not_answerable(report, requirements.use), "bold yellow"))
        weights = None
    if fitting:
        parts += _heat_table(heat(report.model_copy(update={"answers": fitting}), weights), report.baseline, width)
    else:
        parts.append(_text(captions.NONE_FITS, "bold"))
    parts += [_text(f"not {name}: {', '.join(why)}") for name, why in reasons.items() if why]
    if weights is not None and requirements.use is not None:
        parts += [_text(f"not weighed {name}: {why}") for name, why in unweighed(report, weights).items()]
        parts.append(_text(use_words.weights_note(requirements.use, weights, measured(report))))
        parts.append(_text(use_words.explanation(report.baseline, START_MS, FOOTPRINT_MIB), "dim"))
    return Group(*parts)


def _not_answerable(report: Report, use: UserUse | None) -> str:
    assert use is not None
    if use is UserUse.UNTRUSTED:
        return use_words.unread([answer.platform for answer in report.answers], report.file)
    return use_words.not_answerable(use)


def _answers(report: Report, width: int) -> Iterator[RenderableType]:
    """The platforms by dimension, and some sentences on each."""
    shown = heat(report)
    if not shown.rows:
        return
    yield from _heat_table(shown, report.baseline, width)
    for answer in report.answers:
        yield Text.assemble("\n", _text(answer.platform, "bold"))
        for sentence in answer.sentences:
            yield Padding(_text(sentence), (0, 0, 0, 2))
    if report.settling is not None:
        yield _text(f"\n{report.settling_text}")
        if report.settling.command:
            yield _text(f"  {report.settling.command}", "bold")


def _sections(report: Report, screen: Screen, *places: Place) -> Iterator[RenderableType]:
    for section, model in of_report(report, *places):
        yield from section.terminal(model, screen)


def _newer(report: Report) -> Iterator[Text]:
    if report.unknown_fields:
        yield _text(newer_note(report.tare_version, report.unknown_fields), "yellow")


def _alone(report: Report) -> str | None:
    """Return what a file without trials holds, in words; None where it has trials or planned blocks."""
    held = alone(report)
    return None if held is None else f"{held} alone"


def _tables(names: Sequence[str], results: Sequence[ResultReport], width: int) -> Iterator[Table]:
    """One table, or several where it is too wide, each with the baseline; transposed where that takes fewer tables."""
    rows = [[_label(result), *_row(result, names)] for result in results]
    upright = [[_text("workload"), *map(_text, names)], *rows]
    turned = [[_text("platform"), *(row[0] for row in rows)], *([_text(n), *c] for n, c in _by_name(names, rows))]
    groups, turned_groups = list(_groups(upright, 2, width)), list(_groups(turned, 1, width))
    if len(turned_groups) < len(groups):
        for chosen in turned_groups:
            yield _table(turned, chosen, {2})  # a section of its own for the baseline
        return
    sections = {
        at
        for at, (result, previous) in enumerate(zip(results[1:], results, strict=False), 2)
        if result.workload != previous.workload
    }
    for at in set(range(1, len(upright))) - {1} - sections:
        upright[at][0] = _label(results[at - 1], of_workload=False)
    for chosen in groups:
        yield _table(upright, chosen, sections)


def _by_name(names: Sequence[str], rows: list[list[Text]]) -> Iterator[tuple[str, list[Text]]]:
    for at, name in enumerate(names, 1):
        yield name, [row[at] for row in rows]


def _table(lines: list[list[Text]], columns: list[int], sections: set[int]) -> Table:
    """A table of some columns of ``lines``, whose first is the head; ``sections``: numbers of lines that begin one."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for column in columns:
        table.add_column(lines[0][column], justify="right" if column else "left", overflow="fold")
    for number, line in enumerate(lines[1:], 1):
        if number in sections:
            table.add_section()
        table.add_row(*(line[column] for column in columns))
    return table


def _groups(lines: list[list[Text]], pinned: int, width: int) -> Iterator[list[int]]:
    """Groups of columns that fit into the width: each has the first ``pinned`` columns and at least one more."""
    widths = [
        max(len(part) for text in column for part in text.plain.split("\n")) + _PADDING
        for column in zip(*lines, strict=True)
    ]
    first = list(range(pinned))
    group = first
    for index in range(pinned, len(widths)):
        if len(group) > pinned and sum(widths[at] for at in [*group, index]) > width:
            yield group
            group = first
        group = [*group, index]
    yield group


def _label(result: ResultReport, *, of_workload: bool = True) -> Text:
    arrow = "↑" if result.direction is Direction.HIGHER else "↓"
    label = _text(f"{result.workload}\n" if of_workload else "", "bold")
    return label.append_text(_text(f"{result.metric} {arrow}", "dim"))


def _row(result: ResultReport, names: Sequence[str]) -> Iterator[Text]:
    platforms = {platform.platform: platform for platform in result.platforms}
    baseline = names[0]
    for name in names:
        if name not in platforms:
            yield Text() if name == baseline else Text(EMPTY, "dim")
        elif name == baseline:
            yield _cell(baseline_cell(result, platforms[name]))
        else:
            yield _cell(cell(result, platforms[name]))


def _cell(shown: Cell) -> Text:
    text = _text(f"{shown.mark} {shown.figure}".strip(), STYLES[shown.sign])
    return text.append_text(_text("\n" + "\n".join((shown.span, *shown.below)), "dim"))


def _legend(report: Report, results: list[ResultReport]) -> Text:
    shown = {sign_of(platform) for result in results for platform in result.platforms}
    marks = [f"{MARKS[at]} {name} {explanation}".strip() for at, (name, explanation) in MEANINGS.items() if at in shown]
    margins = sorted({(result.margin_percent, result.family) for result in results})
    text = Text(style="dim")
    text.append(f"{how_to_read(clean(report.baseline))}\n")
    text.append("Margins: " + ", ".join(f"{family} {percent(margin / 100)}" for margin, family in margins) + ".\n")
    text.append("; ".join(marks) + ".")
    if verdicts := together(report):
        text.append(f"\n{verdicts}")
    return text


def _cautions(report: Report, results: list[ResultReport]) -> Iterator[RenderableType]:
    """Verdicts that need a sentence, and cautions; one line where a sentence holds for several metrics."""
    metrics_of: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        for platform in result.platforms:
            apart = {FindingKind.WIDE_FLOOR, FindingKind.UNMARKED}
            texts = [caution.text for caution in platform.cautions if caution.kind not in apart]
            if turned(platform):
                texts += [caution.text for caution in platform.cautions if caution.kind is FindingKind.UNMARKED]
            if platform.verdict is VerdictKind.INVALID or platform.verdict_reason in REFUSED:
                texts.insert(0, platform.verdict_text)
            for text in texts:
                metrics_of.setdefault((result.workload, platform.platform, text), []).append(result.metric)
    lines = [f"{where} on {who} ({', '.join(metrics)}): {text}" for (where, who, text), metrics in metrics_of.items()]
    yield from _list("Cautions", [*_of_all(report, results), *_wide_floors(results), *lines, *_unmarked(results)])


def _of_all(report: Report, results: list[ResultReport]) -> list[str]:
    """Return what a reader must know of the whole campaign, or of all of a platform's figures of a family."""
    notes = [
        report.dependence.note if report.dependence is not None else None,
        rights_note(report.host),
        tracking_note(report.host, report.fairness, report.baseline, report.results),
        cpus_note(report.resources, outside=report.client is not None),
        layout_note(report.host, report.resources),
        daemons_note(report.fairness),
        priorities_note(report.fairness, report.baseline),
        age_note(report.platforms, report.created),
    ]
    return [*(note for note in notes if note is not None), *_remarks(results)]


def _remarks(results: list[ResultReport]) -> Iterator[str]:
    """Yield what platforms said of their figures of a family: once, and not with every workload."""
    remarks = {(result.family, entry.platform, entry.remark) for result in results for entry in result.platforms}
    for family, platform, remark in sorted(remarked for remarked in remarks if remarked[2]):
        yield f"{family} on {platform}: {remark}"


def _counted(report: Report, results: list[ResultReport]) -> Iterator[RenderableType]:
    """Yield how many cautions there are of each kind, and how to see them."""
    kinds: Counter[FindingKind] = Counter()
    changed = invalid = 0
    refused: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        for platform in result.platforms:
            kinds.update(caution.kind for caution in platform.cautions if caution.kind is not FindingKind.WIDE_FLOOR)
            changed += turned(platform)
            invalid += platform.verdict is VerdictKind.INVALID
            if platform.verdict_reason in REFUSED:
                place = result.workload, platform.platform, platform.verdict_text
                refused.setdefault(place, []).append(result.metric)
    lines = [f"{where} on {who} ({', '.join(metrics)}): {text}" for (where, who, text), metrics in refused.items()]
    counts = [caution_counts(kinds, changed=changed, invalid=invalid)] if kinds or invalid else []
    yield from _list("Cautions", [*_of_all(report, results), *lines, *_floors_counted(results), *counts])


def _floors_counted(results: list[ResultReport]) -> Iterator[str]:
    wide = sum(
        any(caution.kind is FindingKind.WIDE_FLOOR for platform in result.platforms for caution in platform.cautions)
        for result in results
    )
    if wide:
        yield wide_floors_count(wide, len(results))


def _unmarked(results: list[ResultReport]) -> Iterator[str]:
    """Yield the number of figures with contaminated trials that keep their verdict without them."""
    same = sum(
        platform.unmarked is not None and platform.unmarked.verdict is platform.verdict
        for result in results
        for platform in result.platforms
    )
    if same:
        yield unchanged_note(same)


def _wide_floors(results: list[ResultReport]) -> Iterator[str]:
    rows: dict[str, list[str]] = {}
    for result in results:
        kinds = {caution.kind for platform in result.platforms for caution in platform.cautions}
        if FindingKind.WIDE_FLOOR in kinds:
            rows.setdefault(result.workload, []).append(result.metric)
    if rows:
        yield wide_floors_note(rows)


def _failures(report: Report) -> Iterator[RenderableType]:
    lines = [
        f"{failure.workload} on {failure.platform}: {failure.n_trials} {failure.status}: {failure.reason}"
        for failure in report.failures
    ]
    yield from _list("Trials without a result", lines)


def _daemons(report: Report) -> Iterator[RenderableType]:
    lines = [
        f"{platform.name}: {shown}"
        for platform in report.platforms
        if (shown := captions.daemon_text(platform.daemons_share, platform.daemons_mib))
    ]
    yield from _list(captions.DAEMONS, lines)


def _unfair(report: Report) -> Iterator[RenderableType]:
    lines = [
        f"{difference.platform} has {difference.unfair}"
        f" ({difference.fact}: {difference.value}, {report.baseline}'s: {difference.baseline})"
        for difference in report.differences
        if difference.unfair is not None
    ]
    yield from _list("Not alike", lines)


def _left_out(report: Report) -> Iterator[RenderableType]:
    lines = [
        f"{omitted.platform}: {omitted.reason}" + (f" (fix: {omitted.fix})" if omitted.fix else "")
        for omitted in report.left_out
    ]
    yield from _list(captions.LEFT_OUT, lines)


def _tuning(report: Report) -> Iterator[RenderableType]:
    """The settings that were changed or could not be; settings with the same values share a line."""
    lines: dict[tuple[str, str], list[str]] = {}
    for setting in report.tuning or ():
        if setting.outcome == "changed":
            lines.setdefault(("", f"{setting.value}, and {setting.former} again after it"), []).append(setting.name)
        elif setting.outcome == "not changed":
            lines.setdefault(("not changed: ", setting.why), []).append(setting.name)
    shown = [f"{head}{_together(names)}: {outcome}" for (head, outcome), names in lines.items()]
    yield from _list(captions.TUNED, shown)


def _together(names: list[str]) -> str:
    """Names in one line; a first word that all share (interrupt 24, interrupt 25) is written once."""
    heads = {name.rpartition(" ")[0] for name in names}
    if len(names) == 1 or len(heads) > 1 or heads == {""}:
        return ", ".join(names)
    return f"{heads.pop()} {', '.join(name.rpartition(' ')[2] for name in names)}"


def _list(title: str, lines: list[str]) -> Iterator[RenderableType]:
    if lines:
        yield _text(f"\n{title}", "bold")
        for line in lines:
            yield _text(f"  {' '.join(line.split())}")
