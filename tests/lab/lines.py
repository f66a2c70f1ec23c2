"""In a lab whose kernel counts its lines: reads it empty, and with work of which the truth is known, as JSON."""

import subprocess
import sys
import time

from tare.features.kernel.counters.source_lines import LineCounter
from tare.footprint_model import EMPTY, Footprint, Phase, Scope
from tare.model import Level

#: How often a process asks for its session in each window; nothing else on the host does.
ASKED = (1234, 777)
EMPTIES = 3
CALLS = "import os\nfor _ in range({}): os.getsid(0)"


def reading(counter, platform, repeat, times=0):
    """What is counted while a process asks so often; 0: nothing is started at all."""
    counter.reset()
    began = time.monotonic()
    if times:
        subprocess.run([sys.executable, "-c", CALLS.format(times)], check=True)
    seconds = time.monotonic() - began
    return Footprint(
        level=Level.LINES, scope=Scope.HOST, platform=platform, phase=Phase.STEADY,
        workload="getsid" if times else None, repeat=repeat, seconds=seconds, hits=counter.read().hits[Scope.HOST],
    )  # fmt: skip


def main():
    counter = LineCounter()
    counter.start("tare/none")
    prints = [reading(counter, EMPTY, repeat) for repeat in range(EMPTIES)]
    prints += [reading(counter, "native", repeat, times) for repeat, times in enumerate(ASKED)]
    print("\n".join(footprint.model_dump_json() for footprint in prints))


if __name__ == "__main__":
    main()
