"""The line that ranks platforms for a user's own command."""

import pytest

from tare.report.model.ranking_models import RankReport
from tare.report.sentences.ranking_words import ranking


def _rank(platform, times, low=None, high=None, n_ok=5, level=0.95):
    return RankReport(platform=platform, times=times, low=low, high=high, n_ok=n_ok, level=level)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (
            [_rank("runc", 1.02, 0.99, 1.05), _rank("gvisor", 2.31, 2.22, 2.4)],
            "runc was 1.02 times slower than native (0.99 to 1.05), gvisor 2.31 (2.22 to 2.40)",
        ),
        (
            [_rank("runc", 0.8, 0.5, 1.0), _rank("docker", 1.25, 1.2, 1.3), _rank("gvisor", 12.34, 11, 123.4)],
            "runc was 1.25 times faster than native (1.00 to 2.00), docker 1.25 times slower (1.20 to 1.30), "
            "gvisor 12.3 (11.0 to 123)",
        ),
        (
            [_rank("runc", 1.001, 0.99, 1.01), _rank("gvisor", 2, 1.9, 2.1)],
            "runc took 1.00 times as long as native (0.99 to 1.01), gvisor 2.00 times slower (1.90 to 2.10)",
        ),
        (
            [_rank("runc", 1.1), _rank("gvisor", 2.0)],
            "runc was 1.10 times slower than native, gvisor 2.00; in one block, so without intervals",
        ),
        (
            [_rank("runc", 1.1, 1.0, 1.2), _rank("gvisor", None, n_ok=0)],
            "runc was 1.10 times slower than native (1.00 to 1.20), gvisor has no run that ended well",
        ),
        (
            [_rank("runc", 1.1, 0.99, 1.2, level=0.995)],
            "runc was 1.10 times slower than native (0.99 to 1.20 (99.5 %))",
        ),
        ([_rank("runc", None, n_ok=3)], "runc has nothing to be compared with"),
        ([], "no other platform was compared with native"),
    ],
)
def test_a_ranking_is_one_sentence(ranks, text):
    assert ranking("make test", "native", ranks) == f"make test: {text}"
