from tare.host import processes
from tare.platforms import platform_registry
from tare.platforms.youki import version
from tare.setup.components import COMPONENTS
from tare.setup.install_plan import named, plan, words

#: What `youki --version` of 0.7.0 printed.
PRINTED = """\
youki version: 0.7.0
commit: 0.7.0-VERGEN_IDEMPOTENT_OUTPUT
spec: 1.1.0
rustc: 1.95.0
"""


def test_the_version_is_youkis_own():
    assert version(PRINTED) == "0.7.0"
    assert version("") == "unknown"


def test_without_it_the_fix_is_a_step_of_the_set_up(monkeypatch, tmp_path):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    monkeypatch.setattr(processes, "find", lambda program: None)
    [platform] = platform_registry.choose(["youki"])
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, "youki is not installed")
    assert answer.fix == "tare setup --with youki"


def test_it_is_built_unless_one_is_there_and_takes_cargo_only_then():
    there = words() - {"bin/youki", "youki"}
    assert plan(named("youki"), there).built == ("youki",)
    assert plan(named("youki"), {*there, "youki"}).built == ()
    assert not any("youki" not in need.instead for need in COMPONENTS["youki"].needs)
