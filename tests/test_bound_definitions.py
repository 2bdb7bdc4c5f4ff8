"""Bounds against their definitions, evaluated by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from convexlaw.errors import ConvexlawError
from convexlaw.theory.last_iterate import bound, curve, noise_sum


def three_terms(lr, norms, far):
    """Published three-term form of the last-iterate bound, with its double sum."""
    cost = lr**2 * norms**2
    total = far**2 / (2 * lr.sum()) + cost.sum() / (2 * lr.sum())
    for k in range(lr.size - 1):
        total += 0.5 * lr[k] / lr[k + 1 :].sum() * cost[k:].sum() / lr[k:].sum()
    return total


def free_at(v, lr, norms, far):
    tails = np.array([lr[t + 1 :].sum() for t in range(lr.size)])
    noise = (lr**2 * norms[:-1] ** 2 / (tails + v)).sum() + v * norms[-1] ** 2
    return far**2 / (2 * (lr.sum() + v)) + noise / 2


def tight_at(v, lr, norms, far):
    """Form (3) through weights: rho_t from the back, W = rho_0^2, then the identity's own right-hand side."""
    rho = [v]
    for eta in lr[::-1]:
        rho.insert(0, rho[0] + eta / rho[0])
    rho = np.array(rho)
    scale = rho[0]
    weights = -np.diff(np.append(rho * scale, 0.0))  # w_t = R_{t-1} - R_t
    return (far**2 + (weights**2 * norms**2).sum()) / (2 * weights.sum())


def brute_minimum(function, *args):
    """Minimum over a log grid, polished from its best points."""
    grid = np.linspace(-14, 16, 700)
    values = np.array([function(np.exp(x), *args) for x in grid])
    best = values.min()
    for i in np.argsort(values)[:5]:
        window = (grid[max(i - 1, 0)], grid[min(i + 1, grid.size - 1)])
        found = minimize_scalar(
            lambda x: function(np.exp(x), *args), bounds=window, method="bounded", options={"xatol": 1e-10}
        )
        best = min(best, found.fun)
    return best


@pytest.fixture(params=range(12))
def problem(request):
    rng = np.random.default_rng(request.param)
    steps = int(rng.integers(1, 25))
    lr = 10 ** rng.uniform(-3, 1, steps)
    norms = rng.uniform(0.3, 3, steps + 1)
    return lr, norms, float(rng.uniform(0.1, 5))


def test_one_sum_is_the_published_three_term_form(problem):
    lr, norms, far = problem
    assert bound(lr, norms, far, "tail") == pytest.approx(three_terms(lr, norms[:-1], far), rel=1e-10)


def test_free_is_the_minimum_over_the_virtual_step(problem):
    lr, norms, far = problem
    assert bound(lr, norms, far, "free") == pytest.approx(brute_minimum(free_at, lr, norms, far), rel=1e-9)


def test_tight_is_the_minimum_over_weights(problem):
    lr, norms, far = problem
    assert bound(lr, norms, far, "tight") == pytest.approx(brute_minimum(tight_at, lr, norms, far), rel=1e-8)


def test_averaged_is_the_weighted_average_bound(problem):
    lr, norms, far = problem
    want = (far**2 + (lr**2 * norms[:-1] ** 2).sum()) / (2 * lr.sum())
    assert bound(lr, norms, far, "averaged") == pytest.approx(want, rel=1e-13)


def test_free_with_v_equal_to_the_next_step_is_tail(problem):
    lr, norms, far = problem
    if lr.size < 2:
        return
    norms = norms[:-1]
    assert free_at(lr[-1], lr[:-1], norms, far) == pytest.approx(bound(lr, norms, far, "tail"), rel=1e-12)
    assert bound(lr[:-1], norms, far, "free") <= bound(lr, norms, far, "tail") * (1 + 1e-12)


