"""The documentation: its commands parse, its links lead somewhere, its site has every page and every generated one."""

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from tare.cli.commands.app import COMMANDS, load
from tare.platforms import platform_registry as platforms
from tare.report.sentences import word_list
from tare.workloads import workload_registry as workloads

HERE = Path(__file__).parents[1]
DOCUMENTS = sorted([*HERE.glob("*.md"), *HERE.glob("docs/*.md"), *HERE.glob("docs/examples/**/*.md")])
#: What stands for more than one command: a pattern of arguments, and no command.
_PATTERN = re.compile(r"[\[\]|]|\.\.\.|…")
_BLOCK = re.compile(r"^ *```(?:sh|bash|console)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_CALL = re.compile(r"(?:^|[\s/(])tare +([a-z].*)")


def written(text):
    """The commands of a document as (line, whether it stands in a sentence)."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if call := _CALL.search(line.partition(" #")[0]):
                yield re.split(r"\s(?:\||>|&&|;)\s", call[1])[0], False
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    for code in re.findall(r"`tare ([a-z][^`]*)`", prose.replace("\n", " ")):
        yield re.split(r"\s(?:>|&&)\s", code)[0], True


def parsed(line, *, in_a_sentence):
    """Parse a command as tare does. In a sentence, a command or an option may be named without what it is given."""
    words = shlex.split(line)
    assert words[0] in COMMANDS, line
    command, arguments = load(words[0]), words[1:]
    inner = getattr(command, "commands", None)
    if inner is not None:
        if in_a_sentence and not arguments:
            return
        assert arguments[0] in inner, line
        command, arguments = inner[arguments[0]], arguments[1:]
    try:
        command.make_context(words[0], arguments)
    except Exception as error:
        kind = type(error).__name__  # of typer's own copy of click
        if kind != "Exit" and not (in_a_sentence and kind in {"MissingParameter", "BadOptionUsage"}):  # Exit: --help
            raise AssertionError(f"tare {line}: {error}") from error


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(HERE)))
def test_every_command_parses(document):
    for line, in_a_sentence in written(document.read_text()):
        if not _PATTERN.search(line):
            parsed(line, in_a_sentence=in_a_sentence)


def test_commands_are_found_and_wrong_ones_refused():
    count = sum(len([*written(document.read_text())]) for document in DOCUMENTS)
    assert count > 150
    commands = [
        *written(
            "`tare run -w a`\n```sh\nx=1 scripts/y .venv/bin/tare run \\\n  --time 5m | cat\n```\n```\ntare no\n```"
        )
    ]
    assert commands == [("run    --time 5m", False), ("run -w a", True)]
    for wrong in ("run --tmie 5m", "weigh", "lab walk", "report"):
        with pytest.raises(AssertionError):
            parsed(wrong, in_a_sentence=False)


def anchors(text):
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(HERE)))
def test_every_link_leads_somewhere(document):
    text = re.sub(r"^ *```.*?^ *```|`[^`\n]*`", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if "://" in target or name.startswith("reference/"):  # generated, and checked by `make docs`
            continue
        path = (document.parent / name) if name else document
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path.read_text()), target


def test_the_site_has_every_document_once():
    listed = re.findall(r": ([\w/-]+\.md)$", (HERE / "mkdocs.yml").read_text(), re.MULTILINE)
    documents = [name for name in listed if not name.startswith("reference/")]
    assert sorted(documents) == sorted(path.name for path in HERE.glob("docs/*.md"))
    assert len(set(listed)) == len(listed)


def generated(name):
    """What a script of this name writes, by the names of its files."""
    spec = importlib.util.spec_from_file_location(name, HERE / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE / "scripts"))
        spec.loader.exec_module(module)
        return module.pages()


def test_every_command_platform_and_workload_has_its_page():
    pages = generated("docs_reference")
    for name in platforms.all_platforms():
        assert pages[f"platforms/{name}.md"].startswith(f"# {name}\n")
        assert f"](platforms/{name}.md)" in pages["platforms.md"]
    for name, workload in workloads.all_workloads().items():
        assert all(f"| `{metric.name}` |" in pages[f"workloads/{name}.md"] for metric in workload.all_metrics)
        assert f"](workloads/{name}.md)" in pages["workloads.md"]
    for name in COMMANDS:
        assert f"\n## tare {name}\n" in pages["commands.md"]
        for parameter in getattr(load(name), "params", ()):
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert all(f"`{option}`" in pages["commands.md"] for option in parameter.opts)
    assert not any("[cyan]" in text or "[/]" in text for text in pages.values())


def test_every_command_has_a_man_page_that_roff_reads():
    pages = generated("docs_man")
    for name in COMMANDS:
        for inner in getattr(load(name), "commands", [""]):
            assert f"tare-{name}-{inner}.1".replace("-.", ".") in pages
        assert f".BR tare\\-{name} (1)" in pages["tare.1"]
    macros = {".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".BR"}
    for name, text in pages.items():
        lines = text.splitlines()
        assert lines[0].startswith(f'.TH "{name[:-2].upper().replace("-", chr(92) + "-")}" "1"')
        assert {line.split()[0] for line in lines if line.startswith((".", "'"))} <= macros
        assert not re.search(r"(?<!\\)-", "".join(lines)), "a hyphen that cannot be copied as an option"
        assert "[cyan]" not in text


def test_the_sites_tools_are_locked_as_they_are_declared():
    requirements = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    locked = (HERE / "requirements-docs.lock").read_text()
    assert all(f"\n{re.match(r'[a-z-]+', name)[0]}==" in f"\n{locked}" for name in requirements)


def test_the_glossary_gives_the_words_of_the_page_the_same_meanings():
    text = (HERE / "docs" / "glossary.md").read_text().replace("`", "")
    glossary = dict(re.findall(r"^\| (.+?) \| (.+) \|$", text, re.MULTILINE))
    assert word_list.MEANINGS.items() <= glossary.items()


def _figures_below_noise(text):
    """Figures of tables with a row A/A (in percent) that are less than twice that of their column."""
    floors = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "A/A" and cells[1].startswith("±"):
            floors = [float(cell.strip("± %")) for cell in cells[1:]]
        elif not line.startswith("|"):
            floors = []
        for cell, floor in zip(cells[1:], floors, strict=False) if cells[0] != "A/A" else ():
            percent, times = re.fullmatch(r"([+-][\d.]+) %", cell), re.fullmatch(r"([\d.]+)x", cell)
            size = abs(float(percent[1])) if percent else 100 * (float(times[1]) - 1) if times else 2 * floor
            if size < 2 * floor:
                yield cell


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(HERE)))
def test_no_table_prints_what_its_own_noise_refuses(document):
    assert list(_figures_below_noise(document.read_text())) == []


def test_such_figures_are_found():
    table = "| platform | a | b |\n| A/A | ±3 % | ±150 % |\n| x | +5.9 % | 3.9x |\n| y | -6.1 % | 4.1x |"
    assert list(_figures_below_noise(table)) == ["+5.9 %", "3.9x"]
