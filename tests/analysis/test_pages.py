"""Where PSS reverses the order of two platforms in their own memory, the row says why."""

from tare.analysis.effects import Effect
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.quality.page_shares import flag_pages
from tare.analysis.results import Description, MetricResult, PlatformResult, TrialCounts
from tare.analysis.verdicts import Reason, Verdict, VerdictKind
from tare.estimates.intervals import Interval
from tare.model import Direction


def _result(metric, times, *, level=0.95):
    def platform(name, factor):
        described = Description(5, factor, 0.0, factor)
        effect = Effect(Interval(factor, factor * 0.99, factor * 1.01), level)
        verdict = Verdict(VerdictKind.SLOWER, Reason.TYPICAL_ROUND)
        return PlatformResult(name, 5, 0, TrialCounts(ok=5), described, effect=effect, verdict=verdict)

    native = PlatformResult(
        "native",
        5,
        0,
        TrialCounts(ok=5),
        Description(5, 1.0, 0.0, 1.0),
        verdict=Verdict(VerdictKind.BASELINE, Reason.BASELINE),
    )
    platforms = (native, *(platform(name, factor) for name, factor in times.items()))
    return MetricResult("memory-footprint", metric, "MiB", Direction.LOWER, 0.02, None, platforms)


def _flagged(own, pss, **options):
    """The findings of PSS by platform; no other metric has one."""
    before = [_result("idle-own", own, **options), _result("idle-pss", pss, **options)]
    headline, flagged = flag_pages(before)
    assert headline == before[0]
    return {platform.platform: platform.notes for platform in flagged.platforms if platform.notes}


def test_swapped_platforms_name_each_other():
    flagged = _flagged({"bubblewrap": 2.0, "podman": 3.0}, {"bubblewrap": 1.5, "podman": 1.3})
    assert flagged == {
        "bubblewrap": (Finding(FindingKind.SHARED_PAGES, metric="idle-own", others=("podman",)),),
        "podman": (Finding(FindingKind.SHARED_PAGES, metric="idle-own", others=("bubblewrap",)),),
    }


def test_baseline_can_swap_with_a_platform():
    assert set(_flagged({"runc": 1.2}, {"runc": 0.8})) == {"native", "runc"}


def test_equal_order_has_no_finding():
    assert _flagged({"runc": 1.2, "gvisor": 40.0}, {"runc": 1.1, "gvisor": 20.0}) == {}


def test_swap_within_the_margin_has_no_finding():
    assert _flagged({"runc": 1.2, "crun": 1.5}, {"runc": 1.30, "crun": 1.28}) == {}


def test_single_block_has_no_finding():
    assert _flagged({"runc": 1.2, "crun": 1.5}, {"runc": 2.0, "crun": 1.2}, level=None) == {}


def test_pss_without_own_memory_stays_as_it_is():
    results = [_result("idle-pss", {"runc": 0.5})]
    assert flag_pages(results) == results
