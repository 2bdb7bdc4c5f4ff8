"""Every law against its formula summed by hand, and its derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from convexlaw import ConvexlawError
from convexlaw.theory.laws import (
    CB4,
    CD3,
    CURVE_LAWS,
    CVX3,
    CVX4,
    CVX5,
    CVX6,
    RC4,
    Averaged,
    CVX4q,
    MultiPower,
    RunPath,
    Tissue,
    curve_law,
    warmup_end,
)

RNG = np.random.default_rng(0)
STEPS = 60


def wavy(zeros=True):
    lr = 1e-3 * (0.2 + RNG.random(STEPS)) * np.where(np.arange(STEPS) < 30, 1.0, 0.1)
    lr[:5] = 1e-3 * np.linspace(0.0, 0.4, 5)
    if zeros:
        lr[[12, 13, 40]] = 0.0
        lr[-3:] = 0.0
    return lr


def noise(e, k, q=0.0, v=None, last=None, weight=None):
    """min over v of formula (5)'s noise, or its value at v, term by term."""
    S = np.cumsum(e)
    size = np.maximum(S, 3e-4) ** -q
    w = e**2 * size if weight is None else weight
    c = size[k] if last is None else last

    def value(log_v):
        x = np.exp(log_v)
        tails = np.array([e[s + 1 : k].sum() for s in range(k)])
        return np.sum(w[:k] / (tails + x)) + x * c

    if v is not None:
        return value(np.log(v))
    grid = np.linspace(np.log(1e-9), np.log(1.0), 400)
    start = grid[np.argmin([value(g) for g in grid])]
    found = minimize_scalar(
        value, bounds=(start - 0.1, start + 0.1), method="bounded", options={"xatol": 1e-12}
    )
    return found.fun


@pytest.mark.parametrize(("law", "q"), [(CVX4, 0.0), (CVX4q, 0.125), (CVX3, 0.2), (CVX5, 0.31), (CVX6, 0.31)])
def test_free_step_laws(law, q):
    lr = wavy()
    extra = {"q": q} if law in (CVX5, CVX6) else {}
    if law is CVX6:
        extra["r"] = 0.4
    if law is not CVX3:
        extra["alpha"] = 0.7
    got = law(Linf=2.0, a=0.3, b=5.0, **extra).predict(lr)
    S = np.cumsum(lr)
    alpha = extra.get("alpha", 0.5)
    scale = (lr.max() / 1e-3) ** -0.4 if law is CVX6 else 1.0
    for k in (3, 11, 14, 41, STEPS - 1):
        want = 2.0 + 0.3 * S[k] ** -alpha + 5.0 * scale * noise(lr, k, q)
        assert got[k] == pytest.approx(want, rel=1e-8)


@pytest.mark.parametrize("law", [CD3, CB4])
def test_plain_laws(law):
    lr = wavy()
    extra = {} if law is CD3 else {"alpha": 0.7}
    got = law(Linf=2.0, a=0.3, b=5.0, **extra).predict(lr)
    S = np.cumsum(lr)
    for k in (3, 11, 13, 40, STEPS - 1):
        j = np.flatnonzero(lr[: k + 1] > 0)[-1]  # later zeros are no steps
        want = 2.0 + 0.3 * S[k] ** -extra.get("alpha", 1.0) + 5.0 * noise(lr, j, v=lr[j])
        assert got[k] == pytest.approx(want, rel=1e-9)


