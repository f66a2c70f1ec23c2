"""On an emulated machine a workload's commands are given as much longer as everything else."""

from types import SimpleNamespace

from tare.campaign import runs
from tare.workloads.base import Command


def test_a_command_inside_has_its_limit_stretched(monkeypatch):
    limits = []

    def execute(argv, *, time_limit_s, **_):
        limits.append(time_limit_s)
        return SimpleNamespace(code=0, stdout=b"", stderr=b"", wall_ns=1, timed_out=False, signal=None)

    live = SimpleNamespace(session=SimpleNamespace(execute=execute, start=execute))
    for told in ("", "12"):
        monkeypatch.setenv("TARE_PATIENCE", told)
        runs._inside(Command(("true",), time_limit_s=5.0), live)
        runs._start(Command(("true",), time_limit_s=5.0), live)
    assert limits == [5.0, 5.0, 60.0, 60.0]
