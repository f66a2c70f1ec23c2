"""How many cells of a campaign's answer are known: `cells.py CAMPAIGN... [--platforms runc,docker,gvisor]`.

A cell is a platform in a dimension. It is known if it has a verdict (or is surely worse or better), or a bound that is
narrower than ± 15 %: half of the bound's width, as a factor, is at most 1.15, or its higher end is.
"""

import argparse
import math
from pathlib import Path

from tare.analysis.answers import AnswerState
from tare.analysis.bounds import BoundKind
from tare.report.campaign.report_builder import build

KNOWN = {AnswerState.WORSE, AnswerState.BETTER, AnswerState.SURELY_WORSE, AnswerState.SURELY_BETTER, AnswerState.ALIKE}
NARROW = 1.15


def known(standing):
    """Whether a cell says enough, and what it says."""
    if standing.state in KNOWN:
        return True
    bound = standing.bound
    if standing.state is not AnswerState.BOUNDED or bound is None:
        return False
    if bound.kind is BoundKind.AT_MOST:
        return bound.high <= NARROW
    return bound.low > 0 and math.sqrt(bound.high / bound.low) <= NARROW


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaigns", nargs="+", type=Path)
    parser.add_argument("--platforms", default="runc,docker,gvisor")
    given = parser.parse_args()
    names = given.platforms.split(",")
    for file in given.campaigns:
        report = build(file)
        cells = [
            (answer.platform, standing)
            for answer in report.answers
            if answer.platform in names
            for standing in answer.dimensions
        ]
        told = [known(standing) for _, standing in cells]
        took = f"{report.blocks_done} blocks, {report.active_s:.0f} s"
        print(f"{file.name}: {sum(told)} of {len(cells)} cells known, {took}")
        for platform, standing in (cell for cell, is_known in zip(cells, told, strict=True) if not is_known):
            print(f"  open: {platform}, {standing.dimension.value}: {standing.state.value} {standing.figure}")


main()
