"""The agreement of counted instructions with measured CPU cost, in words."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analysis.comparisons.agreement import Agreement, AgreementPoint

#: Most outliers that are named.
_MAX_OUTLIERS = 8


def lines(agreed: Agreement) -> Iterator[str]:
    """Yield what is compared, the rank correlations, and the outliers."""
    yield "Counted instructions and measured CPU cost of one unit of work (of one file and the other):"
    for workload, rank in agreed.ranks.items():
        platforms = sum(point.workload == workload for point in agreed.points)
        yield f"  {workload}: rank correlation {_shown(rank)} over {platforms} platforms"
    if len(agreed.ranks) > 1:
        yield f"  all together: {_shown(agreed.together)} over {len(agreed.points)} figures"
    if not agreed.outliers:
        yield "  no outliers: each workload executes about as much a nanosecond on all platforms"
    for point in agreed.outliers[:_MAX_OUTLIERS]:
        yield f"  outlier: {_outlier(point, agreed.usual[point.workload])}"
    if len(agreed.outliers) > _MAX_OUTLIERS:
        yield f"  and {len(agreed.outliers) - _MAX_OUTLIERS} more outliers"


def _shown(rank: float | None) -> str:
    return "unknown (all are alike)" if rank is None else f"{rank:.2f}"


def _outlier(point: AgreementPoint, usual: float) -> str:
    return (
        f"{point.workload} on {point.platform}: {point.instructions:,.0f} instructions in {point.ns:,.0f} ns,"
        f" {point.rate:.2g} a nanosecond where {usual:.2g} is usual"
    )