def test_reference_features(golden):
    values = [v for v in golden("loss_laws_and_batches")["values"] if v["kind"] == "law_features"]
    assert len(values) == 3
    t = np.arange(24000)
    shapes = {
        "cosine_24000": 3e-5 + 1.35e-4 * (1 + np.cos(np.pi * (t - 2160) / (24000 - 2160))),
        "wsdcon_9": np.where(t < 8000, 3e-4, 9e-5),
        "wsdld_20000_24000": np.where(t < 20000, 3e-4, 3e-4 - 2.7e-4 * (t - 20000) / 4000),
    }
    for value in values:
        lr = shapes[value["inputs"]["curve"]].copy()
        lr[:2160] = np.linspace(0, 3e-4, 2160)
        at, want = value["inputs"]["idx"], value["expected"]
        assert np.cumsum(lr)[at] == pytest.approx(want["S"], rel=1e-9)
        for key, law in (("N_plain", CB4), ("N_free", CVX4), ("N_free_q0p125", CVX4q)):
            assert law(Linf=0.0, a=0.0, b=1.0).predict(lr, at) == pytest.approx(want[key], rel=1e-7)
        tissue = Tissue(Linf=0.0, a=0.0, b=1.0, lam=0.999).predict(lr, at)
        assert -tissue == pytest.approx(want["tissue_S2_lambda0p999"], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.1, 3.0])
def test_rotational_clock(decay):
    lr, std = wavy(), 0.05
    square, e = 1.0, []
    for eta in lr:
        e.append(eta / np.sqrt(square))
        square = (1 - eta * decay) ** 2 * square + (eta / std) ** 2
    e = np.array(e)
    got = RC4(Linf=2.0, a=0.3, b=5.0, alpha=0.6).predict(lr, weight_decay=decay, init_std=std)
    for k in (3, 14, STEPS - 1):
        assert got[k] == pytest.approx(2.0 + 0.3 * np.cumsum(e)[k] ** -0.6 + 5.0 * noise(e, k), rel=1e-8)


def test_clock_of_a_constant_rate_is_the_closed_form():
    eta, decay, std, steps = 2e-3, 0.1, 0.02, 40000
    law = RC4(Linf=0.0, a=1.0, b=0.0, alpha=1.0)
    total = 1.0 / law.predict(np.full(steps, eta), [steps - 1], weight_decay=decay, init_std=std)[0]
    A = eta / (2 * decay * std**2)
    rho = np.sqrt(A + (1 - A) * np.exp(-2 * decay * eta * steps))
    want = (np.arctanh(rho / np.sqrt(A)) - np.arctanh(1 / np.sqrt(A))) / (decay * np.sqrt(A))
    assert total == pytest.approx(want, rel=2e-3)  # a sum against its integral
    # in equilibrium the effective rate is std sqrt(2 decay eta)
    far = RC4(Linf=0.0, a=1.0, b=0.0, alpha=1.0).predict(
        np.full(steps, eta), [steps - 2, steps - 1], weight_decay=decay, init_std=std
    )
    assert 1 / far[1] - 1 / far[0] == pytest.approx(std * np.sqrt(2 * decay * eta), rel=1e-3)


def test_averaged_tissue_and_multi_power():
    lr = wavy(zeros=False)
    S = np.cumsum(lr)
    k = np.arange(1, STEPS)
    got = Averaged(Linf=2.0, a=0.3, b=5.0).predict(lr, k)
    assert got == pytest.approx(2.0 + 0.3 / S[k] + 5.0 * np.cumsum(lr**2)[k] / S[k])
    lam, start = 0.9, warmup_end(lr) - 1
    m = np.zeros(STEPS)
    for i in range(1, STEPS):
        m[i] = (lam * m[i - 1] + lr[i - 1] - lr[i]) if i > start else 0.0
    got = Tissue(Linf=2.0, a=0.3, b=5.0, alpha=0.6, lam=lam).predict(lr, k)
    assert got == pytest.approx(2.0 + 0.3 * S[k] ** -0.6 - 5.0 * np.cumsum(m)[k])
    law = MultiPower(Linf=2.0, a=0.3, b=500.0, alpha=0.6, C=2.0, beta=0.5, gamma=0.6)
    want = []
    for t in k:
        j = np.arange(1, t + 1)
        x = lr[j] ** -0.6 * (S[t] - S[j - 1])
        want.append(2.0 + 0.3 * S[t] ** -0.6 + 500 * np.sum((lr[j] - lr[j - 1]) * (1 - (1 + 2 * x) ** -0.5)))
    assert law.predict(lr, k) == pytest.approx(np.array(want), rel=1e-10)


