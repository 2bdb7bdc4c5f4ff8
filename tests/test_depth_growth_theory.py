"""Progressive depth expansion: sums by brute force, golden values, quadratics whose losses are exact."""

from __future__ import annotations

import numpy as np
import pytest

from convexlaw.errors import ConvexlawError
from convexlaw.simulations.descent import expected_descent
from convexlaw.simulations.problems import Quadratic, power_law_quadratic
from convexlaw.theory import depth, last_iterate, schedules


def test_golden_values(golden):
    rows = [r for r in golden("loss_laws_and_batches")["values"] if r["kind"] == "progressive"]
    assert rows
    for row in rows:
        given, expected, tol = row["inputs"], row["expected"], row["tol"]["rel"]
        small, large, share = given["N_small"], given["N_large"], given["tau"] / given["T"]
        spent = depth.flops(given["B"], given["tau"], small, large, steps=given["T"])
        assert spent == pytest.approx(expected["flops"], rel=tol)
        assert depth.compute_ratio(share, small, large) == pytest.approx(expected["ratio"], rel=tol)
        bare = depth.compute_ratio(share, 0, large)
        assert bare == pytest.approx(expected["nonembed_ratio_if_Nsmall0"], rel=tol)


def test_compute_is_the_sum_over_the_updates():
    rng = np.random.default_rng(0)
    for _ in range(50):
        steps = int(rng.integers(1, 40))
        tokens = rng.integers(1, 100, size=steps)
        at = int(rng.integers(0, steps + 1))
        small, large = sorted(rng.integers(1, 1000, size=2).tolist())
        total = sum(6 * int(b) * (small if t < at else large) for t, b in enumerate(tokens))
        whole = sum(6 * int(b) * large for b in tokens)
        assert depth.flops(tokens, at, small, large) == total
        share = int(tokens[:at].sum()) / int(tokens.sum())
        assert depth.compute_ratio(share, small, large) == pytest.approx(total / whole, rel=1e-13)


def test_mixing_and_latest_step_are_the_first_and_last_by_search():
    rng = np.random.default_rng(1)
    for _ in range(200):
        steps = int(rng.integers(1, 30))
        lr = rng.uniform(0, 1, steps) * (rng.random(steps) > 0.2)
        lr[rng.integers(steps)] = 0.5
        far, tolerance = rng.uniform(0, 3), rng.uniform(0.05, 2)
        fine = [tau for tau in range(steps + 1) if lr[tau:].sum() * 2 * tolerance >= far**2]
        assert depth.latest_step(lr, far, tolerance) == (fine[-1] if fine else None)
        at = int(rng.integers(0, steps + 1))
        met = [m for m in range(steps - at + 1) if lr[at : at + m].sum() * 2 * tolerance >= far**2]
        assert depth.mixing_steps(lr, at, far, tolerance) == (met[0] if met else None)


def test_average_gap_is_the_difference_of_the_two_bounds():
    """Shared parameters alone, then all, against all throughout, by the sums of the one-step inequality."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        steps = int(rng.integers(2, 30))
        lr = rng.uniform(0.1, 1, steps)
        at, G, extra = int(rng.integers(0, steps + 1)), rng.uniform(0.1, 3), rng.uniform(0, 2)
        shared, new, new_at = rng.uniform(0, 2, size=3)
        middle = rng.uniform(0, 2)  # |w_tau - w*|^2, cancels between the phases
        total = lr.sum()
        # sum eta (L_t - L*) <= (start - end + sum eta^2 G^2)/2 in each phase; the terminal distance of phase
        # 2 is dropped, and the small model pays what it cannot learn
        phase1 = (shared**2 - middle + G**2 * (lr[:at] ** 2).sum()) / 2 + extra * lr[:at].sum()
        phase2 = (middle + new_at**2 + G**2 * (lr[at:] ** 2).sum()) / 2
        whole = (shared**2 + new**2 + G**2 * (lr**2).sum()) / 2
        found = depth.average_gap(lr, at, extra, distance_at=new_at, distance=new)
        assert found == pytest.approx((phase1 + phase2 - whole) / total, abs=1e-12)


@pytest.mark.parametrize("shape", ["wsd", "cosine"])
def test_final_bound_holds_where_coordinates_are_added_late(shape: str):
    problem = power_law_quadratic(60, sigma=0.3)
    new = np.arange(60) % 2 == 1
    old, grown = (
        Quadratic(problem.curvature[part], problem.start[part], problem.noise[part]) for part in (~new, new)
    )
    lr = schedules.make(shape, steps=400, peak=0.3)
    excess = []
    for at in (0, 120, 280, 360):
        shared, late = expected_descent(old, lr), expected_descent(grown, lr[at:])
        gap = shared.gap[-1] + late.gap[-1]
        # distance of all coordinates at tau: the shared ones have moved, the new ones have not
        square = old.start**2
        for eta in lr[:at]:
            square = (1 - eta * old.curvature) ** 2 * square + eta**2 * old.noise**2
        far = np.sqrt(square.sum() + grown.distance**2)
        norms = np.hypot(shared.grad_norm[at:], late.grad_norm)
        for form in ("free", "tight"):
            assert gap <= depth.final_bound(lr, at, norms, far, form)
        excess.append(gap)
    assert np.all(np.diff(excess) > 0)  # later is worse
    assert depth.final_bound(lr, 0, 1.0, 2.0) == last_iterate.bound(lr, 1.0, 2.0)


def test_mixing_time_reads_the_crossing():
    steps = np.arange(0, 1000, 10)
    fixed = 2 + np.exp(-steps / 300)
    lag = np.where(steps >= 500, 0.2 * np.exp(-(steps - 500) / 50.0), 0.3)
    expected = next(s for s, a, b in zip(steps, lag, fixed, strict=True) if s >= 500 and a < 0.005 * b) - 500
    assert depth.mixing_time(fixed + lag, fixed, 500, steps=steps) == expected
    smoothed = depth.mixing_time(fixed + lag, fixed, 500, steps=steps, window=5)
    assert smoothed is not None
    assert smoothed > expected  # a trailing mean lags
    assert depth.mixing_time(fixed + 1, fixed, 500, steps=steps) is None


def test_recipe():
    assert depth.expansion_step(1000, mixing=150, cooldown=100) == 750
    with pytest.raises(ConvexlawError, match="less than mixing"):
        depth.expansion_step(100, mixing=80, cooldown=30)


def test_bad_input_is_refused():
    with pytest.raises(ConvexlawError, match="at = 5: give a whole step from 0 to 2"):
        depth.average_gap([1.0, 1.0], 5, 0.1)
    with pytest.raises(ConvexlawError, match="from 0 to 1"):
        depth.final_bound([1.0, 1.0], 2)
    with pytest.raises(ConvexlawError, match="no positive step"):
        depth.latest_step([0.0], 1.0, 0.1)
    with pytest.raises(ConvexlawError, match="both distance_at and distance"):
        depth.average_gap([1.0], 0, 0.1, distance=1.0)
    with pytest.raises(ConvexlawError, match="swap them"):
        depth.compute_ratio(0.5, 10, 5)
    with pytest.raises(ConvexlawError, match="needs steps"):
        depth.flops(3, 1, 1, 2)
    with pytest.raises(ConvexlawError, match="one of them"):
        depth.flops([3, 3], 1, 1, 2, steps=3)
    with pytest.raises(ConvexlawError, match="shapes"):
        depth.mixing_time([1.0], [1.0, 2.0], 0)
    with pytest.raises(ConvexlawError, match="do not increase"):
        depth.mixing_time([1.0, 1.0], [1.0, 2.0], 0, steps=[1, 1])
