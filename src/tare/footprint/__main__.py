"""``python -m tare.footprint FOLDER``: carry out a request in a lab.

Internal: `tare.footprint.execution.lab` calls it there.

The request comes on standard input. Progress goes to standard output, a line of JSON each; the campaign's file with the
footprints, and the answer, into the folder (`tare.footprint.execution.wire`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from tare.clean import say
from tare.errors import TareError
from tare.footprint.execution import counting, wire


class _ProgressWriter:
    """Sends progress to the host outside."""

    def doing(self, what: str) -> None:
        say(wire.Doing(doing=what).model_dump_json())

    def step(self, done: int, of: int, missed: int) -> None:
        say(wire.Step(done=done, of=of, missed=missed).model_dump_json())


def main(data: bytes, folder: Path) -> int:
    """Carry out the request, and leave the answer in the folder. 0: with a result; 2: with an error."""
    try:
        result = counting.carry_out(wire.unpacked(data), folder / wire.CAMPAIGN, _ProgressWriter())
    except TareError as error:
        wire.write_answer(folder, wire.LabAnswer(error=error.what, fix=error.fix))
        return 2
    wire.write_answer(folder, wire.LabAnswer(result=result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer.read(), Path(sys.argv[1])))