def test_weights_may_have_two_wells_and_the_lower_one_is_found():
    # the gradient grew tenfold: v and eta/v give the same rho before them, one of them is far cheaper
    lr, norms = np.array([1.0, 1.0]), np.array([1.0, 1.0, 10.0])
    assert bound(lr, norms, 1.0, "tight") == pytest.approx(brute_minimum(tight_at, lr, norms, 1.0), rel=1e-9)
    lr, norms = np.array([0.1, 5.0, 0.01, 2.0]), np.array([1.0, 10.0, 0.1, 10.0, 0.1])
    assert bound(lr, norms, 1.0, "tight") == pytest.approx(brute_minimum(tight_at, lr, norms, 1.0), rel=1e-9)


@pytest.mark.parametrize("form", ["tail", "free"])
@pytest.mark.parametrize("method", ["fast", "direct"])
def test_noise_sums_take_any_weights(form, method):
    rng = np.random.default_rng(3)
    eta = 10 ** rng.uniform(-2, 0, 60)
    eta[[0, 7, 8, 40, 59]] = 0
    rows = rng.uniform(0, 2, (3, 60)) * np.array([[1.0], [1e6], [1e-6]])
    rows[:, 20] = 0
    follow = rng.uniform(0.1, 2, (3, 60))
    at = np.array([33, 5, 0, 8, 41, 59])
    seen = noise_sum(eta, rows, follow, at, form=form, method=method)
    assert seen.shape == (3, 6)

    def total(v, k, q):
        keep = [s for s in range(k) if eta[s] > 0]
        return sum(rows[q, s] / (eta[s + 1 : k].sum() + v) for s in keep) + v * follow[q, k]

    for q in range(3):
        for j, k in enumerate(at):
            if form == "free":
                some = (eta[:k] > 0).any()
                want = brute_minimum(total, k, q) if some else 0.0
            else:
                last = max((s for s in range(k + 1) if eta[s] > 0), default=None)
                want = 0.0 if last is None else total(eta[last], last, q)
            assert seen[q, j] == pytest.approx(want, rel=1e-8)
            one = noise_sum(eta, rows[q], follow[q], [k], form=form, method=method)
            assert one[0] == pytest.approx(seen[q, j], rel=1e-10)


def test_the_minimum_may_lie_at_no_virtual_step():
    # the last gradient is 0: its step costs nothing, and waiting (v > 0) costs more than it gains
    lr, norms = np.array([1.0, 1.0]), np.array([0.1, 0.0, 50.0])
    limit = 1 / (2 * 2) + 0.01 / (2 * 1)
    for method in ("fast", "direct"):
        assert curve(lr, norms, method=method)[-1] == pytest.approx(limit, rel=1e-12)


@pytest.mark.parametrize("form", ["free", "tight"])
@pytest.mark.parametrize("distance", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("exponent", [20, 39, 41, 100, 140, 160, 200])
def test_steps_that_move_nothing_leave_the_bound_of_staying(form, distance, exponent):
    # dropping the noise: D^2/(2(S+v)) + v G^2/2 >= D G - S G^2/2; at v = D/G: <= D G (1 + T eta^2 G^2/D^2)
    rate = distance / 2.0 / 10.0**exponent
    lr = rate * np.array([1.0, 0.0, 0.5, 1e-20, 1.0])
    grad_norm = np.array([2.0, 1.0, 0.0, 2.0, 1.0, 0.25])
    least = grad_norm[1:].copy()
    if form == "tight":  # a gradient of 0 at the last step says that nothing is left to gain
        least = np.minimum(least, grad_norm[[0, 0, 2, 3, 4]])
    np.testing.assert_allclose(curve(lr, grad_norm, distance, form), distance * least, rtol=1e-14)
    assert bound([rate], distance=distance, form=form) == pytest.approx(distance, rel=1e-14)


@pytest.mark.parametrize("form", ["tail", "averaged"])
def test_bounds_beyond_the_largest_number_are_refused(form):
    assert bound([1e-200], distance=1.0, form=form) == pytest.approx(5e199)
    with pytest.raises(ConvexlawError, match="overflow together; rescale them"):
        bound([1e-200], distance=1e100, form=form)
