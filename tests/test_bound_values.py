"""Bounds against reference values, closed forms, and the published rates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from convexlaw.theory import last_iterate, schedules
from convexlaw.theory.last_iterate import bound, curve, optimal_peak, shape_constants


def golden_shape(name, steps):
    """Shapes as the reference file defines them, t = 1..T."""
    t = np.arange(1, steps + 1)
    if name.startswith("wsd:"):
        k = round((1 - float(name[4:])) * steps)
        return np.where(t <= k, 1.0, (steps + 1 - t) / (steps + 1 - k))
    w = max(round(0.1 * steps), 1)
    return {
        "constant": np.ones(steps),
        "linear": 1 - t / (steps + 1),
        "cosine": (1 + np.cos(np.pi * t / (steps + 1))) / 2,
        "one_minus_sqrt": 1 - np.sqrt(t / (steps + 1)),
        "warmup_cosine": np.where(t <= w, t / w, (1 + np.cos(np.pi * (t - w) / (steps + 1 - w))) / 2),
        "poly2": (1 - t / (steps + 1)) ** 2,
        "step10": np.where(t <= steps // 2, 1.0, 0.1),
    }[name]


@pytest.fixture(scope="module")
def cases(golden):
    rows = golden("loss_laws_and_batches")["values"]
    return lambda kind: [row for row in rows if row["kind"] == kind]


def test_tail_bounds_optimal_peaks_and_averaged_bounds(cases):
    rows = [r for r in cases("bound_tail") if "shape" in r["inputs"]]
    assert len(rows) == 18
    for row in rows:
        h = golden_shape(row["inputs"]["shape"], row["inputs"]["T"])
        seen = [bound(h, form="tail"), *optimal_peak(h), bound(h, form="averaged")]
        want = row["expected"]
        total = want["bias_term"] + want["noise_term"]
        expected = [total, want["gamma_star"], want["bound_star"], want["bound_avg_iterate"]]
        np.testing.assert_allclose(seen, expected, rtol=row["tol"]["rel"], err_msg=row["id"])


def test_tail_bounds_of_arrays_with_gradient_norms_at_every_horizon(cases):
    rows = [r for r in cases("bound_tail") if "eta" in r["inputs"]]
    assert len(rows) == 2
    for row in rows:
        i, want, rel = row["inputs"], row["expected"], row["tol"]["rel"]
        assert bound(i["eta"], i["G"], i["D"], "tail") == pytest.approx(want["bound"], rel=rel)
        assert bound(i["eta"], i["G"], i["D"], "averaged") == pytest.approx(want["avg"], rel=rel)
        for method in ("direct", "fast"):
            seen = curve(i["eta"], i["G"], i["D"], "tail", method=method)
            np.testing.assert_allclose(seen, want["prefix"], rtol=rel)


def test_free_and_tight_bounds_with_a_virtual_last_step(cases):
    rows = cases("bound_free_and_tight")
    assert len(rows) == 12
    for row in rows:
        i, want = row["inputs"], row["expected"]
        applied = i["gamma"] * golden_shape(i["shape"], i["T"])[:-1]
        seen = [bound(applied, form="free"), bound(applied, form="tight")]
        np.testing.assert_allclose(seen, [want["free"], want["tight"]], rtol=row["tol"]["rel"])


def test_curves_of_long_runs(cases):
    rows = cases("prefix_curve")
    assert len(rows) == 2
    for row in rows:
        i = row["inputs"]
        lr = i["gamma"] * golden_shape(i["shape"], i["T"])
        for method in ("direct", "fast"):
            seen = curve(lr, form="tail", at=i["idx0"], method=method)
            np.testing.assert_allclose(seen, row["expected"]["values"], rtol=row["tol"]["rel"])


def test_continuous_constants(cases):
    names = {"poly2": "poly:power=2", "wsd:0.1": "wsd:decay=0.1", "wsd:0.5": "wsd:decay=0.5"}
    for row in cases("continuous_constants"):
        c = shape_constants(names.get(row["inputs"]["shape"], row["inputs"]["shape"]))
        want = row["expected"]
        assert [c.s, c.I, c.peak_factor, c.bound_factor, c.batch_gain] == pytest.approx(
            [
                want["s"],
                want["I"],
                want["gamma_star_x_sqrtT_G_over_D"],
                want["bound_star_x_sqrtT_over_DG"],
                want["batch_gain"],
            ],
            rel=row["tol"]["rel"],
        )


@pytest.mark.parametrize("steps", [10, 100, 1000, 20_000])
@pytest.mark.parametrize(("far", "grad"), [(1.0, 1.0), (0.3, 7.0)])
def test_linear_decay_has_the_minimax_rate(steps, far, grad, cases):
    # the best rate of any subgradient method is D G/sqrt(T)
    t = np.arange(1, steps)
    lr = far / (grad * math.sqrt(steps)) * (1 - t / steps)
    assert bound(lr, grad, far, "tight") == pytest.approx(far * grad / math.sqrt(steps), rel=1e-9)
    assert bound(lr, grad, far, "free") == pytest.approx(
        2 * far * grad / math.sqrt(steps), rel=3 / steps**0.5
    )
    for row in cases("bound_tight"):
        if row["inputs"]["T"] == steps and far == 1:
            assert bound(lr, form="tight") == pytest.approx(row["expected"]["tight"], rel=row["tol"]["rel"])


@pytest.mark.parametrize("shape", ["linear", "cosine", "wsd:0.2", "constant", "one_minus_sqrt"])
def test_no_schedule_beats_the_minimax_rate(shape):
    for steps in (5, 50):
        for peak in np.geomspace(0.02, 3, 25):
            lr = peak * golden_shape(shape, steps)
            assert bound(lr, form="tight") >= (steps + 1) ** -0.5 * (1 - 1e-12)


@pytest.mark.parametrize("steps", [1, 2, 17, 3000])
@pytest.mark.parametrize(("grad", "far"), [(1.0, 1.0), (2.5, 0.4)])
def test_exact_discrete_bounds_of_constant_and_linear(steps, grad, far):
    peak = 0.07
    constant = bound(schedules.constant(steps, peak), grad, far, "tail")
    assert last_iterate.constant_bound(steps, peak, grad, far) == pytest.approx(constant, rel=1e-12)
    linear = bound(schedules.linear(steps, peak), grad, far, "tail")
    assert last_iterate.linear_bound(steps, peak, grad, far) == pytest.approx(linear, rel=1e-12)


def test_published_wsd_bound_is_above_the_optimal_one():
    assert last_iterate.wsd_upper_bound(1000, 800) == pytest.approx(0.0846, abs=5e-5)
    for steps, decay in [(50, 0.2), (1000, 0.2), (1000, 0.5), (20_000, 0.05)]:
        best = optimal_peak(schedules.wsd(steps, 1.0, decay=decay), 2.0, 0.5)[1]
        assert last_iterate.wsd_upper_bound(steps, round((1 - decay) * steps), 2.0, 0.5) > best


def test_optimal_peak_is_the_minimum_and_misses_cost_what_they_should():
    rng = np.random.default_rng(5)
    h = schedules.with_warmup(schedules.wsd(400, 1.0), 40)
    norms = rng.uniform(0.5, 2.0, 400)
    peak, best = optimal_peak(h, norms, 0.7)
    assert bound(peak * h, norms, 0.7, "tail") == pytest.approx(best, rel=1e-12)
    for r in (0.2, 0.9, 1.1, 5.0):
        assert bound(r * peak * h, norms, 0.7, "tail") == pytest.approx(best * (r + 1 / r) / 2, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    ["linear", "cosine", "one_minus_sqrt", "poly:power=3", "wsd:decay=0.1", "wsd:decay=0.3,cooldown=cosine"],
)
def test_long_runs_approach_the_closed_forms(text):
    steps = 100_000
    c = shape_constants(text)
    values = schedules.parse_parameters(text)[1]
    peak, best = optimal_peak(schedules.make(text.split(":")[0], steps=steps, peak=1.0, **values))
    assert peak * math.sqrt(steps) == pytest.approx(c.peak_factor, rel=3e-3)
    assert best * math.sqrt(steps) == pytest.approx(c.bound_factor, rel=3e-3)


def test_table_of_shapes():
    table = last_iterate.shape_table().set_index("shape")
    assert list(table.columns) == ["s", "I", "peak_factor", "bound_factor", "batch_gain"]
    wsd = table.loc["wsd:decay=0.2"]
    assert wsd.tolist() == pytest.approx([0.9, 4.19722, 0.5145, 2.1595, 1.166], rel=1e-4)
    assert table.loc["constant", "I"] == math.inf
    assert "I = 2" in str(shape_constants("linear"))
    assert shape_constants("linear").to_frame().shape == (1, 6)
