"""The section "Capacity" of a report, from invented fills: sentences, picture, table, reserve and prices."""

import io
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from campaign.fakes import a_plan, a_record
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.capacity_model import FILL, PRICES, Fill, FillLevel, Resource, Stop
from tare.errors import UsageError
from tare.features.capacity import prices, words
from tare.features.capacity.analysis import capacities
from tare.features.capacity.views import HEADS, platform_report, row
from tare.model import Arm, Sample, Status, Trial, TrialKey
from tare.outputs import page_of
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import render, render_glance
from tare.report.formats.html import materials, page_text
from tare.store import create_store, open_store
from tare.workloads import workload_registry

MIB, GIB = 2**20, 2**30
#: MiB and mCPU that each takes, and MiB of the kernel's and of the engine's.
EACH = {
    "native": (1.0, 0.1, 0.5, 0.0),
    "runc": (3.0, 0.2, 1.5, 0.0),
    "docker": (4.0, 0.3, 1.5, 6.0),
    "crun": (0.25, 0.1, 0.89, 0.0),
}
COUNTS = (0, 1, 2, 4, 8, 16, 32)
POLICY = {"swappiness": 60, "merging": "on", "high": GIB}
PRICE_FILE = """
[host]
name = "ours"
cpus = 16
memory_gib = 64
price = 200.0
currency = "EUR"
source = "an invoice"
date = 2026-11-01
"""