@pytest.mark.parametrize("beta", [0.0, 0.13, 1.0, 6.5])
@pytest.mark.parametrize("C", [1e-6, 0.4, 30.0])
def test_multi_power_of_a_long_run_term_by_term(C, beta):
    t = np.arange(3000)  # slow and sudden changes: terms near one another, and far
    lr = 3e-4 * np.where(t < 200, (t + 1) / 200, 0.55 + 0.45 * np.cos(np.pi * t / 3000))
    lr[1500:1700] = 1e-6
    lr[1700:1703] = [1e-9, 1e-3, 2e-12]
    at = [1, 150, 201, 1499, 1500, 1700, 1702, 2999]
    S, gamma = np.cumsum(lr), 0.6
    columns = MultiPower.columns([RunPath.make(lr, at)])
    X, dX = columns(np.array([0.5, C, beta, gamma]))
    for row, k in enumerate(at):
        j = np.arange(1, k + 1)
        change, x = lr[j] - lr[j - 1], lr[j] ** -gamma * (S[k] - S[j - 1])
        left = (1 + C * x) ** -beta
        terms = [
            change * (1 - left),
            change * beta * left * x / (1 + C * x),
            change * np.log(1 + C * x) * left,
            -change * beta * left * C * x / (1 + C * x) * np.log(lr[j]),
        ]
        for got, want in zip((X[row, 2], *dX[row, 2, 1:]), terms, strict=True):
            # what rounding of 1 + C x, of S and of the sum may leave
            room = 3e-15 * (1 + beta) * np.sum(np.abs(want)) + 4e-16 * np.sum(np.abs(change)) * (1 + beta)
            assert abs(got - want.sum()) <= room


def test_multi_power_takes_zeros():
    lr = wavy()
    law = MultiPower(Linf=2.0, a=0.3, b=500.0, alpha=0.6, C=2.0, beta=0.5, gamma=0.6)
    nearly = np.where(lr == 0, 1e-60, lr)
    assert law.predict(lr, [20, 50, 59]) == pytest.approx(law.predict(nearly, [20, 50, 59]), rel=1e-6)


@pytest.mark.parametrize("law", [CD3, CB4, CVX4, CVX4q, CVX5, RC4])
def test_batch_term(law):
    lr = wavy()
    extra = {p.name: 0.3 for p in law.nonlinear}
    # one batch size for all steps: the two parts are one
    one = law(Linf=2.0, a=0.3, b=5.0 + 32.0 / 16, **extra).predict(lr)
    two = law(Linf=2.0, a=0.3, b=5.0, b_batch=32.0, **extra).predict(lr, batch_size=16)
    assert two == pytest.approx(one, rel=1e-10)
    with pytest.raises(ConvexlawError, match="pass batch_size"):
        law(Linf=2.0, a=0.3, b=5.0, b_batch=32.0, **extra).predict(lr)


def test_batch_sizes_weight_their_own_steps():
    lr = wavy(zeros=False)
    batch = np.where(np.arange(STEPS) < 25, 8.0, 64.0)
    k = 50
    law = CB4(Linf=0.0, a=0.0, b=0.0, b_batch=1.0)
    tails = np.array([lr[s + 1 : k].sum() for s in range(k)])
    want = np.sum(lr[:k] ** 2 / batch[:k] / (tails + lr[k])) + lr[k] / batch[k]
    assert law.predict(lr, [k], batch)[0] == pytest.approx(want, rel=1e-10)
    # with a free step v minimises the part that does not depend on the batch
    free = CVX4(Linf=0.0, a=0.0, b=0.0, b_batch=1.0).predict(lr, [k], batch)[0]

    def whole(log_v):
        return np.sum(lr[:k] ** 2 / (tails + np.exp(log_v))) + np.exp(log_v)

    v = np.exp(minimize_scalar(whole, bounds=(-12, 0), method="bounded", options={"xatol": 1e-10}).x)
    want = np.sum(lr[:k] ** 2 / batch[:k] / (tails + v)) + v / batch[k]
    assert free == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("name", sorted(CURVE_LAWS))
