import pytest

from tare.host.patience import stretched


@pytest.mark.parametrize(
    ("told", "limit"), [(None, 5.0), ("", 5.0), ("12", 60.0), ("1.5", 7.5), ("0.1", 5.0), ("much", 5.0)]
)
def test_limits_stretch_by_the_factor_and_never_shrink(monkeypatch, told, limit):
    monkeypatch.delenv("TARE_PATIENCE", raising=False)
    if told is not None:
        monkeypatch.setenv("TARE_PATIENCE", told)
    assert stretched(5.0) == limit