def a_fill(platform, random, *, held=0, stop=Stop.QUARTER, moved=0, counts=COUNTS):
    own, cpu, kernel, engine = EACH[platform]
    own *= 1 + 0.01 * random.standard_normal()
    levels = []
    for count in counts:
        noise = int(max(0.2, moved) * MIB * random.standard_normal())  # `moved`: MiB, by others
        instances, daemons = int(count * own * MIB), int(count * engine * MIB + 20 * MIB)
        slab = 100 * MIB + int(count * kernel * MIB)
        others = 500 * MIB + 3 * count * MIB  # which are nobody's here
        levels.append(
            FillLevel(
                count=count,
                at_s=float(count),
                available=8 * GIB - instances - daemons - slab - others + noise,
                anonymous=instances + daemons + others,
                slab=slab,
                page_tables=MIB,
                stacks=MIB,
                per_cpu=MIB,
                instances=instances,
                instances_pss=instances + count * MIB,
                instances_group=instances,
                engine=daemons,
                harness=MIB,
                harness_slab=0,
                tables=0,
                window_s=2.5,
                cpu_ns=int(2.5e6 * count * cpu),
                daemon_cpu_ns=0,
                used={Resource.TASKS: 200 + 3 * count, Resource.BRIDGE_PORTS: 1 + count},
                starts_ms=[40.0] * (count // 2 + 1) if count else [],
            )
        )
    return Fill(
        memory_total=10 * GIB,
        memory_reserve=GIB,
        budget=None,
        cpus=2.0,
        most={Resource.TASKS: 100_000, Resource.BRIDGE_PORTS: 1024},
        kept_back={Resource.TASKS: 10_000, Resource.BRIDGE_PORTS: 102},
        levels=levels,
        own=[int(own * MIB)] * 32,
        kernel=[int(kernel * MIB)] * 32,
        cpu_shares=[cpu / 1000] * 32,
        held=held or 32,
        stop=stop,
        resource=None,
        reason="a quarter of some 1234 instances runs",
    )


def write(path, *, held=0, stop=Stop.QUARTER, damaged=False, priced="", moved=0):
    plan = a_plan(3)
    plan = replace(
        plan,
        jobs=(
            WorkloadJob(workload_registry.get("capacity"), dict(workload_registry.get("capacity").profiles["quick"])),
        ),
    )
    random = np.random.default_rng(45)
    with create_store(path, a_record(plan)) as store:
        for block in range(3):
            keys = [TrialKey(block, "capacity", arm) for arm in plan.arms]
            store.plan_block(block, keys)
            trials = []
            for key in keys:
                fill = a_fill(key.arm.platform, random, held=held, stop=stop, moved=moved).model_dump_json().encode()
                outputs = {FILL: b"{}" if damaged and key.arm == Arm("runc") and block == 1 else fill}
                at = block * len(plan.arms) + len(trials)
                samples = (Sample("memory", 1.0), Sample("start", 40.0))
                trials.append(
                    Trial(key, Status.OK, None, at, 1.7e9 + at, 1, 1, None, 0.0, 0.0, 0.0, samples, outputs=outputs)
                )
            store.commit_trials(trials)
        if priced:
            store.add_attachment(PRICES, priced.encode())
    return path


def printed(report, width):
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(render_glance(report, width=width))
    return console.export_text()


def test_a_sentence_a_platform_begins_the_section(tmp_path):
    report = build(write(tmp_path / "x.tare"))
    found = {platform.platform: platform for platform in report.capacity.platforms}
    assert list(found) == ["native", "runc", "docker"]
    assert found["native"].text == "native: one takes 1.5 MiB without a sandbox."
    assert (found["native"].count, found["native"].first, found["native"].cost) == (None, None, None)
    assert found["runc"].text.startswith("runc: 921 fit, ports of the bridge run out first; memory would hold 1,4")
    docker = found["docker"]
    room = report.capacity.room
    assert docker.count == pytest.approx(room / (11.5 * MIB), rel=0.02)
    assert docker.low < docker.count < docker.high
    assert docker.first is Resource.MEMORY
    assert "memory runs out first; reserve " in docker.text
    assert "more memory in the host" in docker.lift


def test_memory_is_told_by_its_parts_and_others_are_left_out(tmp_path):
    [_, _, docker] = build(write(tmp_path / "x.tare")).capacity.platforms
    memory = docker.memory
    assert (memory.engine / MIB, memory.kernel / MIB) == (pytest.approx(6), pytest.approx(1.5))
    assert memory.own / MIB == pytest.approx(4, rel=0.03)
    assert memory.shared / MIB == pytest.approx(1)
    assert memory.explained_percent == pytest.approx(100, abs=1)
    assert memory.others / MIB == pytest.approx(96, rel=0.01)


def test_memory_between_the_levels_of_a_fill_is_on_a_line():
    random = np.random.default_rng(45)
    whole, other = (a_fill("runc", random) for _ in range(2))
    other.levels[:] = [level for level in other.levels if level.count != 16]
    [capacity] = capacities({"runc": [whole, other]}, "native")
    memory = {level.count: level.memory for level in capacity.levels}
    assert memory[16] == pytest.approx(memory[32] / 2, rel=0.001)


@pytest.mark.parametrize(("moved", "fills", "known"), [(300, 3, False), (300, 1, False), (0, 3, True), (0, 1, True)])
def test_a_fall_that_others_moved_more_explains_nothing(moved, fills, known):
    random = np.random.default_rng(45)
    made = [a_fill("runc", random, moved=moved) for _ in range(fills)]
    [capacity] = capacities({"runc": made}, "native")
    assert (capacity.memory.explained is not None) is known
    assert capacity.memory.unexplained_half * 32 / MIB > moved / 10
    if known:
        assert capacity.memory.explained == pytest.approx(1, abs=0.01)


def test_a_share_that_is_not_known_is_not_said(tmp_path):
    report = build(write(tmp_path / "x.tare", moved=300))
    assert all(platform.memory.explained_percent is None for platform in report.capacity.platforms)
    assert "They explain" not in report.capacity.text
    assert "Of native, runc, docker that share is not known" in report.capacity.text
    assert row(report.capacity.platforms[1])[HEADS.index("rest")].startswith("±")


def test_the_legend_of_an_empty_table_is_not_shown(tmp_path):
    report = build(write(tmp_path / "x.tare"))
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(render(report, width=100, every_metric=True))
    assert "of each dimension the worst" not in console.export_text()
    page = page_text(materials([tmp_path / "x.tare"]))
    assert "of each dimension the worst" not in page
    assert 'href="#c1-answer"' not in page


def test_a_reserve_is_what_an_instance_takes_beside_its_workload(tmp_path):
    platforms = {p.platform: p for p in build(write(tmp_path / "x.tare")).capacity.platforms}
    docker = platforms["docker"].reserve
    assert docker.memory == pytest.approx(10 * MIB, rel=0.05)  # 11.5 without the 1.5 of the same program on native
    assert docker.memory * 600 >= 10 * MIB * 600, "all reserves together are not less than what is taken"
    assert docker.workload_memory == pytest.approx(1.5 * MIB, rel=0.02)
    assert 'memory: "' in docker.yaml
    assert f'memory: "{docker.memory >> 10}Ki"' in docker.yaml
    assert "podFixed" in docker.yaml
    assert docker.tasks == 3


def _add_objects(fill, more):
    fill.levels[:] = [level.model_copy(update={"slab": level.slab + int(more(level))}) for level in fill.levels]


@pytest.mark.parametrize("moved", [0.0, 1.0])
def test_all_reserves_of_a_full_host_are_what_was_used_and_a_little_more(moved):
    random = np.random.default_rng(45)
    fill = a_fill("crun", random, held=32, stop=Stop.FULL, counts=(*COUNTS[:-1], 24, 28, 30, 31, 32))
    _add_objects(fill, lambda level: moved * MIB * random.standard_normal() if level.count else 0)  # of others
    [capacity] = capacities({"crun": [fill]}, "native")
    true = 32 * (fill.own[0] + 0.89 * MIB)
    above = 32 * (capacity.reserve.memory + capacity.reserve.workload_memory) / true - 1
    assert 0 <= above < 0.005 + 0.08 * moved


def test_a_platform_whose_memory_is_hidden_has_no_number(tmp_path):
    random = np.random.default_rng(45)
    fills = [a_fill("runc", random) for _ in range(2)]
    for fill, sign in zip(fills, (1, -1), strict=True):
        _add_objects(fill, lambda level, sign=sign: sign * level.count * 2.5 * MIB)
    [capacity] = capacities({"runc": fills}, "native")
    assert capacity.hidden
    assert "is hidden by the host's other work" in words.answer(capacity)
    shown = platform_report(capacity, None, None)
    assert (shown.count, shown.first) == (None, None)
    assert row(shown)[HEADS.index("fit")] == "–"


def test_a_real_fill_stands_in_the_sentence(tmp_path):
    [*_, docker] = build(write(tmp_path / "x.tare", held=29, stop=Stop.FULL)).capacity.platforms
    assert docker.filled.count == 29
    assert "; a real fill held 29; " in docker.text


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_has_sentences_picture_and_table(tmp_path, width):
    shown = printed(build(write(tmp_path / "x.tare")), width)
    lines = shown.splitlines()
    at = lines.index(next(line for line in lines if line.startswith("Capacity")))
    assert lines[at + 1].startswith("native: one takes")
    assert any(line.startswith("docker  ") and "█" in line and "▒" in line for line in lines)
    assert "MiB each" in shown
    assert max(map(len, lines)) <= width


def test_the_table_has_a_cell_for_each_head(tmp_path):
    for platform in build(write(tmp_path / "x.tare")).capacity.platforms:
        assert len(row(platform)) == len(HEADS)


def test_the_page_has_the_section(tmp_path):
    file = write(tmp_path / "x.tare", priced=PRICE_FILE)
    page = page_text(materials([file]))
    assert 'id="c1-capacity"' in page
    assert "kind: RuntimeClass" in page
    assert page.index('id="c1-capacity"') < page.index('id="c1-answer"') if 'id="c1-answer"' in page else True
    assert page_of(file).suffix == ".html"


def test_a_fill_that_cannot_be_read_is_said_and_the_others_count(tmp_path):
    report = build(write(tmp_path / "x.tare", damaged=True))
    assert [text for text in report.capacity.left_out if "runc, block 2" in text]
    assert {p.platform: p.n_fills for p in report.capacity.platforms} == {"native": 6, "runc": 2, "docker": 3}


def _each_level(**changed):
    return lambda fill: [level.update(changed) for level in fill["levels"]]


_MOST = 2**63 - 1
#: Changes that a stranger may make to a fill, and whether a real host could have produced the result.
_TWISTED = {
    "fewer instances than measured": (lambda fill: fill["own"].pop(), False),
    "no instance measured": (lambda fill: fill.update(own=[], kernel=[], cpu_shares=[]), False),
    "no start": (_each_level(starts_ms=[]), False),
    "levels without instances": (_each_level(count=0), False),
    "a window of nothing": (_each_level(window_s=5e-324), False),
    "shares beyond all": (lambda fill: fill.update(cpu_shares=[1e308] * 32), False),
    "fewer and fewer": (lambda fill: fill["levels"].reverse(), False),
    "a host that is full before": (lambda fill: fill.update(most=dict.fromkeys(fill["most"], 0)), True),
    "the most of everything": (
        lambda fill: [
            level.update({name: _MOST for name, value in level.items() if isinstance(value, int)})
            for level in fill["levels"]
        ],
        True,
    ),
    "endless work": (_each_level(working=1, rates=[1e15, 5e-324], late_ms=[1e15], work_cpu=1e15), True),
    "held beyond all": (lambda fill: fill.update(held=_MOST, stop="full"), True),
    "a budget of nothing": (lambda fill: fill.update(budget=1, held=0, stop="full", resource="memory"), True),
    "words that are tags": (lambda fill: fill.update(reason="<script>[/]"), True),
}


@pytest.mark.parametrize("name", _TWISTED)
def test_a_strangers_fill_is_shown_or_its_mistake_is(name, tmp_path, monkeypatch):
    change, possible = _TWISTED[name]

    def twisted(platform, random, **options):
        fill = a_fill_of_a_host(platform, random, **options)
        if platform != "runc":
            return fill
        facts = json.loads(fill.model_dump_json())
        change(facts)
        return SimpleNamespace(model_dump_json=lambda: json.dumps(facts))

    a_fill_of_a_host = a_fill
    monkeypatch.setitem(globals(), "a_fill", twisted)
    file = write(tmp_path / "x.tare", priced=PRICE_FILE)
    report = build(file)
    printed(report, 100)
    assert len(report.capacity.left_out) == (0 if possible else 3)
    page = page_text(materials([file]))
    assert "<script>[/]" not in page


def test_prices_make_a_month_of_an_instance(tmp_path):
    report = build(write(tmp_path / "x.tare", priced=PRICE_FILE))
    [_, _, docker] = report.capacity.platforms
    fits = 64 * GIB * 0.9 / (11.5 * MIB)
    assert docker.cost.first is Resource.BRIDGE_PORTS, "which a larger host has no more of"
    assert docker.cost.count == pytest.approx(921)
    assert fits > 921
    assert docker.cost.month == pytest.approx(200 / 921, rel=0.01)
    assert "0.217 EUR a month at the price file's host" in docker.text
    assert "ours of 16 CPUs and 64 GiB at 200 EUR a month (an invoice, 2026-11-01)" in report.capacity.text


def test_a_thousand_runs_cost_their_cpu_time():
    found = prices.cost(
        prices.parse(PRICE_FILE, "x"), [(Resource.CPU, lambda _: [prices.UseLine(0, 0.5)], 1.0)], 0.1, run_cpu_s=0.5
    )
    assert found.count == 32
    assert found.thousand_runs == pytest.approx(200 / (365.25 * 86400 / 12) / 16 * 500)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "host"),
        (PRICE_FILE.replace("200.0", "-1"), "price"),
        (PRICE_FILE.replace('"EUR"', '"euros"'), "currency"),
        (PRICE_FILE + "\ncolour = 1\n", "colour"),
        (PRICE_FILE.replace("2026-11-01", '"yesterday"'), "date"),
        ("[host", "is not TOML"),
    ],
)
def test_a_price_file_is_read_strictly(text, what):
    with pytest.raises(UsageError, match=what) as caught:
        prices.parse(text, "prices.toml")
    assert "docs/examples/prices.toml" in caught.value.fix


def test_the_example_is_a_price_file_and_says_that_it_is_invented(request):
    file = request.config.rootpath / "docs" / "examples" / "prices.toml"
    assert "invented" in prices.read(file).host.source


def test_prices_that_a_file_has_damaged_are_said(tmp_path):
    file = write(tmp_path / "x.tare")
    with open_store(file) as store:
        store.add_attachment(PRICES, b"[host]\nname = 1\n")
    report = build(file)
    assert report.capacity.prices is None
    assert [text for text in report.capacity.left_out if text.startswith("prices.toml: ")]


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, ""),
        ({"swap_bytes": 0, "memory_policy": {"balloon": False}}, "The host's memory: no swap, no balloon."),
        (
            {
                "swap_bytes": GIB,
                "huge_pages": "always",
                "memory_policy": {"swappiness": 60, "merging": "on", "high": GIB},
            },
            "The host's memory: swap 1.0 GiB (swappiness 60), which no instance gets, KSM on, THP always,"
            " memory.high of tare's own group 1.0 GiB, no balloon.",
        ),
    ],
)
def test_the_hosts_memory_in_a_sentence(facts, text):
    assert words.host(facts) == text
