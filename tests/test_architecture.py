"""The way of the data, and the one door to processes, held by reading the imports."""

import ast
import functools
import graphlib
import importlib.util
import re
from pathlib import Path

import pytest

import child_pythons
from tare import store

TOP = Path(__file__).parent.parent
SOURCE = TOP / "src" / "tare"
AGENT = TOP / "agent" / "src"

ARCHITECTURE = TOP / "docs" / "architecture.md"

#: What each part may import from, besides itself, of those above it in docs/architecture.md.
MAY_IMPORT = {
    "model": set(),
    "errors": set(),
    "records": {"errors"},
    "footprint_model": {"model", "records"},
    "capacity_model": {"errors", "records"},
    "lazily": set(),
    "timeouts": set(),
    "safe_text": set(),
    "suggest": set(),
    "plugins": {"errors", "safe_text"},
    "extensions": {"errors", "plugins"},
    "fsync": set(),
    "inputs": {"errors"},
    "expressions": set(),
    "host": {"model", "errors", "records", "lazily", "timeouts", "suggest", "plugins", "fsync"},
    "image": {"model", "errors", "records", "lazily", "timeouts", "safe_text", "host"},
    "session": {"model", "errors", "records", "lazily", "timeouts"},
    "platforms": {
        "model", "errors", "records", "lazily", "timeouts", "suggest", "plugins", "inputs", "expressions", "host",
        "image", "session",
    },
    "workloads": {
        "model", "errors", "records", "capacity_model", "lazily", "safe_text", "suggest", "plugins", "extensions",
        "inputs", "expressions",
    },
    "estimates": {"model", "lazily"},
    "store": {"model", "errors", "records", "footprint_model", "lazily", "timeouts", "safe_text", "plugins"},
    "outputs": {"errors", "fsync", "store"},
    "campaign": {
        "model", "errors", "capacity_model", "lazily", "timeouts", "suggest", "host", "image", "session", "platforms",
        "workloads", "estimates", "store", "outputs", "extensions",
    },
    "contract": {
        "model", "errors", "records", "timeouts", "safe_text", "suggest", "host", "image", "session", "platforms",
        "workloads", "campaign",
    },
    "fleet": {
        "model", "errors", "records", "timeouts", "host", "image", "store", "outputs", "fsync",
    },
    "analysis": {
        "model", "errors", "records", "footprint_model", "capacity_model", "lazily", "inputs", "estimates", "store",
    },
    "report": {
        "model", "errors", "records", "footprint_model", "capacity_model", "lazily", "safe_text", "inputs",
        "estimates", "store", "outputs", "suggest", "plugins", "extensions", "analysis",
    },
    "catalogue": {"errors", "safe_text", "store", "analysis", "report"},
    "setup": {"model", "errors", "safe_text", "suggest", "host"},
    "cli": {
        "model", "errors", "footprint_model", "capacity_model", "lazily", "safe_text", "suggest", "inputs", "host",
        "image", "platforms", "workloads", "store", "outputs", "campaign", "contract", "fleet",
        "analysis", "report", "catalogue", "setup", "timeouts", "extensions",
    },
    "features": {
        "model", "errors", "footprint_model", "capacity_model", "extensions", "lazily", "safe_text", "suggest",
        "inputs", "records", "timeouts", "host", "image", "session", "platforms", "workloads", "estimates", "store",
        "outputs", "campaign",
        "analysis", "report", "catalogue", "cli",
    },
    "testing": {"errors", "workloads"},
    "__main__": {"cli"},
}  # fmt: skip


@functools.cache
def _modules():
    return sorted(SOURCE.rglob("*.py"))


def _guilty(complaints, files):
    """What is wrong in which of the files. One test holds them all: a test for each would cost more than its look."""
    by_file = {str(file.relative_to(SOURCE)): list(complaints(file)) for file in files}
    return {name: wrong for name, wrong in by_file.items() if wrong}


@functools.cache
def _tree(file):
    return ast.parse(file.read_text())


@functools.cache
def _nodes(file):
    """All nodes of a module: to walk its tree takes as long as to parse it."""
    return list(ast.walk(_tree(file)))


