"""How fast CPython adds numbers: an interpreter's loop, with a figure a round. It brings CPython into the image."""

from tare.errors import ParseError
from tare.model import Direction, Family, Layer, Metric
from tare.workloads.base import Command, Outcome, RunPlan, RunWorkload
from tare.workloads.output import read_lines, text_of

PROGRAM = """\
import sys, time
spent = 0
for _ in range(int(sys.argv[1])):
    began = time.perf_counter_ns()
    total = 0
    for number in range(int(sys.argv[2])):
        total += number
    took = time.perf_counter_ns() - began
    spent += took
    print(total, took)
print("in all", spent)
"""


class PythonLoop(RunWorkload):
    """One run of CPython. Parameters: ``turns`` of the loop, with a figure each, and the ``steps`` of each turn."""

    name = "python-loop"
    title = "CPython: a loop that adds numbers"
    family = Family.CPU
    metrics = (Metric("steps-per-second", "steps/s", Direction.HIGHER, "steps of the loop a second"),)
    work_unit = "step"
    packages = ("python3-minimal",)
    layer = Layer("python", '[recorded]\npackages = ["python3-minimal"]\n')
    profiles = {"quick": {"turns": 5, "steps": 200_000}, "full": {"turns": 20, "steps": 2_000_000}}

    def plan(self, params, around):
        argv = ("python3", "-c", PROGRAM, str(params["turns"]), str(params["steps"]))
        return RunPlan(measures=(Command(argv, time_limit_s=300.0),))

    def parse(self, params, results):
        turns, steps = int(params["turns"]), int(params["steps"])
        lines = [rf"(?P<total{turn}>\d+) (?P<ns{turn}>\d+)" for turn in range(turns)]
        fields = read_lines("python3", text_of(results[0], "stdout"), [*lines, r"in all (?P<spent>\d+)"])
        if int(fields["spent"]) != sum(int(fields[f"ns{turn}"]) for turn in range(turns)):
            raise ParseError(f"python3 counted {fields['spent']} ns in all, and something else in its turns")
        figures = []
        for turn in range(turns):
            total, ns = int(fields[f"total{turn}"]), int(fields[f"ns{turn}"])
            if total != steps * (steps - 1) // 2 or ns == 0:
                raise ParseError(f"python3 added up {total} in {ns} ns, in {steps} steps")
            figures.append(steps * 1e9 / ns)
        if int(fields["spent"]) > results[0].wall_ns:
            raise ParseError("python3 counted more time than it took")
        return Outcome({}, work=turns * steps, series={"steps-per-second": figures})


WORKLOAD = PythonLoop()
