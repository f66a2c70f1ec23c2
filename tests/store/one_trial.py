"""A trial of the invented campaign with something of everything, and what SQLite has no plain form for."""

import math

from tare.model import Arm, ClockFacts, Sample, SliceFacts, Status, Trial, TrialKey

KEY = TrialKey(0, "prime-slices", Arm("native"))
TRIAL = Trial(
    key=KEY,
    status=Status.OK,
    reason=None,
    seq=0,
    started=1.5,
    wall_ns=10,
    cpu_ns=2**60 + 1,
    daemon_cpu_ns=None,
    steal=0.01,
    pressure=None,
    load=0.25,
    samples=(Sample("rate", 2.5, 0), Sample("rate", math.nan, 1), Sample("cpu-cost", math.inf, 0)),
    slices=(SliceFacts(0, 1, 2**60 + 3, 4, None, 6, 7),),
    outputs={"stdout": b"hello"},
    clock=ClockFacts(-(2**60), 8, -0.25, 1e6),
)
