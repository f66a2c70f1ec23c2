"""Linpack: HPL of Debian's hpcc, one process, a system of linear equations in double precision.

Morabito 2015, whom Giallorenzo 2021 quotes on containers, measured Linpack. Debian's HPL is that of the HPC Challenge,
which always runs its other tests too: they take as long again, and the CPU cost of a run is that of all of them. It
uses the reference BLAS, which is the same plain code on every processor: the figure is far below that of a tuned one,
and shows the platform's overhead as well.

One process needs no mpirun: `ess_singleton_isolated` keeps Open MPI from starting a daemon, which would ask for a
network and for more of /sys and /proc than some sandboxes have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import HostError, ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import agree, positive, read_lines, text_of

#: An emulated processor takes some thirty times as long as the host's.
LIMIT_S = 1800.0
#: The matrix, what the other tests take beside it, and Open MPI.
COPIES, BESIDE_BYTES = 4, 64 * 2**20
_ENV: Mapping[str, str] = {
    "LC_ALL": "C",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_ess_singleton_isolated": "1",
}
#: One value a line, as HPL.dat has them: one size, one block size, one process; the rest as in its example.
_INPUT = """\
HPLinpack benchmark input file
tare
HPL.out output file name
8       device out
1       # of problems sizes
{n}     N
1       # of NBs
{nb}    NB
0       PMAP
1       # of process grids
1       P
1       Q
16.0    threshold of the residual
1       # of panel fact
2       PFACT: right
1       # of recursive stopping criterium
4       NBMIN
1       # of panels in recursion
2       NDIV
1       # of recursive panel fact
1       RFACT: Crout
1       # of broadcast
1       BCAST: 1ringM
1       # of lookahead depth
1       DEPTH
2       SWAP: mix
64      swapping threshold
0       L1: transposed
0       U: transposed
1       equilibration
8       memory alignment in double
0       # of additional problem sizes for PTRANS
0       values of N
0       # of additional blocking sizes for PTRANS
0       values of NB
"""
#: What is shown of all that hpcc writes: HPL's part without its explanations, and the summary's figures of it.
_SHOW = (
    "sed -n -e '/^Begin of HPL section/,/^End of HPL section/{/^The following parameter/,/^End of HPL section/p}'"
    " -e '/^Success=/p' -e '/^HPL_\\(Tflops\\|time\\|N\\|NB\\)=/p' -e '/^End of HPC Challenge tests/p' hpccoutf.txt"
)
_NUMBER = r"\d+(?:\.\d+)?(?:e[+-]\d+)?"
_LINE, _DOUBLE = "-+", "=+"
_GRAMMAR = (
    r"The following parameter values will be used:",
    r"N +: +(?P<n>\d+)",
    r"NB +: +(?P<nb>\d+)",
    r"PMAP +: Row-major process mapping",
    r"P +: +1",
    r"Q +: +1",
    r"PFACT +: +Right",
    r"NBMIN +: +4",
    r"NDIV +: +2",
    r"RFACT +: +Crout",
    r"BCAST +: +1ringM",
    r"DEPTH +: +1",
    r"SWAP +: Mix \(threshold = 64\)",
    r"L1 +: transposed form",
    r"U +: transposed form",
    r"EQUIL +: yes",
    r"ALIGN +: 8 double precision words",
    _LINE,
    r"- The matrix A is randomly generated for each test\.",
    r"- The following scaled residual check will be computed:",
    r"\|\|Ax-b\|\|_oo / \( eps \* \( \|\| x \|\|_oo \* \|\| A \|\|_oo \+ \|\| b \|\|_oo \) \* N \)",
    rf"- The relative machine precision \(eps\) is taken to be +{_NUMBER}",
    r"- Computational tests pass if scaled residuals are less than +16\.0",
    _DOUBLE,
    r"T/V +N +NB +P +Q +Time +Gflops",
    _LINE,
    rf"WR11C2R4 +(?P<row_n>\d+) +(?P<row_nb>\d+) +1 +1 +(?P<row_seconds>{_NUMBER}) +(?P<gflops>{_NUMBER})",
    _LINE,
    rf"\|\|Ax-b\|\|_oo/\(eps\*\(\|\|A\|\|_oo\*\|\|x\|\|_oo\+\|\|b\|\|_oo\)\*N\)= +(?P<residual>{_NUMBER}) \.+ PASSED",
    _DOUBLE,
    r"Finished +1 tests with the following results:",
    r"1 tests completed and passed residual checks,",
    r"0 tests completed and failed residual checks,",
    r"0 tests skipped because of illegal input values\.",
    _LINE,
    r"End of Tests\.",
    _DOUBLE,
    r"Current time \(\d+\) is .+",
    r"End of HPL section\.",
    r"Success=1",
    rf"HPL_Tflops=(?P<tflops>{_NUMBER})",
    rf"HPL_time=(?P<seconds>{_NUMBER})",
    r"HPL_N=(?P<last_n>\d+)",
    r"HPL_NB=(?P<last_nb>\d+)",
    r"End of HPC Challenge tests\.",
)
#: The shown time has two decimals.
_HUNDREDTH = 0.01


class Linpack(RunWorkload):
    """One run of `hpcc`. Parameters: ``n``, the number of equations; ``nb``, of them in a block."""

    name = "linpack"
    title = "Linpack: HPL of the HPC Challenge, one process, reference BLAS"
    family = Family.CPU
    metrics = (Metric("gflops", "GFLOPS", Direction.HIGHER, "floating-point operations of HPL a second"),)
    work_unit = "run"
    packages = ("coreutils", "hpcc")
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"n": 1000, "nb": 64}, "full": {"n": 3000, "nb": 64}}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        n = int(params["n"])
        needed = COPIES * 8 * n * n + BESIDE_BYTES
        if around.memory_bytes < needed:
            raise HostError(
                f"{n} equations need {needed >> 20} MiB of memory, the instance has {around.memory_bytes >> 20}",
                fix="give a larger --memory, or use the profile quick",
            )
        order = _INPUT.format(n=n, nb=params["nb"]).encode()
        clean = Command(("sh", "-c", "rm -f hpccinf.txt hpccoutf.txt"))
        return RunPlan(
            prepare=(clean, Command(("sh", "-c", "cat >hpccinf.txt"), stdin=order)),
            measures=(Command(("hpcc",), env=_ENV, time_limit_s=LIMIT_S), Command(("sh", "-c", _SHOW), env=_ENV)),
            cleanup=(clean,),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 2:
            raise ParseError(f"a run of hpcc and its report were planned, {len(results)} results came")
        text_of(results[0])
        fields = read_lines("hpcc", text_of(results[1]), _GRAMMAR)
        for name in ("n", "nb"):
            shown = {fields[name], fields[f"row_{name}"], fields[f"last_{name}"]}
            if shown != {str(params[name])}:
                raise ParseError(f"hpcc solved {name.upper()}={'/'.join(sorted(shown))}, not {params[name]}")
        n, seconds = int(fields["n"]), positive("hpcc", "a time", fields["seconds"])
        gflops = positive("hpcc", "Tflops", fields["tflops"]) * 1e3
        agree("hpcc", "Gflops", gflops, float(fields["gflops"]))
        agree("hpcc", "the time", seconds, float(fields["row_seconds"]), slack=_HUNDREDTH)
        # HPL's own count, HPL_pdtest.c: 2/3 n^3 + 3/2 n^2.
        agree("hpcc", "Gflops and the time", gflops, (2 / 3 * n**3 + 3 / 2 * n**2) / seconds / 1e9)
        return Outcome({"gflops": gflops}, work=1)


WORKLOAD = Linpack()
