"""The page in Debian's chromium, from file://: no error, sorting and filters, nothing serious for axe-core."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import test_stacks_report
from test_html import evil_record

import fake_campaign
import fake_footprints
import fake_surfaces
from tare.cli.serve import PageSite, SiteServer
from tare.report.formats.html import write_html
from tare.store import create_store, open_store

pytestmark = pytest.mark.browser

CHROMIUM = "/usr/bin/chromium"
WIDE, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}
#: Where screenshots stay, for people to look at; by default nowhere.
SCREENSHOTS = os.environ.get("TARE_SCREENSHOTS")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium. Root has no sandbox of its own; what is opened is ours."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (`make browser-test` has it)

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def page_of(browser: Any) -> Iterator[Any]:
    """Opens a page's file; what it says on its console, and dialogs, are in ``complaints``."""
    contexts = []

    def opened(file: Path, *, viewport: dict[str, int] | None = None, scheme: str = "light") -> Any:
        context = browser.new_context(viewport=viewport or WIDE, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (page.complaints.append(dialog.message), dialog.dismiss()))
        page.goto(file.resolve().as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with surfaces and a curve; docker has a daemon, gvisor-ptrace costs much."""
    folder = tmp_path_factory.mktemp("browser")
    shape = fake_campaign.Shape()
    shape = replace(shape, workloads=(*shape.workloads, "served-1", "served-8", "served-64"))
    path = fake_campaign.write(folder / "night.tare", shape)
    with open_store(path) as store:
        for surface in fake_surfaces.captured():
            store.add_surface(surface)
    write_html([path], folder / "night.html")
    return folder / "night.html"


def column(page: Any, name: str) -> int:
    heads = page.locator("table.heat thead th").all_inner_texts()
    [at] = [at for at, head in enumerate(heads) if head.startswith(name)]
    return at


def platforms(page: Any) -> list[str]:
    return page.locator("table.heat tbody tr:visible th").all_inner_texts()


def until(page: Any, condition: str) -> None:
    """Wait until it holds. `wait_for_function` evaluates a string in the page, which the page's policy forbids."""
    end = time.monotonic() + 20
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 (`make browser-test` has it)

    results = Axe().run(page).response["violations"]
    grave = [violation for violation in results if violation["impact"] in {"serious", "critical"}]
    return [f"{violation['id']}: {violation['nodes'][0]['html'][:120]}" for violation in grave]


def test_columns_are_sorted_by_click_and_by_key(page_of: Any, answered: Path) -> None:
    page = page_of(answered)
    at = column(page, "compute")
    button = page.locator("table.heat thead th button").nth(at)
    button.click()
    upward = platforms(page)
    assert upward[-2:] == ["gvisor-systrap", "gvisor-ptrace"]
    assert page.locator("table.heat thead th").nth(at).get_attribute("aria-sort") == "ascending"
    button.focus()
    page.keyboard.press("Enter")
    assert platforms(page)[:2] == ["gvisor-ptrace", "gvisor-systrap"]
    assert page.locator("table.heat thead th[aria-sort]").count() == 1
    assert page.complaints == []


def test_what_has_no_figure_is_sorted_last_either_way(page_of: Any, answered: Path) -> None:
    page = page_of(answered)
    button = page.locator("table.heat thead th button").nth(column(page, "disk"))
    for _ in range(2):
        button.click()
        assert platforms(page)[-1] == "gvisor-ptrace"  # it has no disk


def test_the_cheapest_platform_below_ten_per_cent_without_a_daemon_is_found(page_of: Any, answered: Path) -> None:
    page = page_of(answered)
    form = page.locator("form.filters")
    form.locator("[data-below=cpu]").fill("10")
    assert set(platforms(page)) == {"runc", "docker", "gvisor-systrap"}
    form.locator("[data-without=daemon]").check()
    assert platforms(page) == ["runc", "gvisor-systrap"]  # the least weighted cost first, without a click
    button = page.locator("table.heat thead th button").nth(column(page, "weighted cost"))
    button.click()
    assert platforms(page) == ["gvisor-systrap", "runc"]
    button.click()
    assert form.locator("output").inner_text().startswith("2 of 4 platforms; for a web service: runc, ")
    assert page.locator(".card:visible h3").all_inner_texts() == ["runc", "gvisor-systrap"]
    form.locator("[name=name]").fill("gvi(")  # no whole expression: nothing changes
    assert platforms(page) == ["runc", "gvisor-systrap"]
    form.locator("[name=name]").fill("^gvi")
    assert platforms(page) == ["gvisor-systrap"]
    assert page.complaints == []


def weighted(page: Any) -> list[str]:
    return page.locator("table.heat td.is-weighted").all_inner_texts()


def test_what_is_run_sorts_by_its_weights_and_they_can_be_changed(page_of: Any, answered: Path) -> None:
    page = page_of(answered)
    form = page.locator("form.uses")
    served = weighted(page)
    form.locator("summary").click()
    form.locator("[data-weight=start]").fill("40")
    changed = weighted(page)
    assert changed != served
    form.locator("[data-weight=start]").fill("0")
    assert weighted(page) == served  # what the script computes is what tare wrote
    form.locator("select").select_option(label="untrusted code")
    assert form.locator("[data-weight=exposed-kernel]").input_value() == "8"
    assert platforms(page)[0] == "docker"  # the fewest calls of those that were read
    assert weighted(page)[-1] == "–"
    page.locator("form.filters [data-without=daemon]").check()
    assert "for untrusted code: runc" in page.locator("form.filters output").inner_text()
    form.locator("select").select_option(label="a web service")
    assert weighted(page) == served
    assert page.complaints == []


def test_start_system_calls_and_root_are_filters_too(page_of: Any, answered: Path) -> None:
    page = page_of(answered)
    form = page.locator("form.filters")
    form.locator("[data-below=start]").fill("60")
    assert set(platforms(page)) == {"docker", "runc", "gvisor-systrap"}
    form.locator("[data-without=root]").check()
    assert platforms(page) == ["gvisor-systrap"]
    form.locator("[data-without=root]").uncheck()
    form.locator("[data-below=calls]").fill("200")
    assert set(platforms(page)) < {"runc", "docker", "gvisor-systrap"}


def test_without_its_script_the_page_has_a_sorted_table_and_the_best_of_each(browser: Any, answered: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(answered.resolve().as_uri())
    assert platforms(page)[2:] == ["gvisor-systrap", "gvisor-ptrace"]
    assert not page.locator("form.filters").is_visible()
    assert not page.locator("form.uses").is_visible()
    asked = page.locator(".picks dt").all_inner_texts()
    assert asked[:2] == ["for a web service", "for batch compute"]
    assert "for a web service, without a shared daemon" in asked
    assert page.locator(".picks dd b").all_inner_texts()[0] in {"docker", "runc"}
    context.close()


def test_the_score_sheet_follows_priorities_and_weights(page_of: Any, tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=3, workloads=("sysbench-fileio-seqrd",))
    write_html([fake_campaign.write(tmp_path / "read.tare", shape)], tmp_path / "read.html")
    page = page_of(tmp_path / "read.html")
    rows = page.locator("table.scores tbody tr")
    runc = rows.filter(has_text="runc")

    def sums() -> list[str]:
        return [*runc.locator(".sum-of").all_inner_texts(), runc.locator(".weighted").inner_text()]

    assert sums() == ["4", "0", "4"]
    form = page.locator("form.scoring")
    form.locator("select").select_option(label="low")
    assert sums() == ["0", "4", "4"]
    form.locator("input").nth(1).fill("0.5")
    assert sums() == ["0", "4", "2"]
    assert rows.filter(has_text="gvisor-ptrace").locator(".share").inner_text() == "0 %"
    page.locator("table.scores thead th button").nth(-2).click()  # by the weighted sum
    assert rows.first.locator("th").inner_text() == "gvisor-ptrace"
    form.locator("select").select_option(label="leave out")
    assert sums() == ["0", "0", "0"]
    assert runc.locator(".share").inner_text() == "–"
    form.locator("button").click()
    until(page, "document.querySelector('.scores .share').textContent !== '–'")
    assert sums() == ["4", "0", "4"]
    assert violations(page) == []
    assert page.complaints == []


def test_a_caution_leads_to_its_row_and_opens_it(page_of: Any, answered: Path) -> None:
    page = page_of(answered)
    page.locator(".cautions > summary").click()
    page.locator(".cautions > details > summary").first.click()
    link = page.locator(".cautions a").first
    target = link.get_attribute("href")
    link.click()
    row = page.locator(target)
    row.wait_for(state="visible")
    assert row.evaluate("row => row.getBoundingClientRect().top < innerHeight")
    assert row.locator("details.notes").evaluate("notes => notes.open")


@pytest.mark.parametrize(("viewport", "scheme"), [(WIDE, "light"), (WIDE, "dark"), (PHONE, "light"), (PHONE, "dark")])
def test_nothing_serious_is_in_the_way_of_anybody(
    page_of: Any, answered: Path, viewport: dict[str, int], scheme: str
) -> None:
    page = page_of(answered, viewport=viewport, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((entry) => { entry.open = true; })")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.complaints == []
    if SCREENSHOTS:
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=Path(SCREENSHOTS) / f"{viewport['width']}-{scheme}.png")


def test_a_phone_shows_every_platforms_figures(page_of: Any, answered: Path) -> None:
    page = page_of(answered, viewport=PHONE)
    for table in ("table.heat", "table.matrix"):
        cells = page.locator(f"{table} tbody td")
        sides = cells.evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().right)")
        assert sides
        assert max(sides) <= PHONE["width"]


def test_the_first_paint_takes_less_than_a_second(page_of: Any, answered: Path) -> None:
    page = page_of(answered)
    until(page, "performance.getEntriesByName('first-contentful-paint').length > 0")
    first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert first < 1000 * max(1, os.getloadavg()[0] / (os.cpu_count() or 1))  # of a host that is not busy


def test_flame_graphs_widen_and_search(page_of: Any, tmp_path: Path) -> None:
    path = fake_footprints.write(tmp_path / "flames.tare", test_stacks_report.invented())
    write_html([path], tmp_path / "flames.html")
    page = page_of(tmp_path / "flames.html")
    graph = page.locator("figure.flame").first
    graph.scroll_into_view_if_needed()
    graph.locator("g.frame").first.wait_for()
    before = graph.locator("g.frame").count()
    graph.locator("g.frame", has_text="do_syscall_64").first.click()
    assert 1 < graph.locator("g.frame").count() < before + 1
    page.locator(".flame-search input[type=search]").fill("ksys_read")
    assert graph.locator(".found").inner_text().startswith("matched: ")
    assert page.complaints == []
    assert violations(page) == []


def test_the_index_of_campaigns_leads_to_a_page(browser: Any, answered: Path) -> None:
    with SiteServer(PageSite(answered.parent), 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        page = browser.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(server.address)
        assert violations(page) == []
        page.locator("thead th button").first.click()
        page.locator("tbody a", has_text="night.tare").click()
        page.locator("table.heat").wait_for()
        assert [text for text in complaints if "favicon" not in text] == []
        page.close()
        server.shutdown()
        thread.join()


#: As long as a name may be: tags, what a terminal obeys, text that runs the other way, what has no width.
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`${alert(3)}"
    " \x07\x1b[31m \u202egnp.exe\u2066 \u200b\ufeff\ufffd " + "w" * 200
)[:200]


def test_hostile_text_neither_runs_nor_breaks_the_page(page_of: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("test_html.EVIL", HOSTILE)
    shape = fake_campaign.Shape(blocks=3, rounds=2)
    with create_store(tmp_path / "a.tare", evil_record(fake_campaign.record(shape))) as store:
        for _, trials in fake_campaign._blocks(shape):
            store.commit_trials([replace(trial, reason=HOSTILE) if trial.reason else trial for trial in trials])
        store.add_event("warning", HOSTILE)
    write_html([tmp_path / "a.tare"], tmp_path / "a.html")
    for viewport in (WIDE, PHONE):
        page = page_of(tmp_path / "a.html", viewport=viewport)
        page.locator("table.heat thead th button").first.click()
        assert page.locator("img").count() == 0
        assert page.complaints == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
