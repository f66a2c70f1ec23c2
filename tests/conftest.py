"""Some tests take minutes each: `make lab-test` asks for those that boot a lab, `make slow-test` for the slow ones,
`make browser-test` for those that open a page.
"""

import gc
import importlib
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import child_pythons
import forked_commands
from awake import Awake
from platforms_here import cannot_be
from starts_again import StartsAgain
from tare import plugins
from tare.campaign.host_session import HostSession, default_cpus
from tare.host import lock, state
from tare.host.network import fence
from tare.host.resources import unremoved
from tare.model import Resources
from tare.platforms.parts.common import attempt

#: Whatever plug-ins are installed where the tests run: those that a test installs itself, it names.
os.environ[plugins.ALLOWED] = ""
#: Every command that a test has the one door to processes start, on real hosts too, is looked at.
sys.addaudithook(child_pythons.refuse_exposed)
#: No test is timed: beside others an example takes longer than Hypothesis's 200 ms, and its data longer than it likes.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
ON_DEMAND = ("browser", "lab", "slow")
#: Thousands of collected tests stay until the end: by Python's defaults the collector looks at them again and again,
#: which takes 5 % of the quick tests' CPU time.
gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def _signals_of_a_shell():
    """Tests and what they start have a shell's signals: a script's `&` has two ignored, `nohup` one.

    In the process of the tests alone: a hang-up ends neither it nor the one that shares tests out, as nohup promises.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # what is started has the default


@pytest.fixture
def disk_path():
    """A folder whose files page caches hold and drop; /tmp may be in memory, as on Debian 13."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="tare-test-") as folder:
        yield Path(folder)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Which tests stay together where several hosts share them."""
    if config.getvalue("dist") == "loadscope":
        return importlib.import_module("shared_out").ByPlatform(config, log)
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    asked = config.option.markexpr or ""
    not_asked = [name for name in ON_DEMAND if name not in asked]
    passed_over, kept = [], []
    for item in items:
        (passed_over if any(map(item.get_closest_marker, not_asked)) else kept).append(item)
    if passed_over:
        config.hook.pytest_deselected(items=passed_over)
        items[:] = kept


@pytest.hookimpl
def pytest_runtest_setup(item):
    """On a processor that Debian's User-Mode Linux does not know its tests say so; elsewhere they must pass."""
    if item.get_closest_marker("host") and "callspec" in dir(item):
        named = [value for value in item.callspec.params.values() if isinstance(value, str)]
        for name in named:
            if reason := cannot_be(name):
                pytest.skip(f"{name}: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """All that a failed sandbox's console said, of which its error has the last lines."""
    report = yield
    console = getattr(call.excinfo.value, "console", b"") if call.excinfo else b""
    if console:
        report.sections.append(("console of the sandbox", console.decode(errors="replace")))
    return report


@pytest.fixture(scope="session")
def _lock_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("run") / "tare"


@pytest.fixture(autouse=True)
def _nothing_of_another_test(monkeypatch):
    """What another test could not remove, or found open to other users, is not this one's to tell."""
    monkeypatch.setattr(unremoved, "_noted", {})
    monkeypatch.setattr(state, "_closed", [])


@pytest.fixture(autouse=True)
def _a_lock_of_its_own(request, _lock_folder, monkeypatch):
    """Tests that need no host have nothing to do with a campaign that runs on it meanwhile."""
    if not request.node.get_closest_marker("host"):
        monkeypatch.setattr(lock, "FOLDER", _lock_folder)


@pytest.fixture(autouse=True)
def _ports_that_it_may_bind(monkeypatch):
    """Those of the fence are root's alone."""
    if os.geteuid() != 0:
        monkeypatch.setattr(fence, "OPEN_PORTS", range(7090, 7154))


@pytest.fixture(autouse=True)
def _patience_with_detection(request, monkeypatch):
    """A trivial sandbox has taken twelve seconds beside other tests that kept the processors busy."""
    if request.node.get_closest_marker("host"):
        monkeypatch.setattr(attempt, "LIMIT_S", 3 * attempt.LIMIT_S)


@pytest.fixture
def awake():
    """A clock that stands still while the machine keeps the tests from running."""
    with Awake() as clock:
        yield clock


@pytest.fixture(scope="module")
def prepared():
    """This host as a campaign has it: where instances start, and the client."""
    with HostSession() as host:
        launcher, client = host.prepare(host.image(), Resources(default_cpus(), 512 << 20))
        yield StartsAgain.of(launcher), client


@pytest.fixture(scope="module")
def launcher(prepared):
    """Where instances start."""
    return prepared[0]


@pytest.fixture(scope="session")
def jsonschema():
    """The library, loaded where it is asked for: it compiles 38 grammars first, for some seconds."""
    return importlib.import_module("jsonschema")


@pytest.fixture(scope="session")
def commands():
    """Runs commands as a user does, in processes that have loaded what every command loads and no more."""
    with forked_commands.Commands(forked_commands.EVERY) as runs:
        yield runs


@pytest.fixture(scope="session")
def reading_commands():
    """Runs commands as a user does, in processes that have loaded what it takes to read campaign files."""
    with forked_commands.Commands(forked_commands.READING) as runs:
        yield runs
