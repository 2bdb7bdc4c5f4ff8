"""Every sentence on what cannot be told: provoked by a design that cannot tell it, silent where it can."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from convexlaw import ConvexlawError, fit_curves, fit_table, read_runs
from convexlaw.simulations import DEMO_TRAIN, demo_logs
from convexlaw.theory.laws import CVX6, Chinchilla, CVX4q, MultiPower
from convexlaw.theory.schedules import parse

CONSTANT = "constant:steps=400,peak=1e-3,warmup=20"
COSINE = "cosine:steps=400,peak=1e-3,warmup=20"
WSD = "wsd:steps=400,peak=1e-3,decay=0.3,warmup=20"
HIGH = "wsd:steps=400,peak=2e-3,decay=0.5,warmup=20"
LAW = CVX4q(2.0, 0.5, 20.0, 0.45)


def sentences(texts, law="cvx4q", truth=LAW, noise=1e-3, start=20, batch=None, **options):
    rng = np.random.default_rng(0)
    parts, schedules = [], {}
    for i, text in enumerate(texts):
        lr = parse(text)
        at = np.arange(start, lr.size, 4)
        loss = truth.predict(lr, at) * np.exp(noise * rng.normal(size=at.size))
        part = pd.DataFrame({"run": f"r{i}", "step": at, "loss": loss})
        if batch is not None:
            part["batch_size"] = batch
        parts.append(part)
        schedules[f"r{i}"] = lr
    fit = fit_curves(read_runs(pd.concat(parts), schedule=schedules), law, **options)
    return fit, " ".join(fit.identifiability.sentences)


def test_no_cooldown():
    words = (
        "lowers its learning rate: b and so the gain of a cooldown cannot be told; one run with a cooldown"
    )
    assert words in sentences([CONSTANT])[1]
    assert "lowers its learning rate" not in sentences([CONSTANT, WSD])[1]
    assert "shape of the response to a drop" in sentences([CONSTANT], "tissue")[1]


def test_too_few_curves_for_q():
    assert "1 fitted curve: q cannot be told" in sentences([COSINE], "cvx5")[1]
    assert "2 fitted curves: q cannot be told" in sentences([COSINE, WSD], "cvx5")[1]
    assert "q cannot be told" not in sentences([COSINE, WSD, CONSTANT], "cvx5")[1]
    assert "q cannot be told" not in sentences([COSINE], "cvx5", fixed={"q": 0.125})[1]


def test_seeds_of_one_schedule_tell_no_q():
    assert "3 fitted curves of 1 schedule: q cannot be told" in sentences([COSINE] * 3, "cvx5")[1]


def test_peaks_that_differ_by_rounding_are_one_peak():
    """The logged peak of a cosine is a little below that of a constant run."""
    near = COSINE.replace("1e-3", "0.994e-3")
    assert "r cannot be told; one run with another peak" in sentences([near, WSD, CONSTANT], "cvx6")[1]
    fit, said = sentences([COSINE, WSD, CONSTANT], "cvx6")
    if f"r ended at {fit.params['r']:g}" in said:
        assert "hold it with fixed= or fit runs with other peaks" in said
    assert (
        "Every fitted run has the weight decay"
        in (sentences([COSINE, WSD], "rc4", weight_decay={"r0": 0.1, "r1": 0.1000001})[1])
    )


def test_one_peak():
    assert "r cannot be told; one run with another peak" in sentences([COSINE, WSD, CONSTANT], "cvx6")[1]
    assert "the law's belief" in sentences([COSINE, WSD])[1]
    both = sentences([COSINE, WSD, HIGH], "cvx6", CVX6(2.0, 0.5, 20.0, 0.45, 0.2, 0.2))[1]
    assert "another peak" not in both


def test_one_batch_size():
    assert "Every fitted step uses the batch size 32" in sentences([COSINE, WSD], batch=32)[1]
    assert "batch size" not in sentences([COSINE, WSD])[1]


def test_one_weight_decay():
    assert "Every fitted run has the weight decay 0.1" in sentences([COSINE, WSD], "rc4", weight_decay=0.1)[1]
    two = sentences([COSINE, WSD], "rc4", weight_decay={"r0": 0.1, "r1": 0.3})[1]
    assert "weight decay" not in two


def test_short_range_of_the_sum():
    words = "grows by less than a factor of 3 over the fitted rows: alpha and Linf"
    assert words in sentences([CONSTANT, WSD], start=200)[1]
    assert words not in sentences([CONSTANT, WSD])[1]


def test_runs_of_different_levels():
    truth = CVX4q(2.0, 0.5, 20.0, 0.45)
    rng = np.random.default_rng(0)
    for shift, said in ((0.3, True), (0.01, False)):
        parts, schedules = [], {}
        for i, text in enumerate([COSINE, WSD, CONSTANT]):
            lr = parse(text)
            at = np.arange(20, 400, 4)
            loss = (truth.predict(lr, at) + (shift if i == 1 else 0.0)) * np.exp(
                2e-3 * rng.normal(size=at.size)
            )
            parts.append(pd.DataFrame({"run": f"r{i}", "step": at, "loss": loss}))
            schedules[f"r{i}"] = lr
        found = fit_curves(read_runs(pd.concat(parts), schedule=schedules), "cvx4q").identifiability.sentences
        words = "no one Linf holds for all"
        assert (words in " ".join(found)) is said
        if said:
            assert "to 'r1') and" in found[0]
            assert "fit runs of one model on one data set together" in found[0]


def of_losses(change, noise=3e-3, texts=(COSINE, WSD), law="cvx4q", truth=LAW):
    """Sentences of a fit to losses of the law, changed by change(run, steps, loss), with noise on top."""
    rng = np.random.default_rng(0)
    parts, schedules = [], {}
    for i, text in enumerate(texts):
        lr = parse(text)
        at = np.arange(20, 400, 4)
        loss = change(i, at, truth.predict(lr, at)) * np.exp(noise * rng.normal(size=at.size))
        parts.append(pd.DataFrame({"run": f"r{i}", "step": at, "loss": loss}))
        schedules[f"r{i}"] = lr
    fit = fit_curves(read_runs(pd.concat(parts), schedule=schedules), law)
    return fit, " ".join(fit.identifiability.sentences)


def test_a_rising_loss_is_no_law_of_ours():
    said = of_losses(lambda i, at, loss: 2.0 + at / 400, texts=(COSINE,))[1]
    assert "The loss rises where cvx4q sees no cause ('r0' by" in said
    late = of_losses(lambda i, at, loss: loss + (i == 1) * 1.5 * np.maximum(at / 400 - 0.6, 0))[1]
    assert "no law here describes a run that diverges; leave it out" in late
    assert "'r1' by" in late
    assert "'r0' by" not in late


def test_a_loss_that_rises_with_its_learning_rate_is_none_that_diverges():
    lr = np.r_[np.linspace(0, 1e-4, 20), np.full(180, 1e-4), np.full(200, 2e-3)]
    at = np.arange(24, 400, 4)
    loss = CVX4q(2.0, 0.1, 300.0, 0.45).predict(lr, at)
    assert loss[-1] > 1.05 * loss.min()
    log = pd.DataFrame({"run": "r", "step": at, "loss": loss})
    fit = fit_curves(read_runs(log, schedule=lr), "cvx4q")
    assert "rises" not in " ".join(fit.identifiability.sentences)


def test_runs_of_two_models_do_not_fit_one_law():
    """With two runs the misfit spreads over both, and neither lies apart by much of its own scatter."""
    fit, said = of_losses(lambda i, at, loss: loss + 1.0 * (i == 1))
    assert fit.score(["r0", "r1"])["r2"].min() < 0.9
    assert "cvx4q does not fit: it misses the medians of ten stretches of 'r" in said
    assert "try other laws (compare), and fit runs of one model on one data set only" in said


@pytest.mark.parametrize("noise", [0.0, 3e-3, 0.05])
def test_a_law_that_fits_is_not_blamed_for_noise(noise):
    words = ("does not fit", "rises where", "explains")
    for change in (
        lambda i, at, loss: loss,
        lambda i, at, loss: loss * np.where(at % 40 == 0, 3.0, 1.0),  # spikes
        lambda i, at, loss: 2.0 + 0 * loss,  # nothing to explain
    ):
        said = of_losses(change, noise)[1]
        assert not any(w in said for w in words)


def test_residuals_that_carry_over_are_not_called_a_misfit():
    rng = np.random.default_rng(1)
    for _ in range(20):
        steps = rng.normal(size=(2, 95)) * 3e-3
        for i in range(1, 95):
            steps[:, i] += 0.9 * steps[:, i - 1]
        said = of_losses(lambda i, at, loss, steps=steps: loss * np.exp(steps[i]), noise=0.0)[1]
        assert "does not fit" not in said
        assert "rises where" not in said


def test_packaged_logs_fit():
    runs = read_runs(demo_logs())
    fit = fit_curves(runs, train=list(DEMO_TRAIN))
    words = ("does not fit", "rises where", "explains")
    assert not any(w in s for w in words for s in fit.identifiability.sentences)
    # cd3 holds alpha and q; R2 is .82 and .84 on two of these runs
    cd3 = fit_curves(runs, "cd3", train=list(DEMO_TRAIN))
    assert any("cd3 does not fit" in s for s in cd3.identifiability.sentences)


def test_runs_of_one_loss_that_follow_no_law():
    rng = np.random.default_rng(0)
    for noise, said in ((0.2, True), (2e-3, False)):
        rows, schedules = [], {}
        for i in range(16):
            lr = parse(f"wsd:steps={200 + 40 * i},peak=1e-3,decay=0.3,warmup=20")
            loss = LAW.predict(lr)[-1] * np.exp(noise * rng.normal())
            rows.append({"run": f"r{i}", "step": lr.size - 1, "loss": loss})
            schedules[f"r{i}"] = lr
        fit = fit_curves(read_runs(pd.DataFrame(rows), schedule=schedules), "cvx4q")
        words = "of the differences between the 16 losses of runs of few losses: they are noise"
        assert (words in " ".join(fit.identifiability.sentences)) is said


def test_parameters_at_zero():
    none = CVX4q(2.0, 0.5, -5.0, 0.45)
    assert (
        "b ended at 0: no noise is seen"
        in sentences([COSINE, WSD], truth=none, noise=0.0, alpha_prior=False)[1]
    )
    flat = CVX4q(2.0, -0.001, 20.0, 0.45)
    assert "a ended at 0: no decrease" in sentences([COSINE, WSD], truth=flat, noise=0.0)[1]
    deep = CVX4q(-1.5, 4.0, 20.0, 0.05)
    fit, said = sentences([COSINE, WSD], truth=deep, noise=0.0, alpha_prior=False)
    assert fit.params["Linf"] == 0.0
    assert "Linf ended at 0: the data does not bound the loss at infinity" in said


def test_no_noise_in_the_batch_part():
    truth = CVX4q(2.0, 0.5, 20.0, 0.45)
    parts, schedules = [], {}
    for i, (text, batch) in enumerate([(COSINE, 16), (WSD, 64), (CONSTANT, 16)]):
        lr = parse(text)
        at = np.arange(20, 400, 4)
        # losses rise with the batch size: the part in 1/batch wants to be negative
        loss = truth.predict(lr, at) + (0.01 if batch == 64 else 0.0)
        parts.append(pd.DataFrame({"run": f"r{i}", "step": at, "loss": loss, "batch_size": batch}))
        schedules[f"r{i}"] = lr
    fit = fit_curves(read_runs(pd.concat(parts), schedule=schedules), "cvx4q")
    assert fit.params["b_batch"] == 0.0
    assert "b_batch ended at 0" in " ".join(fit.identifiability.sentences)


def test_end_of_a_range():
    steep = CVX4q(2.0, 1e-4, 0.0, 3.2)
    fit, said = sentences([COSINE, WSD], truth=steep, noise=0.0, alpha_prior=False)
    assert "alpha ended at 3, the end of its range" in said
    assert "alpha" not in fit.identifiability.names


def test_flat_parameters():
    truth = MultiPower(2.0, 0.5, 300.0, 0.5, 2.0, 0.5, 0.6)
    fit, said = sentences([COSINE], "multipower", truth=truth, noise=3e-3)
    assert fit.identifiability.flat
    assert f"{fit.identifiability.flat[0]} is not bounded by the data within a factor of 7" in said
    assert sentences([COSINE, WSD, CONSTANT])[0].identifiability.flat == ()


def test_exchangeable_parameters():
    fit, said = sentences([CONSTANT], noise=1e-4, start=200, alpha_prior=False)
    found = fit.identifiability
    assert "can be exchanged for one another" in said
    assert "a run 2 to 4 times as long" in said
    assert found.condition_number > 100
    strong = found.to_frame()["correlation"].abs().max()
    assert strong > 0.995
    assert found.correlations.shape == (len(found.names), len(found.names))
    assert np.allclose(np.diag(found.correlations), 1.0)


def test_condition_number_and_correlations_by_hand():
    fit, _ = sentences([COSINE, WSD, CONSTANT], alpha_prior=False)
    problem = fit._state.problem
    X, dX = problem.columns(np.array([fit.params["alpha"]]))
    c = np.array([fit.params[n] for n in ("Linf", "a", "b")])
    f = X @ c
    J = np.column_stack([X / f[:, None], (dX[:, :, 0] @ c) / f])
    J /= np.linalg.norm(J, axis=0)
    assert fit.identifiability.condition_number == pytest.approx(np.linalg.cond(J), rel=1e-6)
    inside = np.abs(np.log(problem.y / f)) <= 1e-3
    cov = np.linalg.inv(J[inside].T @ J[inside])
    size = np.sqrt(np.diag(cov))
    assert fit.identifiability.matrix == pytest.approx(cov / np.outer(size, size), abs=1e-6)


TABLE = Chinchilla(E=1.8, A=480.0, B=2100.0, alpha=0.35, beta=0.37)


def said_of(N, D, law="chinchilla", truth=TABLE, noise=1e-3, **options):
    N, D = np.asarray(N, float), np.asarray(D, float)
    loss = truth.loss(N, D) * np.exp(noise * np.random.default_rng(0).normal(size=N.size))
    fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": loss}), law, **options)
    return fit, " ".join(fit.identifiability.sentences)


def grid(n, d):
    return [a.ravel() for a in np.meshgrid(n, d)]


@pytest.mark.filterwarnings("ignore::convexlaw.ConvergenceWarning")
def test_one_size():
    said = said_of(np.full(12, 1e9), np.geomspace(1e9, 1e11, 12))[1]
    assert "Every row has N = 1e+09: A and alpha cannot be told" in said
    assert "runs at two other sizes" in said


@pytest.mark.filterwarnings("ignore::convexlaw.ConvergenceWarning")
def test_one_number_of_tokens():
    said = said_of(np.geomspace(1e8, 1e10, 12), np.full(12, 1e10))[1]
    assert "Every row has D = 1e+10: B and beta cannot be told" in said


def test_two_sizes_or_tokens():
    assert "two sizes only: A and alpha" in said_of(*grid([1e8, 1e9], np.geomspace(1e9, 1e11, 6)))[1]
    assert (
        "two numbers of tokens only: B and beta" in said_of(*grid(np.geomspace(1e8, 1e10, 6), [1e9, 1e10]))[1]
    )
    whole = said_of(*grid(np.geomspace(1e7, 1e10, 8), np.geomspace(1e8, 1e12, 8)))[1]
    assert "only" not in whole
    assert "Every row" not in whole


@pytest.mark.filterwarnings("ignore::convexlaw.ConvergenceWarning")
def test_one_ratio_of_tokens_to_parameters():
    N = np.geomspace(1e8, 1e10, 12)
    assert "Every row has D/N = 20" in said_of(N, 20 * N)[1]


@pytest.mark.filterwarnings("ignore::convexlaw.ConvergenceWarning")
def test_terms_at_zero_and_ends_of_ranges_in_tables():
    N, D = grid(np.geomspace(1e8, 1e10, 6), np.geomspace(1e9, 1e11, 6))
    deep = Chinchilla(E=-1.5, A=480.0, B=2100.0, alpha=0.2, beta=0.37)
    assert "E ended at 0: no floor of the loss is seen" in said_of(N, D, truth=deep, noise=0.0)[1]
    loss = 2.0 + 2100 * D**-0.37 + 1e-3 * np.log(N / 1e8)
    fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": loss}))
    said = " ".join(fit.identifiability.sentences)
    assert "A ended at 0: no gain from size is seen" in said
    loss = 2.0 + 480 * N**-0.35 + 1e-3 * np.log(D / 1e9)  # more tokens, more loss
    fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": loss}))
    assert "B ended at 0: no gain from tokens is seen" in " ".join(fit.identifiability.sentences)
    steep = Chinchilla(E=1.8, A=480.0, B=1e35, alpha=0.35, beta=3.9)
    assert "beta ended at 3, the end of its range" in said_of(N, D, truth=steep, noise=0.0)[1]


@pytest.mark.parametrize(
    ("law", "term", "size", "tokens"),
    [("two_dimensional", "c0", -0.35, 0.03), ("kaplan", "Dc", -0.07, 0.03), ("kaplan", "k", 0.03, -0.09)],
)
@pytest.mark.filterwarnings("ignore::convexlaw.ConvergenceWarning")
def test_terms_of_other_laws_at_zero(law, term, size, tokens):
    N, D = grid(np.geomspace(1e8, 1e10, 6), np.geomspace(1e9, 1e11, 6))
    loss = 3.0 * (N / 1e8) ** size * (D / 1e9) ** tokens  # one of the two makes the loss rise
    fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": loss}), law)
    said = " ".join(fit.identifiability.sentences)
    shown, seen = ("Nc", "no gain from size") if term == "k" else (term, "nothing of its term")
    assert f"{shown} ended at 0: {seen} is seen; rows that reach further would tell." in said


def test_exchangeable_and_flat_parameters_of_tables():
    N, D = grid(np.geomspace(1e9, 2e9, 4), np.geomspace(1e10, 2e10, 4))
    fit, said = said_of(N, D, noise=2e-3)
    assert "can be exchanged for one another" in said
    assert fit.identifiability.flat
    assert "is not bounded by the rows within a factor of 7" in said


def test_a_table_that_follows_no_law():
    N, D = grid(np.geomspace(1e8, 1e10, 6), np.geomspace(1e9, 1e11, 6))
    assert "chinchilla explains" not in said_of(N, D, noise=0.02)[1]
    said = said_of(N, D, truth=Chinchilla(E=1.8, A=0.0, B=0.0, alpha=0.35, beta=0.37), noise=0.05)[1]
    assert (
        "of the differences between the 36 losses of the table: they are noise, or follow another law" in said
    )


@pytest.mark.parametrize(
    ("law", "words"), [("kaplan", "Nc and alphaN"), ("two_dimensional", "A and a and k")]
)
@pytest.mark.filterwarnings("ignore::convexlaw.ConvergenceWarning")
def test_other_laws_name_their_own_parameters(law, words):
    said = said_of(np.full(12, 1e9), np.geomspace(1e9, 1e11, 12), law)[1]
    assert f"Every row has N = 1e+09: {words} cannot be told" in said


@pytest.mark.filterwarnings("ignore::convexlaw.ConvergenceWarning")
def test_a_table_of_one_loss_has_no_optimum():
    """Terms of 1e-15 are rounding: their optimum would be a precise answer from no information."""
    N, D = grid(np.geomspace(1e8, 1e10, 12), np.array([1e9, 1e10]))
    fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": 2.0}))
    said = " ".join(fit.identifiability.sentences)
    assert "A ended at 0: no gain from size is seen" in said
    assert "B ended at 0: no gain from tokens is seen" in said
    with pytest.raises(ConvexlawError, match="no compute-optimal size"):
        fit.optimal(1e20, resamples=20)


@pytest.mark.parametrize("noise", [0.0, 3e-3])
def test_kaplan_on_losses_that_do_not_differ_gives_no_exponent(noise):
    """Both exponents end at the lower end of their range, and their ratio 1/2 would be the range's."""
    N, D = grid(np.geomspace(1e8, 1e10, 6), np.geomspace(1e9, 1e11, 6))
    loss = 2.0 * np.exp(noise * np.random.default_rng(0).normal(size=N.size))
    fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": loss}), "kaplan")
    assert "alphaN ended at 0.005, the end of its range" in " ".join(fit.identifiability.sentences)
    assert "N_opt is not told by these rows" in str(fit)
    with pytest.raises(
        ConvexlawError, match=r"no compute-optimal size: alphaN ended at 0\.005, the end of its"
    ):
        fit.optimal(1e20, resamples=20)
    held = fit_table(
        pd.DataFrame({"N": N, "D": D, "loss": loss}), "kaplan", fixed={"alphaN": 0.08, "alphaD": 0.1}
    )
    assert "N_opt ~ flops^0.5556" in str(held)
    assert held.optimal(1e20, resamples=20).exponent == pytest.approx(0.1 / 0.18)


def test_a_table_of_noise_is_called_so():
    N, D = grid(np.geomspace(1e8, 1e10, 6), np.geomspace(1e9, 1e11, 6))
    loss = 2.0 * np.exp(3e-3 * np.random.default_rng(0).normal(size=N.size))
    fit = fit_table(pd.DataFrame({"N": N, "D": D, "loss": loss}))
    assert "of the differences between the 36 losses of the table" in " ".join(fit.identifiability.sentences)
