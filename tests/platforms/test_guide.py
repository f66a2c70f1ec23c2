"""What the documents say of platforms: all are there; the guide's own is found by its entry point and really run."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from tare import plugins
from tare.cli.doctor import examine
from tare.contract import hostile
from tare.contract.leftovers import left_on_host
from tare.errors import HostError
from tare.host import processes
from tare.host.resources import claims, kinds, removers
from tare.model import Arm
from tare.platforms import platform_registry

GUIDE = Path(__file__).parents[2] / "docs" / "add-a-platform.md"


def test_every_platform_is_on_the_platforms_page():
    page = (GUIDE.parent / "platforms.md").read_text()
    named = set(re.findall(r"[a-z][a-z0-9-]*(?::[A-Z.a-z]+)?", page))
    assert set(platform_registry.all_platforms()) - named == set()
    assert {f"{family}:" for family in platform_registry.families()} <= {
        word.partition(":")[0] + ":" for word in named if ":" in word
    }


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """The guide's package, installed as far as Python can tell."""
    text = GUIDE.read_text()
    code = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    points = re.search(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "tare_unshare.py").write_text(code)
    info = tmp_path / "tare_unshare-1.dist-info"
    info.mkdir()
    project = tomllib.loads(points)["project"]
    name, version = project["name"], project["version"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    registered = project["entry-points"]["tare.platforms"].items()
    (info / "entry_points.txt").write_text("\n".join(["[tare.platforms]", *(f"{k} = {v}" for k, v in registered)]))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(plugins.ALLOWED, "tare-unshare")


def test_it_is_found_by_its_entry_point(plugin):
    [platform] = platform_registry.choose(["unshare"])
    assert platform.title.startswith("util-linux")


@pytest.fixture
def table(monkeypatch):
    """The guide's kind of resource, as if its package were installed."""
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    [code] = [block for block in blocks if "ResourceKind(" in block]
    names = {}
    exec(compile(code, GUIDE, "exec"), names)
    [kind] = names["RESOURCES"]
    monkeypatch.setattr(kinds, "registered", lambda: {kind.name: kind})
    return kind


def test_its_kind_of_resource_keeps_the_contract(table, tmp_path):
    assert list(kinds.problems(table)) == []
    bounds = claims.Bounds(tmp_path)
    assert claims.fault(table.resource(name="tare-ab12cx0", family="inet"), bounds) is None
    assert claims.fault(table.resource(name="tare-ab12cx0", family="bridge"), bounds) is not None


def test_the_guide_has_every_rule():
    assert set(re.findall(r"^\| `FactRule\.(\w+)` \|", GUIDE.read_text(), re.MULTILINE)) == set(
        kinds.FactRule.__members__
    )


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.skipif(processes.find("nft") is None, reason="nftables is not installed")
def test_its_kind_of_resource_removes_a_table_that_is_there_or_gone(table):
    name = "tare-guide"
    resource = table.resource(name=name, family="inet")
    removers.remove(resource)
    processes.run(["nft", "add", "table", "inet", name]).require()
    assert list(table.left("guide")) == ["table inet tare-guide"]
    removers.remove(resource)
    assert not list(table.left("guide"))
    assert processes.run(["nft", "list", "table", "inet", name]).code != 0


def test_its_kind_of_resource_says_where_a_table_stays(table, tmp_path, monkeypatch):
    nft = tmp_path / "nft"
    nft.write_text("#!/bin/sh\n[ $1 = list ] && echo table inet tare-guide || { echo busy >&2; exit 1; }\n")
    nft.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(HostError, match="busy"):
        removers.remove(table.resource(name="tare-guide", family="inet"))


COPY = "import copy, tare.platforms.runc as runc\none = copy.copy(runc.PLATFORMS[0])\none.name = 'x'\n"
BROKEN = {
    "import no_such_module": "does not load: ModuleNotFoundError: No module named 'no_such_module'",
    "1 / 0": "does not load: ZeroDivisionError",
    "PLATFORMS = (5,)": "has no PLATFORMS",
    "": "has neither PLATFORMS nor FAMILIES",
    "FAMILIES = {'Fam': print}": "has a name that is not lower case words",
    "FAMILIES = {'ssh': print}": "names 'ssh:', which there is already",
    f"{COPY}one.start_limit_factor = 0\nPLATFORMS = (one,)": "has a start_limit_factor that is no number above 0",
    f"{COPY}one.second_baseline = 3\nPLATFORMS = (one,)": "has a second_baseline that is no tuple of families",
    f"{COPY}one.stand_in = 3\nPLATFORMS = (one,)": "has a stand_in that is no text",
    f"{COPY}one.alone = None\nPLATFORMS = (one,)": "has a alone that is no text",
    f"{COPY}one.untried = None\nPLATFORMS = (one,)": "has a untried that is no text",
    "from tare.platforms.runc import PLATFORMS": "names 'runc', which there is already",
    "from tare.platforms.native import PLATFORMS": "names a baseline",
}


@pytest.mark.parametrize("source", BROKEN)
def test_a_broken_one_is_left_out_with_one_line_that_says_whose_it_is(plugin, tmp_path, monkeypatch, capsys, source):
    monkeypatch.setattr(plugins, "_said", set())
    monkeypatch.delitem(sys.modules, "tare_unshare", raising=False)
    (tmp_path / "tare_unshare.py").write_text(source)
    assert "unshare" not in platform_registry.all_platforms()
    assert [platform.name for platform in platform_registry.choose(["native", "runc"])] == ["native", "runc"]
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("the plug-in 'unshare' of tare-unshare 1 (tare.platforms: tare_unshare) is left out: it ")
    assert BROKEN[source] in line
    sys.modules.pop("tare_unshare", None)


#: A plug-in's module with a family and nothing beside it: each platform of it has its argument for a version.
FAMILY_ALONE = """\
from tare.platforms.base import Availability
from tare.platforms.parts.bundles.oci_bundle import Net
from tare.platforms.runc import Runc


class Foo(Runc):
    untried = "there is no Foo"

    def __init__(self, argument):
        super().__init__(f"foo:{argument}", Net.VETH)
        self.argument = argument

    def detect(self):
        return Availability(True, version=self.argument)


def foo(argument):
    return Foo(argument)


foo.argument, foo.summary, foo.asks = "BAR", "Foo of a bar", "name one: -p foo:BAR"
FAMILIES = {"foo": foo}
"""


@pytest.mark.thorough
def test_a_family_needs_no_platform_beside_it(plugin, tmp_path):
    (tmp_path / "tare_unshare.py").write_text(FAMILY_ALONE)

    def tare(*words):
        """The command's JSON, as a process of its own: it finds the package as any installed one."""
        main = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from tare.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", main, *words, "--json"], check=False, capture_output=True, text=True, timeout=120
        )
        return json.loads(done.stdout), done.stderr

    listed, complaint = tare("list", "platforms")
    assert complaint == ""
    assert {"name": "foo:BAR", "title": "Foo of a bar", "asks": "name one: -p foo:BAR"} in listed["families"]
    assert not [item for item in listed["items"] if item["name"].startswith("foo")]
    examined, complaint = tare("doctor", "foo:bar")
    assert complaint == ""
    [row] = examined["platforms"]
    assert (row["name"], row["available"], row["version"]) == ("foo:bar", True, "bar")
    assert row["details"]["tried"] == "not started: there is no Foo"