def _imports(file):
    for node in _nodes(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@functools.cache
def _named(file):
    """A module's name, as it is imported."""
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def _names():
    return frozenset(map(_named, _modules()))


def _depends_on(file):
    """The modules that one imports, also what it loads only when it needs it."""
    for node in _nodes(file):
        if isinstance(node, ast.ImportFrom):
            yield from {
                name for alias in node.names for name in (f"{node.module}.{alias.name}", node.module)
            } & _names()
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & _names()


def _part(name):
    """What is above its parts in the list: ``host`` of ``tare.host.network.bridge``; of ``tare`` itself ``""``."""
    return f"{name}.".split(".")[1]


def _against_the_flow(file):
    part = _part(_named(file))
    for name in _depends_on(file):
        if _part(name) not in {"", part, *MAY_IMPORT[part]}:
            yield f"{part} must not import {name}"


def test_imports_go_with_the_flow():
    assert _guilty(_against_the_flow, [file for file in _modules() if _part(_named(file))]) == {}


def test_the_flow_goes_down_the_list_of_the_architecture():
    """The list there is the order: each part is in it once, and imports from lines above its own alone."""
    listing = ARCHITECTURE.read_text().partition("\nsrc/tare/\n")[2].partition("```")[0]
    listed = re.findall(r"^  (\w+)(?:\.py|/) ", listing, re.MULTILINE)
    assert sorted(listed) == sorted({_part(_named(file)) for file in _modules()} - {""})
    assert sorted(listed) == sorted(MAY_IMPORT)
    upwards = {part: MAY_IMPORT[part] - {*listed[: listed.index(part)]} for part in listed}
    assert {part: below for part, below in upwards.items() if below} == {}


#: What only a database's own code says: statements, and the files that SQLite keeps beside one.
SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|(CREATE|DROP|ALTER) TABLE|PRAGMA)\b"
    r"|-(wal|shm|journal)$",
    re.DOTALL,
)


