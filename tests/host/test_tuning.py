"""What `--tune` wants, on the files of several machines; and that all is given back, whatever happens."""

import subprocess
import sys
import textwrap

import pytest

from host import machines
from tare.errors import HostError
from tare.host.kernel import cpulist, settings
from tare.host.resources import removers
from tare.host.resources.claims import Bounds
from tare.host.resources.journal import CleanupStack, Journal, sweep
from tare.host.resources.resource import HostResource
from tare.host.tuning import tune


def journal_of(tmp_path):
    """One that knows where this test's settings are."""
    return Journal(tmp_path / "journal", Bounds(tmp_path, tmp_path / "root"))


def wanted(values, measured=(1,)):
    """What changes: the wanted values by path."""
    return {
        setting.path: setting.wanted
        for setting in tune.plan(values, measured)
        if setting.wanted not in {None, setting.present}
    }


def lacking(values, measured=(1,)):
    return {setting.name: setting.why for setting in tune.plan(values, measured) if setting.wanted is None}


def seen(tmp_path, texts):
    return tune.look(machines.write(tmp_path / "root", texts))


def test_a_laptop_is_made_quiet(tmp_path):
    settings = seen(tmp_path, machines.LAPTOP)
    assert wanted(settings, (2, 3)) == {
        **{f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor": "performance" for cpu in range(4)},
        "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
        "sys/kernel/mm/transparent_hugepage/enabled": "madvise",
        "sys/kernel/mm/ksm/run": "0",
        "proc/sys/vm/swappiness": "0",
        "proc/sys/kernel/randomize_va_space": "2",  # on, and not off: see the module
        "proc/sys/kernel/numa_balancing": "0",
        "proc/sys/kernel/nmi_watchdog": "0",
        "proc/sys/kernel/timer_migration": "0",
        "proc/irq/8/smp_affinity_list": "0-1",
        "proc/irq/120/smp_affinity_list": "0-1",  # it was the measured CPU's alone; 9 was none of theirs
    }
    assert lacking(settings) == {}


def test_a_server_that_is_tuned_already_is_left_alone(tmp_path):
    settings = seen(tmp_path, machines.SERVER)
    assert wanted(settings) == {}
    assert lacking(settings) == {}


def test_the_captured_guest_has_no_frequency_and_most_of_the_rest_already(tmp_path):
    settings = seen(tmp_path, machines.captured())
    changes = wanted(settings)
    assert {path for path in changes if "irq" not in path} == {
        "proc/sys/vm/swappiness",
        "proc/sys/kernel/timer_migration",
    }
    assert {changes[path] for path in changes if "irq" in path} == {"0"}
    assert set(lacking(settings)) == {"governor", "turbo"}


def test_a_machine_that_shows_nothing_is_told_setting_by_setting():
    assert wanted({}) == {}
    assert {"governor", "turbo", "swappiness", "huge pages", "aslr", "ksm", "interrupts"} <= set(lacking({}))


def test_instances_on_all_cpus_leave_none_for_interrupts(tmp_path):
    settings = seen(tmp_path, machines.SERVER)
    assert "none is left" in lacking(settings, (0, 1))["interrupts"]


def test_a_driver_without_the_governor_is_not_written_to():
    folder = "sys/devices/system/cpu/cpu0/cpufreq"
    offered = {f"{folder}/scaling_governor": "schedutil", f"{folder}/scaling_available_governors": "schedutil ondemand"}
    assert lacking(offered)["governor of cpu0"] == "performance is not among schedutil, ondemand"


def test_of_a_choice_the_value_is_the_word_in_brackets(tmp_path):
    machines.write(tmp_path, {"enabled": "always [madvise] never", "swappiness": "60"})
    assert settings.read(tmp_path / "enabled") == "madvise"
    assert settings.read(tmp_path / "swappiness") == "60"
    assert settings.read(tmp_path / "none") is None


def test_what_was_set_is_given_back_at_the_end(tmp_path):
    before = seen(tmp_path, machines.LAPTOP)
    root, journal = tmp_path / "root", journal_of(tmp_path)
    with tune.tuned(journal, (2, 3), root) as outcomes:
        during = tune.look(root)
        assert {path: during[path] for path in wanted(before, (2, 3))} == wanted(before, (2, 3))
        assert len(journal.entries()) == len(wanted(before, (2, 3)))
    assert {outcome.outcome for outcome in outcomes} == {"changed", "as wanted"}
    assert tune.look(root) == before
    assert journal.entries() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_was_set_is_given_back_after_an_error(tmp_path, error):
    before = seen(tmp_path, machines.LAPTOP)
    root, journal = tmp_path / "root", journal_of(tmp_path)
    with pytest.raises(error), tune.tuned(journal, (1,), root):
        raise error
    assert tune.look(root) == before
    assert journal.entries() == []


def test_what_somebody_else_set_meanwhile_stays(tmp_path):
    machines.write(tmp_path / "root", machines.LAPTOP)
    swappiness = tmp_path / "root/proc/sys/vm/swappiness"
    with tune.tuned(journal_of(tmp_path), (1,), tmp_path / "root"):
        assert settings.read(swappiness) == "0"
        swappiness.write_text("10\n")
    assert settings.read(swappiness) == "10"
    assert journal_of(tmp_path).entries() == []


def test_giving_back_twice_or_what_was_never_set_does_nothing(tmp_path):
    file = tmp_path / "swappiness"
    resource = removers.setting(file, "60", "0")
    removers.remove(resource)  # no such file any more
    assert not file.exists()
    file.write_text("0\n")
    removers.remove(resource)
    removers.remove(resource)
    assert settings.read(file) == "60"


def test_after_a_reboot_a_setting_is_the_boots_own(tmp_path):
    file = tmp_path / "swappiness"
    file.write_text("0\n")
    resource = removers.setting(file, "60", "0")
    removers.remove(HostResource(resource.kind, {**resource.facts, "boot": "another"}))
    assert settings.read(file) == "0"


def test_what_the_kernel_refuses_is_told_and_nothing_else_is_left_out(tmp_path, monkeypatch):
    machines.write(tmp_path / "root", machines.LAPTOP)
    write = settings.write

    def refuse(file, value):
        if "irq" in str(file):
            raise OSError(5, "Input/output error")
        write(file, value)

    monkeypatch.setattr(settings, "write", refuse)
    with tune.tuned(journal_of(tmp_path), (2, 3), tmp_path / "root") as outcomes:
        lines = tune.described(outcomes)
    assert lines == ["interrupt 8, interrupt 120: the kernel refuses it: Input/output error"]
    assert sum(outcome.outcome == "changed" for outcome in outcomes) == 12


def test_a_value_that_the_kernel_does_not_keep_is_a_refusal(tmp_path, monkeypatch):
    file = tmp_path / "value"
    file.write_text("1\n")
    monkeypatch.setattr(settings, "read", lambda _: "1")
    with pytest.raises(OSError, match="says 1 after 0 was written"):
        settings.write(file, "0")


def test_a_setting_that_cannot_be_given_back_stays_in_the_journal(tmp_path, monkeypatch):
    file = tmp_path / "root" / "proc/sys/vm/swappiness"
    file.parent.mkdir(parents=True)
    file.write_text("60\n")
    journal = journal_of(tmp_path)
    cleanup = CleanupStack(journal)
    cleanup.own(removers.setting(file, "60", "0"))
    settings.write(file, "0")
    monkeypatch.setattr(settings, "write", lambda *_: (_ for _ in ()).throw(OSError(1, "Operation not permitted")))
    with pytest.raises(HostError, match="cannot be set to 60 again") as error:
        cleanup.release()
    assert error.value.fix == f"echo 60 > {file}"
    assert [str(entry.resource) for entry in journal.entries()] == [f"setting {file} 60"]


_KILLED = """
import os, pathlib, signal, sys, time
from tare.host.tuning import tune
from tare.host.resources.claims import Bounds
from tare.host.resources.journal import Journal
journal, root = map(pathlib.Path, sys.argv[1:3])
with tune.tuned(Journal(journal, Bounds(journal.parent, root)), [int(sys.argv[3])], root) as outcomes:
    print(sum(one.outcome == "changed" for one in outcomes), flush=True)
    os.kill(os.getpid(), getattr(signal, sys.argv[4]))
    while True:  # signal.pause() would not end where another thread takes the signal
        time.sleep(0.05)
"""


def _killed(journal, root, cpu, how):
    """Tune in a process that gets a signal in the middle; returns how many settings it had changed by then."""
    program = textwrap.dedent(_KILLED)
    if how != "SIGKILL":  # as the command line does
        program = f"import signal\nsignal.signal(signal.{how}, signal.default_int_handler)\n" + program
    argv = [sys.executable, "-c", program, str(journal), str(root), str(cpu), how]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    return int(done.stdout)


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_signal_in_the_middle(tmp_path, how):
    before = seen(tmp_path, machines.LAPTOP)
    root, journal = tmp_path / "root", journal_of(tmp_path)
    changed = _killed(tmp_path / "journal", root, 3, how)
    assert changed > 10
    if how == "SIGKILL":
        assert tune.look(root) != before
        assert {step.resource.kind for step in sweep(journal)} == {"setting"}
    assert tune.look(root) == before
    assert journal.entries() == []


@pytest.mark.host
def test_this_host_after_sigkill_and_the_sweep(tmp_path):
    before = tune.look()
    cpu = max(cpulist.parse(before["sys/devices/system/cpu/online"]))
    assert wanted(before, (cpu,)), "nothing to set here: the test would show nothing"
    journal = Journal(tmp_path / "journal")
    try:
        changed = _killed(tmp_path / "journal", "/", cpu, "SIGKILL")
        during = tune.look()
        moved = {path for path in before if during[path] != before[path]}
        assert len(moved) == changed > 0
    finally:
        steps = list(sweep(journal))
    assert [step.kept for step in steps if step.kept] == []
    assert tune.look() == before
    assert journal.entries() == []