BREAKS = """
class Broken(Unshare):
    name = "broken"

    def launch(self, spec, cleanup):
        return {"no": "instance"}


PLATFORMS = (Unshare(), Broken())
"""


@pytest.mark.host
@pytest.mark.own_host
def test_doctor_starts_an_instance_of_it_or_says_in_a_line_why_none_starts(plugin, tmp_path, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "tare_unshare", raising=False)
    module = tmp_path / "tare_unshare.py"
    module.write_text(module.read_text() + BREAKS)
    with pytest.raises(typer.Exit):
        examine(["unshare", "broken"], as_json=True)
    unshare, broken = json.loads(capsys.readouterr().out)["platforms"]
    assert (unshare["package"], unshare["available"]) == ("tare-unshare 1", True)
    assert unshare["details"]["tried"] == "an instance came up"
    assert unshare["details"]["security inside"].startswith("seccomp: ")
    assert not broken["available"]
    why = "an instance does not start: TypeError: the launch of broken gave dict, and not Instance (in "
    assert broken["reason"].startswith(why)
    assert "\n" not in broken["reason"]
    sys.modules.pop("tare_unshare")


@pytest.mark.host
@pytest.mark.own_host
def test_a_hostile_guest_writes_to_no_process_of_another_namespaces_proc():
    """There the number of its parent is that of some process of the host."""
    outside = ["unshare", "--pid", "--fork", "perl", "-e", hostile._SPEAK, "2", "78", "78", "0", "1"]
    done = processes.run(outside, time_limit_s=10)
    assert (done.code, done.text) == (3, "cannot: /proc is of another namespace\n")


@pytest.mark.host
def test_it_runs_and_leaves_nothing(plugin, launcher):
    [platform] = platform_registry.choose(["unshare"])
    assert platform.detect().available
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm("unshare"), measured=True)
    assert running.session.hello.pid == 1
    assert running.session.execute(["hostname", "other"], time_limit_s=10).code == 0
    assert running.marks.datagram_ns > 0
    label = running.instance.spec.id
    running.stop()
    assert left_on_host(label) == []
    assert Path("/proc/sys/kernel/hostname").read_text().strip() != "other"