def _texts(file):
    """Every text of a module but its docstrings, which may name anything."""
    docstrings = {
        node.body[0].value
        for node in _nodes(file)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return (
        node.value
        for node in _nodes(file)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
    )


def _of_the_database(file):
    public = {*store.__all__} | {"outputs.py": {"places"}}.get(file.name, set())
    for node in _nodes(file):
        if isinstance(node, ast.ImportFrom) and node.module == "tare.store":
            yield from (f"not public: {alias.name}" for alias in node.names if alias.name not in public)
    for name in _imports(file):
        if name == "sqlite3":
            yield name
        if name.startswith("tare.store."):
            yield f"take it from tare.store: {name}"
    yield from (text for text in _texts(file) if SQL.search(text))


def test_only_the_store_knows_that_a_campaign_is_in_a_database():
    """Others have a `Store` by its protocol, from `tare.store` itself; who writes files asks which places are taken."""
    others = [file for file in _modules() if file.relative_to(SOURCE).parts[0] != "store"]
    assert _guilty(_of_the_database, others) == {}


def test_one_place_makes_and_opens_stores():
    opened = set()
    for file in _modules():
        for node in _nodes(file):
            if "SqliteStore" in {getattr(node, "id", None), getattr(node, "attr", None)}:
                opened.add(str(file.relative_to(SOURCE)))
    assert opened == {"store/opening.py", "store/sqlite.py"}


def test_no_module_takes_the_place_of_a_name_that_its_package_imports():
    """Python sets a module as an attribute of its package when it is imported: `tare.cli.store` hid `tare.store`."""
    hidden = []
    for package in SOURCE.rglob("__init__.py"):
        modules = {path.stem for path in package.parent.glob("*.py")} | {
            path.parent.name for path in package.parent.glob("*/__init__.py")
        }
        name = ".".join(package.parent.relative_to(SOURCE.parent).parts)
        for node in ast.walk(ast.parse(package.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module != name:
                own = {f"{name}.{module}" for module in modules}
                hidden += [
                    (name, alias.name)
                    for alias in node.names
                    if (alias.asname or alias.name) in modules and node.module not in own
                ]
    assert hidden == []


#: Modules that every feature may have under the same name: tare finds some of them by it, and readers find all of them.
OF_A_FEATURE = {"analysis", "checks", "command", "model", "profiles", "run", "section", "views", "words"}
#: The contracts of platforms and of workloads, which plug-ins import.
CONTRACTS = {"platforms/base.py", "workloads/base.py"}


def test_no_two_modules_share_a_name():
    places = {}
    for file in _modules():
        place = file.relative_to(SOURCE)
        standard = place.parts[0] == "features" and len(place.parts) == 3 and file.stem in OF_A_FEATURE
        if not file.stem.startswith("__") and not standard and str(place) not in CONTRACTS:
            places.setdefault(file.stem, []).append(str(place))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_two_public_classes_share_a_name():
    places = {}
    for file in _modules():
        for node in _tree(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file.relative_to(SOURCE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_modules_import_each_other_in_a_circle():
    uses = {_named(file): {*_depends_on(file)} - {_named(file)} for file in _modules()}
    packages = {_named(file) for file in _modules() if file.name == "__init__.py"}
    # What a package gathers for its users is its modules' matter, and no step up.
    graphlib.TopologicalSorter({name: used - packages for name, used in uses.items()}).prepare()


#: Within a part: what each folder or file may import of the others. One that is not named is imported by none of these.
INSIDE = {
    "host": {
        "kernel": set(),
        "distribution": {"kernel"},
        "instance_console": set(),
        "own_limits": {"kernel"},
        "processes": {"kernel", "distribution", "own_limits"},
        "libraries": {"processes"},
        "locked_packages": {"processes"},
        "own_namespaces": {"kernel", "distribution", "processes"},
        "state": {"own_namespaces"},
        "probe_cache": {"kernel", "state"},
        "systemd": {"kernel", "distribution", "processes"},
        "cgroup_files": set(),
        "cgroup_tree": {"kernel"},
        "cgroup": {"kernel", "own_namespaces", "systemd", "cgroup_files", "cgroup_tree"},
        "session_rights": {"kernel", "own_namespaces", "cgroup"},
        "facts": {"kernel", "distribution", "processes", "own_namespaces", "state", "probe_cache", "cgroup"},
        "lock": {"own_namespaces", "state"},
        "daemons": {"kernel", "processes", "state", "cgroup"},
        "resources": {"kernel", "processes", "own_namespaces", "state", "systemd", "cgroup", "lock", "daemons"},
        "userns": {"kernel", "processes", "resources"},
        "filesystems": {"kernel", "distribution", "processes", "own_namespaces", "state", "resources", "userns"},
        "own_daemon": {"kernel", "processes", "cgroup", "daemons", "resources"},
        "network": {"kernel", "distribution", "processes", "state", "cgroup", "resources", "own_daemon"},
        "own_dockerd": {"kernel", "distribution", "processes", "state", "daemons", "resources", "own_daemon"},
        "tuning": {"kernel", "processes", "facts", "resources"},
        "host_checks": {"distribution", "cgroup", "facts", "kernel"},
    },
    "platforms": {
        "watchers": set(),
        "base": {"watchers"},
        "parts": {"watchers", "base"},
        "platform_contract": {"base"},
        "platform_registry": {"base", "platform_contract"},
    },
    "platforms/parts": {
        "common": set(),
        "machines": set(),
        "bundles": {"common"},
        "engines": {"common"},
        "libvirt": {"common", "machines"},
        "nested": {"machines", "bundles"},
    },
    "features/kernel": {
        "lab": set(),
        "exchange": set(),
        "reading": set(),
        "counters": {"lab", "reading"},
        "surface": {"reading"},
        "checks": {"lab", "exchange", "counters", "surface"},
        "execution": {"lab", "exchange", "reading", "counters", "surface"},
        "analysis": set(),
        "models": {"analysis"},
        "words": {"analysis", "models"},
        "footprint_report": {"analysis", "models", "words"},
        "surface_report": {"models", "words", "footprint_report"},
        "section": {"analysis", "models", "words", "footprint_report", "surface_report"},
        "commands": {"lab", "exchange", "reading", "execution", "footprint_report", "surface_report"},
        "__main__": {"execution"},
    },
    "campaign": {
        "plan": set(),
        "instances": set(),
        "telemetry": {"instances"},
        "host_session": {"instances"},
        "execution": {"plan", "instances", "telemetry", "host_session"},
    },
    "analysis": {
        "quality": set(),
        "comparisons": {"quality"},
    },
    "report": {
        "model": set(),
        "section": {"model"},
        "parts": set(),
        "sentences": {"model"},
        "campaign": {"model", "section", "parts", "sentences"},
        "formats": {"model", "section", "parts", "sentences", "campaign"},
    },
    "features": {
        "capacity": set(),
        "life": set(),
        "compare": set(),
        "spread": set(),
        "diff": set(),
        "history": {"diff"},
        "studies": set(),
        "kernel": {"diff", "studies"},
    },
}


@pytest.mark.parametrize(("folder", "part"), [(folder, part) for folder, parts in INSIDE.items() for part in parts])
def test_within_a_part_imports_go_one_way_too(folder, part):
    parts = INSIDE[folder]
    package = f"tare.{folder.replace('/', '.')}."
    files = [*(SOURCE / folder).glob(f"{part}.py"), *(SOURCE / folder / part).rglob("*.py")]
    assert files
    assert parts[part] <= {*list(parts)[: list(parts).index(part)]}
    for file in files:
        inside = (name for name in _depends_on(file) if name.startswith(package))
        names = {name.removeprefix(package).split(".")[0] for name in inside}
        if folder == "analysis":  # its files beside the folders are used by all of these
            names &= parts.keys()
        assert names <= {part, *parts[part]}, file


@pytest.mark.parametrize("folder", INSIDE)
def test_every_folder_within_a_part_has_its_place(folder):
    assert {file.parent.name for file in (SOURCE / folder).glob("*/__init__.py")} <= INSIDE[folder].keys()


def test_text_of_the_host_is_read_in_one_place():
    """Bytes that are not UTF-8, or a file that is missing, end nothing there (`tare.host.kernel.host_text`)."""
    guilty = {}
    for file in _modules():
        parts = file.relative_to(SOURCE).parts
        of_kernel = parts[:2] == ("features", "kernel") and parts[2] != "lab"
        for node in _nodes(file):
            if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "read_text":
                continue
            says_how = {word.arg for word in node.keywords} & {"encoding", "errors"}
            if (of_kernel or parts[0] in {"host", "campaign", "platforms"}) and not says_how:
                guilty.setdefault(str(file.relative_to(SOURCE)), []).append(node.lineno)
    # What tare itself wrote, and its own files.
    own = {"host/daemons/runtimes.py", "platforms/parts/bundles/seccomp.py", "platforms/parts/libvirt/libvirtd.py"}
    assert set(guilty) == own


def test_one_place_starts_processes():
    # Types such as Popen may be named elsewhere; starting is what counts.
    starters = {"run", "Popen", "call", "check_call", "check_output", "system", "popen", "fork", "posix_spawn", "execv"}
    guilty = []
    for file in _modules():
        for node in _nodes(file):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in starters:
                owner = node.func.value
                if isinstance(owner, ast.Name) and owner.id in {"subprocess", "os"}:
                    guilty.append(str(file.relative_to(SOURCE)))
    assert set(guilty) == {"host/processes.py"}


def test_no_python_that_is_started_takes_modules_from_the_current_folder():
    """There another user may have put them: who types a command in /tmp would run them, often as root."""
    modules = [*_modules(), *(TOP / "scripts").glob("*.py"), *(TOP / "bench").glob("*.py")]
    in_code = {str(file.relative_to(TOP)): child_pythons.exposed_in_code(_tree(file)) for file in modules}
    scripts = [file for file in (TOP / "scripts").iterdir() if file.is_file() and file.suffix != ".py"]
    texts = [*scripts, TOP / "Makefile", TOP / ".ci" / "run", *SOURCE.rglob("*.sh")]
    in_texts = {str(file.relative_to(TOP)): child_pythons.exposed_in_text(file.read_text()) for file in texts}
    assert {name: found for name, found in (in_code | in_texts).items() if found} == {}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["python3", "-c", "import venv"], "python3 -c import venv"),
        (["unshare", "--pid", "/x/.venv/bin/python", "-u", "-m", "tare.contract.victim"], "/x/.venv/bin/python -u -m"),
        (["/usr/bin/python3.11", "-mpip"], "/usr/bin/python3.11 -mpip"),
        (["python3", "-I", "-c", "import venv"], ""),
        (["python3", "-P", "-u", "-m", "tare"], ""),
        (["python3", "scripts/sbom.py", "-c", "x"], ""),
        (["apt-get", "install", "python3", "python3-venv"], ""),
    ],
)
def test_a_python_in_the_current_folder_is_seen(words, found):
    assert (child_pythons.exposed(words) or "").startswith(found)
    assert bool(child_pythons.exposed(words)) == bool(found)
    code = child_pythons.exposed_in_code(ast.parse(f"argv = {words!r}"))
    assert bool(code) == bool(found)
    assert bool(child_pythons.exposed_in_text(" ".join(words))) == bool(found)


#: What leads to a standard stream, by the module that has it.
PRINTERS = {
    "sys": {"stdout", "stderr", "__stdout__", "__stderr__"},
    "typer": {"echo", "secho"},
    "click": {"echo", "secho"},
    "rich": {"print"},
    "rich.console": {"Console"},
    "traceback": {"print_exc", "print_exception"},
    "logging": {"basicConfig"},
    "pprint": {"pprint"},
}


def _prints(node):
    """Whether it writes to a standard stream, or makes what does, by any of the names that do."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in {"print", "input"}
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr in PRINTERS.get(node.value.id, ())
    if isinstance(node, ast.ImportFrom):
        return not PRINTERS.get(node.module, set()).isdisjoint(alias.name for alias in node.names)
    return False


def test_one_place_prints():
    # What a guest says is cleaned there: a second way to a terminal would be a way around it.
    guilty = {str(file.relative_to(SOURCE)) for file in _modules() if any(_prints(node) for node in _nodes(file))}
    # `cli/standard_streams.py` makes the streams themselves, and passes bytes on.
    assert guilty == {"safe_text.py", "cli/console.py", "cli/standard_streams.py"}


#: Texts of analysis with spaces that are no sentences for users, by their module, with the reason.
NO_SENTENCES = {
    # keys of a campaign's fairness manifest
    "fairness.py": {
        "cpus pinned", "cpu quota", "cpus seen inside", "memory limit", "memory seen inside", "kernel seen inside",
        "clock source inside", "tcp congestion control", "mtu inside", "data filesystem inside", "disk cache",
        "network path", "security inside", "security outside", "security beside", "mitigations inside", "daemons' cpus",
        "limit of swap", "limit of pids", "limit of nofile", "limit of memlock", "limit of core", "limit of stack",
        "limit of thp",
        "huge pages inside", "cpu scheduler", "i/o scheduler of /data", "socket limits inside", "filesystem of /tmp",
        "restrictions of /", "restrictions of /data", "fsync on /",
    },
}  # fmt: skip


def _user_texts(tree):
    """All texts, an f-string as one, but docstrings, assertions and what tells users that what they gave is wrong.

    Of such an error is what is raised (`UsageError`, and `ValueError` in what pydantic checks), and a fix; what names
    the data that a check refuses (the name in ``sample(values, "the baseline")``) is a value of the refusal.
    """
    naming = {"sample", "refuse_extremes"}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Assert):
            continue
        if isinstance(node, ast.Raise) and ast.unparse(node).startswith(("raise UsageError(", "raise ValueError(")):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in naming:
            continue
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in {"FIX", "_FIX"}:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            for part in node.values:
                yield from () if isinstance(part, ast.Constant) else _user_texts(part)
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        yield from _user_texts(node)


def _sentences(file):
    texts = {text for text in _user_texts(_tree(file)) if " " in text.strip()}
    allowed = NO_SENTENCES.get(file.name, set())
    for text in texts - allowed:
        yield f"a code and numbers instead; their words are made in report/sentences/: {text}"
    for text in allowed - texts:
        yield f"allowed, and no longer there: {text}"


def test_analysis_has_no_sentences():
    """It returns codes and numbers; `report/sentences/` makes text of them, and nothing reads that back."""
    assert _guilty(_sentences, sorted((SOURCE / "analysis").rglob("*.py"))) == {}


#: So many words are a title or the head of a column, more are a sentence.
MAX_WORDS = 5
#: Files of `formats` whose texts are no sentences of the report, with the reason.
NO_REPORT_SENTENCES = {
    "columns.py": "describes the columns that it declares",
    "metric_formats.py": "describes the metrics that it declares",
    "crate.py": "describes the files that it writes",
    "citation.py": "fields of citation formats",
    "documents.py": "LaTeX",
    "campaign_sql.py": "SQL",
}


def _long_texts(file):
    for text in _user_texts(_tree(file)):
        cells = re.sub(r"<[^>]*>|https?://\S+", "", text).split("|")
        if max(len(re.findall(r"[^\W\d_]{2,}", cell)) for cell in cells) > MAX_WORDS:
            yield f"its place is in report/sentences/: {text}"


def test_sentences_of_the_report_are_made_in_one_place():
    """Elsewhere are titles and heads of columns."""
    folders = INSIDE["report"].keys() - {"section", "sentences"}
    files = [file for folder in folders for file in sorted((SOURCE / "report" / folder).rglob("*.py"))]
    kept = [file for file in files if file.parent.name != "formats" or file.name not in NO_REPORT_SENTENCES]
    assert len(files) - len(kept) == len(NO_REPORT_SENTENCES)
    assert _guilty(_long_texts, kept) == {}


#: So many words of a template are a heading or a label, more are a sentence.
MAX_TEMPLATE_WORDS = 4
TEMPLATES = SOURCE / "report" / "formats" / "templates"


def _template_texts(source):
    """What a template itself has readers see or hear, an element or a branch as one; expressions but for quotations."""
    source = re.sub(r"\{#.*?#\}|<style>.*?</style>", "", source, flags=re.DOTALL)
    for code in re.findall(r"\{\{.*?\}\}|\{%.*?%\}", source, flags=re.DOTALL):
        yield from re.findall(r"\"([^\"]*)\"", code)
    source = re.sub(r"\{\{.*?\}\}", "", re.sub(r"\{%.*?%\}", "\0", source, flags=re.DOTALL), flags=re.DOTALL)
    yield from re.findall(r"\b(?:title|aria-label|placeholder|alt)=\"([^\"]*)\"", source)
    yield from re.split(r"<[^<>]*>|\0", re.sub(r"</?(?:b|i|code|strong|sub|sup)>|&\w+;", " ", source))


def _template_sentences(file):
    for text in _template_texts(file.read_text(encoding="utf-8")):
        if len(re.findall(r"[^\W\d_]{2,}", text)) > MAX_TEMPLATE_WORDS:
            yield f"its place is in report/sentences/: {' '.join(text.split())}"


def test_templates_only_place_sentences():
    files = sorted(TEMPLATES.glob("*.html"))
    assert files
    assert _guilty(_template_sentences, files) == {}


@pytest.mark.parametrize(
    "sentence",
    [
        "<p>A <b>bold</b> sentence of five words</p>",
        "<p>More than {{ number }} of them were left</p>",
        '{{ "a sentence that stands in an expression" if chosen }}',
        '<td title="a sentence that is hovered over">',
    ],
)
def test_a_sentence_in_a_template_is_seen(sentence):
    texts = [len(re.findall(r"[^\W\d_]{2,}", text)) for text in _template_texts(sentence)]
    assert max(texts) > MAX_TEMPLATE_WORDS


def test_the_agent_goes_down_one_way():
    """What a file or folder of the agent uses never comes back to it. Comments and its own tests do not count."""
    uses = {}
    for file in sorted(AGENT.rglob("*.rs")):
        module = file.relative_to(AGENT).parts[0].removesuffix(".rs")
        code = re.sub(r"//.*", "", file.read_text().split("#[cfg(test)]")[0])
        lists = re.findall(r"\bcrate::(?:(\w+)|\{([^;]*)\})", code)
        named = {
            name for first, several in lists for name in (first, *re.findall(r"(?:^|[{,])\s*(\w+)", several)) if name
        }
        uses.setdefault(module, set()).update(named - {module})
    assert {"probes", "message", "away", "sys"} <= set.union(*uses.values())
    graphlib.TopologicalSorter(uses).prepare()  # CycleError names the circle


def _shell_scripts(nodes):
    """The script of every command line ``sh -c SCRIPT`` that is written as a list or tuple, whatever is around it."""
    for node in nodes:
        words = node.elts if isinstance(node, ast.List | ast.Tuple) else node.args if isinstance(node, ast.Call) else []
        for shell, option, script in zip(words, words[1:], words[2:], strict=False):
            argv_start = [word.value if isinstance(word, ast.Constant) else None for word in (shell, option)]
            if re.fullmatch(r"(.*/)?(ba|da)?sh -\w*c", f"{argv_start[0]} {argv_start[1]}"):
                yield script


def _unfixed_scripts(file):
    nodes = _nodes(file)
    local = {  # what a function calls by a name
        node.targets[0].id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }

    def fixed(node):
        if isinstance(node, ast.JoinedStr):
            return all(fixed(part.value) for part in node.values if isinstance(part, ast.FormattedValue))
        if isinstance(node, ast.Name | ast.Attribute):
            name = ast.unparse(node).split(".")[-1]
            return (name not in local or fixed(local[name])) if name.isupper() else fixed(local.get(name))
        return isinstance(node, ast.Constant)

    texts = (node for node in nodes if isinstance(node, ast.JoinedStr))
    scripts = [node for node in texts if re.search(r"(^|[\s/])sh -c", ast.unparse(node))]
    for script in [*_shell_scripts(nodes), *scripts]:
        if not fixed(script):
            yield f"line {script.lineno}: {ast.unparse(script)}"


def test_values_reach_a_shell_as_arguments_and_never_in_its_script():
    """A script is made of literals and of constants in capitals; what differs from run to run comes after it: "$1"."""
    assert _guilty(_unfixed_scripts, _modules()) == {}


#: Of a command's exit code the docstring says "Exits"; a check of a platform has the promise as its docstring.
TOLD_OTHERWISE = {"AssertionError", "NotImplementedError", "Exit", "BrokenPromiseError"}


def _own_nodes(function):
    """The nodes of a function but for those of functions, classes and lambdas in it."""
    nodes = list(function.body)
    while nodes:
        node = nodes.pop()
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            nodes += ast.iter_child_nodes(node)


def _raised(function):
    """The names of the errors that a function itself makes and raises; what it only raises again is not among them."""
    for node in _own_nodes(function):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func).split(".")[-1]
            if name[:1].isupper() and name not in TOLD_OTHERWISE:
                yield name


def _public_functions(tree):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if isinstance(node, ast.FunctionDef):
                yield node
            else:
                yield from _public_functions(node)


def _untold_errors(file):
    for function in _public_functions(_tree(file)):
        docstring = ast.get_docstring(function)  # a method without one is told of by the class that declares it
        if docstring is not None and not re.search(r"\braises?\b", docstring, re.IGNORECASE):
            yield from (f"line {function.lineno}: {function.name} raises {name}" for name in _raised(function))


def test_docstrings_of_public_functions_say_what_they_raise():
    commands = {*(SOURCE / "cli" / "commands").rglob("*.py"), *(SOURCE / "features").rglob("*command.py")}
    assert _guilty(_untold_errors, [file for file in _modules() if file not in commands]) == {}


def test_code_in_texts_names_what_is_there():
    """Programs that tests and scripts hand to another Python: a module's new name would be found when they run."""
    stated = re.compile(r"\bfrom (tare(?:\.\w+)*) import (\w+(?:, \w+)*)")
    missing = set()
    for file in (path for part in ("tests", "scripts", "bench") for path in (TOP / part).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for module, names in stated.findall(node.value):
                    missing |= {
                        f"{file.name}: {module}.{name}" for name in names.split(", ") if not _is_there(module, name)
                    }
    assert missing == set()


def _is_there(module, name):
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.util.find_spec(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False
