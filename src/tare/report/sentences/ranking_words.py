"""The platforms for a user's own command, in one sentence: which was how many times slower than the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tare.report.model.ranking_models import RankReport
from tare.report.sentences.numbers import TO
from tare.report.sentences.scale import USUAL_LEVEL, level_text

#: Words for a platform whose time is the baseline's to the digits that are shown: "as fast" would be a verdict.
_SAME = "times as long"


def ranking(workload: str, baseline: str, ranks: Sequence[RankReport]) -> str:
    """Say it: "make test: runc was 1.02 times slower than native (0.99 to 1.05), gvisor 2.31 (2.22 to 2.40)"."""
    compared_with = ", ".join(_parts(baseline, ranks)) or f"no other platform was compared with {baseline}"
    compared = [rank for rank in ranks if rank.times is not None]
    once = "; in one block, so without intervals" if compared and not any(map(_interval, compared)) else ""
    return f"{workload}: {compared_with}{once}"


def _parts(baseline: str, ranks: Sequence[RankReport]) -> Iterator[str]:
    before = None
    for rank in ranks:
        if rank.times is None:
            yield f"{rank.platform} {'has nothing to be compared with' if rank.n_ok else 'has no run that ended well'}"
            continue
        size, words = _size(rank.times)
        if before is None:
            verb, than = ("took", "as") if words == _SAME else ("was", "than")
            yield f"{rank.platform} {verb} {size} {words} {than} {baseline}{_interval(rank)}"
        elif words == before:
            yield f"{rank.platform} {size}{_interval(rank)}"
        else:
            yield f"{rank.platform} {size} {words}{_interval(rank)}"
        before = words


def _size(times: float) -> tuple[str, str]:
    """The factor, of at least 1, and its words."""
    factor = _digits(max(times, 1 / times))
    return factor, _SAME if factor == "1.00" else "times slower" if times > 1 else "times faster"


def _interval(rank: RankReport) -> str:
    if rank.times is None or rank.low is None or rank.high is None:
        return ""
    ends = (rank.low, rank.high) if _size(rank.times)[1] != "times faster" else (1 / rank.high, 1 / rank.low)
    return f" ({TO.join(map(_digits, ends))}{level_text(rank.level or USUAL_LEVEL)})"


def _digits(factor: float) -> str:
    return f"{factor:,.{2 if factor < 10 else 1 if factor < 100 else 0}f}"
