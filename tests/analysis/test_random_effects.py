"""Hosts merged by a random-effects model: R's figures are in test_against_r.py, how often it errs is counted here."""

from __future__ import annotations

import numpy as np
import pytest

from tare.estimates.random_effects import (
    Between,
    Hosts,
    deviations,
    discoveries,
    fit,
    odd_hosts,
    paule_mandel,
    prediction,
    reml,
    shrunk,
)

TAU = 0.02


def simulated(
    rng: np.random.Generator, figures: int, hosts: int, errors: float, *, df: int = 11
) -> tuple[Hosts, np.ndarray]:
    """Hosts around 0 with an SD of `TAU`; ``errors``: their variances' size beside TAU^2, known with ``df``."""
    true = TAU**2 * errors * rng.uniform(0.5, 1.5, (figures, hosts))
    y = rng.normal(0, TAU, (figures, hosts)) + rng.normal(0, 1, (figures, hosts)) * np.sqrt(true)
    return Hosts.of(y, true * rng.chisquare(df, (figures, hosts)) / df), rng.normal(0, TAU, figures)


def odd(hosts: Hosts) -> np.ndarray:
    """Which hosts are odd in which figures, at 5 %."""
    return odd_hosts(deviations(hosts, 0.05)[1], 0.05)


def covered(ends: tuple[np.ndarray, np.ndarray], values: np.ndarray | float) -> float:
    return float(((ends[0] <= values) & (values <= ends[1])).mean())


@pytest.mark.parametrize("method", list(Between))
def test_figures_fitted_together_are_those_fitted_alone(method: Between) -> None:
    rng = np.random.default_rng(1)
    together, _ = simulated(rng, 12, 9, 1.0)
    y = np.where(rng.random((12, 9)) < 0.2, np.nan, together.y)
    whole = fit(Hosts.of(y, together.v), method)
    for at in range(12):
        known = np.isfinite(y[at])
        alone = fit(Hosts.of(y[at][known], together.v[at][known]), method)
        assert whole.count[at] == known.sum()
        for name in ("mean", "tau2", "error", "df"):
            assert getattr(whole, name)[at] == pytest.approx(getattr(alone, name)[0], rel=1e-9, abs=1e-15)


def test_one_host_has_a_mean_and_nothing_else() -> None:
    hosts = Hosts.of(np.array([[0.1, np.nan], [np.nan, np.nan]]), np.full((2, 2), 1e-4))
    model = fit(hosts)
    assert model.mean[0] == pytest.approx(0.1)
    assert np.isnan([model.mean[1], *model.tau2, *model.error, *model.interval(0.95)[0]]).all()
    assert np.isnan(prediction(hosts, 0.9)).all()
    assert not odd(hosts).any()


def test_hosts_without_errors_have_students_prediction() -> None:
    values = np.array([0.1, 0.14, 0.07, 0.11, 0.2])
    hosts = Hosts.of(values, np.zeros(5))
    half = 2.1318467863266495 * values.std(ddof=1) * np.sqrt(1 + 1 / 5)  # t(4) at 0.95
    low, high = prediction(hosts, 0.90)
    assert (high[0] - low[0]) / 2 == pytest.approx(half, rel=0.02)
    assert (high[0] + low[0]) / 2 == pytest.approx(values.mean(), rel=1e-3)


def test_hosts_that_agree_differ_by_chance() -> None:
    hosts = Hosts.of(np.array([0.1, 0.101, 0.099, 0.1]), np.full(4, 1e-4))
    assert reml(hosts)[0] == paule_mandel(hosts)[0] == 0
    model = fit(hosts)
    assert model.error[0] == pytest.approx(np.sqrt(1e-4 / 4)), "no narrower than one of known variances"
    assert shrunk(hosts, model)[0] == pytest.approx(np.full((1, 4), model.mean[0]))


def test_identical_hosts_end() -> None:
    model = fit(Hosts.of(np.full((1, 5), 0.1), np.zeros((1, 5))))
    assert model.mean[0] == pytest.approx(0.1)
    assert model.tau2[0] == 0