@pytest.mark.parametrize("batch", [False, True])
def test_derivatives(name, batch):
    law = curve_law(name)
    lr = wavy()
    sizes = np.where(np.arange(STEPS) < 25, 8.0, 64.0)
    has_batch = batch and "b_batch" in law.__dataclass_fields__
    paths = [
        RunPath.make(lr, [6, 20, 41], sizes if has_batch else None, 0.1, 0.02),
        RunPath.make(2 * lr[::-1], [6, 40, 59], sizes if has_batch else None, 0.1, 0.02),
    ]
    columns = law.columns(paths, batch=has_batch)
    theta = np.array([{"q": 0.23, "r": 0.2, "lam": 0.995, "C": 1.7}.get(p.name, 0.6) for p in law.nonlinear])
    X, dX = columns(theta)
    assert X.shape == (6, len(law.linear(has_batch)))
    assert dX.shape == (*X.shape, theta.size)
    for k in range(theta.size):
        up, down = theta.copy(), theta.copy()
        up[k] += 1e-5
        down[k] -= 1e-5
        difference = (columns(up)[0] - columns(down)[0]) / 2e-5
        assert dX[:, :, k] == pytest.approx(difference, rel=1e-5, abs=1e-6 * np.abs(X).max())


def test_spline_in_q_is_close_to_the_sum():
    paths = [RunPath.make(wavy(), [6, 20, 41, 59])]
    for q in (0.0, 0.07, 0.125, 0.33, 0.6):
        theta = np.array([0.5, q])
        near = CVX5.columns(paths)(theta)[0]
        true = CVX5.columns(paths, exact=True)(theta)[0]
        assert near == pytest.approx(true, rel=1e-5)


def test_before_the_first_step_a_law_says_nothing():
    lr = np.r_[0.0, 0.0, 1e-3, 1e-3]
    for name in CURVE_LAWS:
        assert np.isinf(curve_law(name)(Linf=2.0, a=0.3, b=1.0).predict(lr)[:2]).all()
        assert np.isfinite(curve_law(name)(Linf=2.0, a=0.3, b=1.0).predict(lr)[2:]).all()


def test_steps_may_come_in_any_order():
    law = CVX4q(Linf=2.0, a=0.3, b=5.0)
    lr = wavy()
    assert law.predict(lr, [50, 7, 20]) == pytest.approx(law.predict(lr)[[50, 7, 20]], rel=1e-9)


def test_no_spike_after_a_drop():
    lr = np.r_[np.full(1000, 1e-3), np.full(1000, 1e-5)]
    loss = CVX4q(Linf=2.0, a=0.3, b=20.0).predict(lr)
    assert np.all(np.diff(loss[1000:1100]) <= 1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: curve_law("cvx7"), "cvx7"),
        (lambda: CD3(2.0, 0.3, 1.0).predict([1e-3, -1e-3]), "lr.1. = -0.001"),
        (lambda: CD3(2.0, 0.3, 1.0).predict([[1e-3]]), "1-D"),
        (lambda: CD3(2.0, 0.3, 1.0).predict([]), "one learning rate"),
        (lambda: CD3(2.0, 0.3, 1.0).predict([1e-3], [1]), "append"),
        (lambda: CD3(2.0, 0.3, 1.0, b_batch=1.0).predict([1e-3], batch_size=0), "batch_size"),
        (lambda: RC4(2.0, 0.3, 1.0).predict([1e-3], init_std=0.0), "init_std"),
        (lambda: RC4(2.0, 0.3, 1.0).predict([1e-3], weight_decay=-1.0), "weight_decay"),
        (lambda: CVX4q.from_params({"Linf": 1.0}), "missing"),
        (lambda: CVX4q.from_params({"Linf": 1.0, "a": 1.0, "b": 1.0, "alpha": 1.0, "z": 1.0}), "unknown"),
    ],
)
def test_errors_say_what_is_wrong(call, words):
    with pytest.raises(ConvexlawError, match=words):
        call()
