"""Carry out a footprint request inside a lab: ``python -m tare.features.kernel FOLDER``.

Internal: called by `tare.features.kernel.execution.lab`.

Reads the request from standard input. Prints progress to standard output, one JSON object a line. Writes the campaign
file with the footprints, and the answer, into the folder (`tare.features.kernel.execution.wire`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from tare.errors import TareError
from tare.features.kernel.execution import counting, wire
from tare.safe_text import say


class _ProgressWriter:
    """Watcher that sends progress to the host outside the lab."""

    def doing(self, what: str) -> None:
        say(wire.Doing(doing=what).model_dump_json())

    def step(self, done: int, of: int, missed: int) -> None:
        say(wire.WindowStep(done=done, of=of, missed=missed).model_dump_json())


def main(data: bytes, folder: Path) -> int:
    """Carry out the request and write the answer into the folder. Return 0 for a result, 2 for an error."""
    try:
        result = counting.carry_out(wire.unpacked(data), folder / wire.CAMPAIGN, _ProgressWriter())
    except TareError as error:
        wire.write_answer(folder, wire.LabAnswer(error=error.what, fix=error.fix))
        return 2
    wire.write_answer(folder, wire.LabAnswer(result=result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer.read(), Path(sys.argv[1])))
