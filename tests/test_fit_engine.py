"""The fitting engine against scipy's own robust least squares, brute force, and degenerate data."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares, minimize

from convexlaw import ConvexlawError, fit_curves
from convexlaw.figures import fits
from convexlaw.solvers.fit import Problem, solve
from convexlaw.theory.laws import CURVE_LAWS, CVX5, TABLE_LAWS, CVX4q, RunPath, curve_law, table_law
from convexlaw.theory.schedules import parse

TEXTS = (
    "constant:steps=600,peak=1e-3,warmup=20",
    "cosine:steps=600,peak=1e-3,warmup=20",
    "wsd:steps=600,peak=1e-3,decay=0.3,warmup=20",
)
AT = np.arange(25, 600, 6)
TRUTH = {"Linf": 2.0, "a": 0.5, "b": 20.0, "alpha": 0.45, "q": 0.2, "r": 0.1, "lam": 0.995}
PEER = {"multipower": {"b": 300.0, "alpha": 0.5, "C": 2.0, "beta": 0.5, "gamma": 0.6}, "tissue": {"b": 0.3}}


def huber(r, delta=1e-3):
    r = np.abs(r)
    return np.sum(np.where(r <= delta, 0.5 * r**2, delta * (r - 0.5 * delta)))


def truth_of(law):
    values = {**TRUTH, **PEER.get(law.name, {})}
    return {n: values[n] for n in law.names()}


def problem_of(law, noise=0.0, seed=0, peaks=(1.0, 1.0, 1.0), **changes):
    paths = [RunPath.make(s * parse(t), AT, None, 0.1, 0.02) for s, t in zip(peaks, TEXTS, strict=True)]
    columns = law.columns(paths)
    values = truth_of(law)
    theta = np.array([values[p.name] for p in law.nonlinear])
    y = columns(theta)[0] @ [values[n] for n in law.linear()]
    y = y * np.exp(noise * np.random.default_rng(seed).normal(size=y.size))
    return Problem(columns, y, law.linear(), law.nonlinear, np.ones(y.size), **changes)


@pytest.mark.parametrize("name", sorted(set(CURVE_LAWS) - {"multipower"}))
def test_exact_data_give_the_truth_back(name):
    law = curve_law(name)
    peaks = (0.5, 1.0, 2.0)
    found = solve(problem_of(law, peaks=peaks))
    assert found.converged
    assert found.objective < 1e-12
    want = truth_of(law)
    for key, value in found.params.items():
        assert value == pytest.approx(want[key], rel=2e-3, abs=1e-3)


def test_multi_power_finds_curves_it_made():
    law = curve_law("multipower")
    problem = problem_of(law)
    found = solve(problem, polish=4)
    # its seven parameters are not unique, its curves are
    theta = np.array([found.params[p.name] for p in law.nonlinear])
    again = problem.columns(theta)[0] @ [found.params[n] for n in law.linear()]
    assert again == pytest.approx(problem.y, rel=2e-4)


@pytest.mark.parametrize("name", ["cd3", "cb4", "cvx4q", "cvx5", "cvx6", "rc4", "tissue", "averaged"])
def test_objective_is_no_worse_than_scipys(name):
    law = curve_law(name)
    problem = problem_of(law, noise=2e-3, peaks=(0.5, 1.0, 2.0))
    found = solve(problem)
    assert found.converged
    z = np.log(problem.y)
    p = len(law.linear())

    def residual(x):
        theta = np.array([np.clip(v, q.low, q.high) for v, q in zip(x[p:], law.nonlinear, strict=True)])
        return z - np.log(np.maximum(problem.columns(theta)[0] @ np.exp(x[:p]), 1e-9))

    truth = np.array([truth_of(law)[n] for n in law.names()])
    start = np.r_[np.log(truth[:p]), truth[p:]]
    other = least_squares(residual, start, loss="huber", f_scale=1e-3, xtol=1e-14, ftol=1e-14, gtol=1e-14)
    theirs = huber(residual(other.x))
    assert found.objective <= theirs * (1 + 1e-9)
    ours = np.array([found.params[n] for n in law.names()])
    theta = ours[p:]
    assert found.objective == pytest.approx(
        huber(z - np.log(problem.columns(theta)[0] @ ours[:p])), rel=1e-12
    )


def test_gradient_vanishes_by_differences():
    problem = problem_of(CVX5, noise=2e-3)
    found = solve(problem)
    z = np.log(problem.y)

    def value(x):
        return huber(z - np.log(problem.columns(x[3:])[0] @ x[:3]))

    x = np.array([found.params[n] for n in CVX5.names()])
    for j in range(x.size):
        h = 1e-5 * abs(x[j])
        up, down = x.copy(), x.copy()
        up[j] += h
        down[j] -= h
        slope = (value(up) - value(down)) / 2e-5  # by log of the parameter
        bend = (value(up) - 2 * value(x) + value(down)) / 1e-10
        assert abs(slope) < 1e-6 * bend  # less than a millionth from the minimum along each parameter


@pytest.mark.parametrize("name", sorted(TABLE_LAWS))
def test_tables_give_the_truth_back(name):
    law = table_law(name)
    values = {
        "chinchilla": (1.8, 480.0, 2100.0, 0.35, 0.37),
        "kaplan": (8e12, 3e13, 0.09, 0.11),
        "two_dimensional": (1.85, 380.0, 12000.0, 0.33, 0.05),
    }[name]
    N, D = (a.ravel() for a in np.meshgrid(np.geomspace(1e8, 1e10, 6), np.geomspace(1e9, 1e11, 6)))
    loss = law(*values).loss(N, D)
    problem = Problem(law.columns(N, D), loss, law.linear, law.nonlinear, np.ones(loss.size), link=law.link)
    found = solve(problem)
    assert found.converged
    assert found.objective < 1e-12
    names = law.linear[1:] if name == "kaplan" else law.linear
    truth = dict(zip((f.name for f in fields(law)), values, strict=True))
    for key in (*names, *(q.name for q in law.nonlinear)):
        assert found.params[key] == pytest.approx(truth[key], rel=5e-3)


def test_weights_count_rows():
    problem = problem_of(CVX4q, noise=2e-3)
    n = problem.y.size
    counts = np.random.default_rng(1).integers(0, 3, n)
    weighted = solve(replace(problem, weights=counts.astype(float)))
    index = np.repeat(np.arange(n), counts)

    def columns(theta):
        X, dX = problem.columns(theta)
        return X[index], dX[index]

    repeated = solve(replace(problem, columns=columns, y=problem.y[index], weights=np.ones(index.size)))
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-8)
    assert weighted.params["alpha"] == pytest.approx(repeated.params["alpha"], rel=1e-5)


def test_spikes_move_a_robust_fit_little():
    problem = problem_of(CVX4q, noise=5e-4)
    rng = np.random.default_rng(2)
    y = problem.y.copy()
    hit = rng.choice(y.size, y.size // 20, replace=False)
    y[hit] *= np.exp(0.5)
    clean, spiked = solve(problem), solve(replace(problem, y=y))
    wide = solve(replace(problem, y=y, delta=1e3))  # least squares
    moved = abs(spiked.params["Linf"] - clean.params["Linf"])
    assert moved < 0.01
    assert moved < 0.1 * abs(wide.params["Linf"] - clean.params["Linf"])


def test_bounds_hold_with_the_right_sign_of_the_slope():
    # losses without any noise term, pushed down where the noise sum is large: b wants to be negative
    problem = problem_of(CVX4q)
    X, _ = problem.columns(np.array([0.45]))
    y = X @ [2.0, 0.5, -3.0]
    found = solve(replace(problem, y=y))
    assert found.params["b"] == 0.0
    theta = np.array([found.params["alpha"]])
    c = np.array([found.params["Linf"], found.params["a"], 0.0])
    X, _ = problem.columns(theta)
    base = huber(np.log(y) - np.log(X @ c))
    assert huber(np.log(y) - np.log(X @ np.add(c, [0, 0, 1e-3]))) > base
    for move in ([1e-4, 0, 0], [-1e-4, 0, 0], [0, 1e-4, 0], [0, -1e-4, 0]):
        assert huber(np.log(y) - np.log(X @ np.add(c, move))) >= base * (1 - 1e-9)


def test_prior_is_the_residual_it_says():
    problem = problem_of(CVX4q, noise=2e-3, prior=("alpha",))
    found = solve(problem)
    extra = 0.01 * (np.log(found.params["alpha"]) - np.log(0.5)) / 0.15
    assert found.objective - found.data_objective == pytest.approx(huber(extra), rel=1e-9, abs=1e-15)
    z = np.log(problem.y)

    def value(x):
        c, alpha = np.exp(x[:3]), np.exp(x[3])
        fitted = problem.columns(np.array([alpha]))[0] @ c
        return 1e6 * (huber(z - np.log(fitted)) + huber(0.01 * (x[3] - np.log(0.5)) / 0.15))

    start = np.log([found.params[n] for n in CVX4q.names()])
    brute = minimize(
        value, start + 0.02, method="Nelder-Mead", options={"maxiter": 8000, "xatol": 1e-9, "fatol": 1e-9}
    )
    assert found.objective <= brute.fun / 1e6 * (1 + 1e-9)
    free = solve(replace(problem, prior=()))
    assert abs(np.log(found.params["alpha"] / 0.5)) < abs(np.log(free.params["alpha"] / 0.5))


def test_fixed_parameters_stay():
    problem = problem_of(CVX5, noise=1e-3)
    held = solve(replace(problem, fixed={"q": 0.125, "a": 0.4}))
    assert held.params["q"] == 0.125
    assert held.params["a"] == 0.4
    assert held.objective > solve(problem).objective
    everything = solve(replace(problem, fixed=truth_of(CVX5)))
    assert everything.params == pytest.approx(truth_of(CVX5))


def test_one_start_given_ends_at_the_same_optimum():
    problem = problem_of(CVX5, noise=1e-3)
    many = solve(problem)
    one = solve(problem, start={"Linf": 1.5, "a": 1.0, "b": 5.0, "alpha": 0.8, "q": 0.05})
    assert one.starts == 1
    assert one.objective == pytest.approx(many.objective, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": np.r_[-1.0, np.ones(287)]}, "positive"),
        ({"y": np.r_[np.nan, np.ones(287)]}, "positive"),
        ({"weights": np.r_[np.ones(4), np.zeros(284)]}, "4 losses to fit 4"),
        ({"fixed": {"beta": 1.0}}, "beta"),
        ({"fixed": {"alpha": 99.0}}, "outside its range"),
        ({"fixed": {"b": -1.0}}, "negative"),
    ],
)
def test_bad_problems_are_refused(changes, words):
    problem = problem_of(CVX4q)
    assert problem.y.size == 288
    with pytest.raises(ConvexlawError, match=words):
        solve(replace(problem, **changes))


def test_infinite_columns_are_refused():
    lr = np.r_[np.zeros(10), np.full(90, 1e-3)]
    paths = [RunPath.make(lr, np.arange(100))]
    problem = Problem(CVX4q.columns(paths), np.full(100, 3.0), CVX4q.linear(), CVX4q.nonlinear, np.ones(100))
    with pytest.raises(ConvexlawError, match="finite"):
        solve(problem)


def constant_log(rate):
    step = np.arange(200)
    return pd.DataFrame({"run": "a", "step": step, "lr": rate, "loss": 2 + 1 / np.sqrt(1 + step)})


@pytest.mark.parametrize("law", ["cvx4q", "cvx5", "rc4", "tissue", "multipower", "averaged", "cd3"])
@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (1e-300, "run 'a': the largest learning rate is 1e-300: laws take peaks from 1e-30"),
        (1e200, r"run 'a': the largest learning rate is 1e\+200"),
        (np.where(np.arange(200) > 150, 1e-300, 1e-3), "lr spans from 1e-300 to 0.001"),
    ],
)
def test_learning_rates_beyond_all_reason_are_refused(law, rate, words):
    with pytest.raises(ConvexlawError, match=words):
        fit_curves(constant_log(rate), law, weight_decay=0.1)


def test_a_weight_decay_that_turns_the_weights_round_is_refused():
    with pytest.raises(ConvexlawError, match="one step would turn the weights round"):
        fit_curves(constant_log(5.0), "rc4", weight_decay=0.3)
    assert fit_curves(constant_log(1e-3), "rc4", weight_decay=0.3).converged


@pytest.mark.parametrize("law", ["tissue", "multipower"])
def test_a_column_of_zeros_gives_a_parameter_of_zero(law):
    fit = fit_curves(constant_log(1e-3), law, alpha_prior=False)
    assert fit.params["b"] == 0.0
    assert np.all(np.isfinite(fit.predict("wsd:steps=400,peak=1e-3,decay=0.2")[1:]))
    assert any("b ended at 0" in s for s in fit.identifiability.sentences)


def test_losses_that_are_none_and_runs_that_never_move_are_refused():
    log = constant_log(1e-3)
    with pytest.raises(ConvexlawError, match=r"loss 1e\+300 is no loss in nats"):
        fit_curves(log.assign(loss=1e300), "cvx4q")
    with pytest.raises(ConvexlawError, match="'a' has the learning rate 0 at every step"):
        fit_curves(log.assign(lr=0.0), "cvx4q")


@pytest.mark.parametrize("loss", [2.0, 2 + 0.01 * np.arange(200)])
def test_losses_without_scatter_or_without_a_row_near_the_law_have_limits(loss):
    fit = fit_curves(constant_log(1e-3).assign(loss=loss), "cvx4q")
    limits = fit.interval(method="profile")
    assert np.all(limits["low"] <= limits["estimate"])
    assert np.all(limits["estimate"] <= limits["high"])
    assert limits.loc["Linf", "high"] > limits.loc["Linf", "estimate"]
    fits.plot_profile(fit, "Linf")