def test_no_p_value_is_no_discovery() -> None:
    assert not discoveries(np.full((2, 3), np.nan), 0.05).any()
    assert discoveries(np.array([np.nan, 0.001]), 0.05).tolist() == [[False, True]]


@pytest.mark.simulation
@pytest.mark.parametrize(("hosts", "errors"), [(3, 0.05), (5, 0.5), (8, 2.0), (20, 0.05), (20, 1.0), (100, 1.0)])
def test_a_new_host_is_predicted_in_90_of_100(hosts: int, errors: float) -> None:
    measured, new = simulated(np.random.default_rng(hosts), 2_000, hosts, errors)
    assert covered(prediction(measured, 0.90), new) == pytest.approx(0.90, abs=0.03)


@pytest.mark.simulation
@pytest.mark.parametrize(("hosts", "errors"), [(3, 0.05), (8, 0.5), (20, 1.0), (100, 0.05)])
def test_the_mean_over_hosts_is_covered_in_95_of_100(hosts: int, errors: float) -> None:
    measured, _ = simulated(np.random.default_rng(hosts), 2_000, hosts, errors)
    assert covered(fit(measured).interval(0.95), 0.0) > 0.93


def found(
    hosts: int, errors: float, size: float, *, trials: int, seed: int = 5, figures: int = 1
) -> tuple[float, float]:
    """The share of false ones among odd hosts, and of slow hosts found; 5 % are slow in a figure by so many SDs.

    Figures of one host go together by half.
    """
    rng = np.random.default_rng(seed)
    false, power = [], []
    slow = np.arange(hosts) < hosts // 20 * (size > 0)
    far = np.zeros((figures, hosts))
    far[0] = slow * size * TAU * np.sqrt(1 + errors)
    for _ in range(trials):
        measured, _ = simulated(rng, figures, hosts, errors, df=40)
        shared = measured.y if figures == 1 else (measured.y + rng.normal(0, TAU, hosts)) / np.sqrt(2)
        called = odd(Hosts.of(shared + far, measured.v)).any(axis=0)
        false.append((called & ~slow).sum() / max(1, called.sum()))
        power.append(called[slow].mean() if slow.any() else 0.0)
    return float(np.mean(false)), float(np.mean(power))


def test_slow_hosts_are_found_and_hardly_any_other() -> None:
    false, power = found(200, 0.2, 5.0, trials=60)
    assert false <= 0.05
    assert power >= 0.90


@pytest.mark.simulation
@pytest.mark.parametrize(("hosts", "errors", "size"), [(100, 0.05, 6.0), (400, 0.05, 5.0), (400, 1.0, 5.0)])
def test_nine_of_ten_slow_hosts_are_found_and_at_most_5_in_100_are_not_slow(
    hosts: int, errors: float, size: float
) -> None:
    false, power = found(hosts, errors, size, trials=300)
    assert false <= 0.05
    assert power >= 0.90


def test_a_noisy_host_among_few_is_not_odd() -> None:
    """Of three real hosts the one that was measured while the machine was busy was 1,455,020 SD from the others."""
    hosts = Hosts.of(np.array([1.55, 1.62, 2.48]), np.array([0.004, 0.005, 0.25]))
    assert not odd(hosts).any()
    assert np.nanmax(np.abs(deviations(hosts, 0.05)[0])) < 5


@pytest.mark.simulation
def test_of_many_figures_it_is_hosts_that_are_hardly_ever_called_odd_wrongly() -> None:
    """5 % over all hosts and figures would be nearly every host, where there are 300 figures."""
    false, power = found(200, 0.2, 6.0, trials=60, figures=20)
    assert false <= 0.05
    assert power >= 0.90


@pytest.mark.simulation
def test_in_a_fleet_without_odd_hosts_hardly_ever_one_is_called_odd() -> None:
    false, _ = found(100, 0.5, 0.0, trials=600)
    assert false <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)
