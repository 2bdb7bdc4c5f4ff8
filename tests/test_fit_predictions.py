"""What a fit of curves says: predictions, scores, warnings, which rows it takes, the papers' protocol."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import lsq_linear

from convexlaw import ConvexlawError, ExtrapolationWarning, fit_curves, load_fit, read_runs
from convexlaw.theory.laws import CD3, RC4, CVX4q, warmup_end
from convexlaw.theory.schedules import parse

TEXTS = {
    "constant": "constant:steps=500,peak=1e-3,warmup=20",
    "cosine": "cosine:steps=500,peak=1e-3,warmup=20",
    "wsd": "wsd:steps=500,peak=1e-3,decay=0.3,warmup=20",
    "long": "wsd:steps=900,peak=1e-3,decay=0.2,warmup=20",
}
LAW = CVX4q(Linf=2.0, a=0.5, b=20.0, alpha=0.5)


def log_of(text, name="run", every=5, law=LAW, noise=0.0, seed=0, column="loss", **extra):
    lr = parse(text)
    at = np.arange(0, lr.size, every)
    batch = extra.pop("batch", None)
    options = {k: extra[k] for k in ("weight_decay", "init_std") if k in extra}
    loss = law.predict(lr, at, batch, **options)
    loss = loss * np.exp(noise * np.random.default_rng(seed).normal(size=at.size))
    frame = pd.DataFrame({"run": name, "step": at, "lr": lr[at], column: loss})
    if batch is not None:
        frame["batch_size"] = np.broadcast_to(batch, lr.shape)[at]
    return frame


def table_of(names=tuple(TEXTS), **options):
    frame = pd.concat([log_of(TEXTS[n], n, seed=i, **options) for i, n in enumerate(names)])
    return read_runs(frame, schedule={n: parse(TEXTS[n]) for n in names})


@pytest.fixture(scope="module")
def fit():
    return fit_curves(table_of(noise=1e-3), "cvx4q", train=["constant", "cos*", "wsd"])


def test_runs_are_chosen_by_name_and_glob(fit):
    assert fit.train == ("constant", "cosine", "wsd")
    assert fit.runs == ("constant", "cosine", "wsd", "long")
    assert list(fit.score()["run"]) == ["long"]
    assert list(fit.score("w*")["run"]) == ["wsd"]
    assert list(fit.score(["wsd", "long"])["trained"]) == [True, False]
    with pytest.raises(ConvexlawError, match="names no run"):
        fit_curves(table_of(), train="nothing*")


def test_prediction_is_the_law(fit):
    lr = parse(TEXTS["long"])
    assert fit.predict(lr) == pytest.approx(fit.model.predict(lr), rel=1e-12)
    assert fit.predict(TEXTS["long"]) == pytest.approx(fit.predict(lr), rel=1e-15)
    assert fit.predict(lr, at=[3, 800]) == pytest.approx(fit.predict(lr)[[3, 800]], rel=1e-9)
    assert fit.predict(lr).shape == (900,)
    assert str(fit).count("\n") < 12


def test_scores_by_hand(fit):
    row = fit.score("long").iloc[0]
    table = table_of(noise=1e-3)
    steps, loss = table.curve("long")
    keep = steps >= 20  # the warmup is not scored
    error = fit.model.predict(parse(TEXTS["long"]), steps[keep]) - loss[keep]
    assert row["points"] == keep.sum()
    assert row["mae"] == pytest.approx(np.mean(np.abs(error)))
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert row["prede"] == pytest.approx(np.mean(np.abs(error) / loss[keep]))
    assert row["worste"] == pytest.approx(np.max(np.abs(error) / loss[keep]))
    assert row["r2"] == pytest.approx(1 - np.sum(error**2) / np.sum((loss[keep] - loss[keep].mean()) ** 2))
    assert row["final_error"] == pytest.approx(error[-1])
    # last value: the last loss of the fitted runs that are longest, here all three
    last = np.mean([table.curve(n)[1][-1] for n in ("constant", "cosine", "wsd")])
    assert row["last_value_mae"] == pytest.approx(np.mean(np.abs(loss[keep] - last)))
    assert row["mae"] < row["last_value_mae"]


def test_other_logs_can_be_scored(fit, tmp_path):
    path = tmp_path / "other.csv"
    log_of("linear:steps=500,peak=1e-3,warmup=20", "other", every=1).to_csv(path, index=False)
    row = fit.score(str(path)).iloc[0]
    assert (row["run"], bool(row["trained"])) == ("other", False)
    assert row["mae"] < 2e-3


def test_residuals_cover_every_run(fit):
    frame = fit.residuals()
    assert set(frame["run"]) == set(fit.runs)
    assert frame["residual"].to_numpy() == pytest.approx(
        np.log(frame["loss"] / frame["predicted"]).to_numpy()
    )
    assert frame.groupby("run")["trained"].first().to_dict() == {n: n != "long" for n in fit.runs}


def test_frames_go_through_the_reader():
    frame = log_of(TEXTS["cosine"], "a", every=1)
    fit = fit_curves(frame, "cvx4q")
    assert fit.params["Linf"] == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(ConvexlawError, match="no learning rates"):
        fit_curves(frame.drop(columns="lr"), "cvx4q")


def test_a_schedule_in_the_header_of_a_log_is_used(tmp_path):
    frame = log_of(TEXTS["wsd"], "a", every=40).drop(columns="run")
    text = f"# convexlaw-log: 1\n# schedule: {TEXTS['wsd']}\n# steps: 500\n" + frame.to_csv(index=False)
    path = tmp_path / "a.csv"
    path.write_text(text)
    fit = fit_curves(path, "cvx4q", alpha_prior=False)
    # with lines between the logged rates the losses would not be those of the law
    assert fit.objective < 1e-12


def test_rows_of_the_warmup_are_left_out_but_its_rates_count():
    table = table_of(("cosine",))
    frame = table.frame.copy()
    spoiled = frame["step"] < 20
    frame.loc[spoiled, "loss"] += 5.0
    bad = read_runs(frame[["run", "step", "lr", "loss"]], schedule=parse(TEXTS["cosine"]))
    assert fit_curves(bad, "cvx4q").params == pytest.approx(fit_curves(table, "cvx4q").params)
    later = fit_curves(bad, "cvx4q", skip=50)
    assert later._state.prepared.paths[0].at.min() >= 70


@pytest.mark.parametrize(
    ("lr", "steps"),
    [
        ([1.0, 1.0, 0.5], 0),
        ([0.1, 0.2, 0.3, 0.3], 3),
        ([0.0, 0.1, 0.2, 0.2, 0.1], 3),
        ([0.1, 0.2, 0.3], 0),
        ([0.3, 0.3 + 1e-17, 0.3], 0),
        ([0.2], 0),
        (np.r_[np.repeat(np.linspace(1e-4, 1e-3, 10), 10), np.full(500, 1e-3)], 91),  # stairs
        (np.r_[np.zeros(50), np.repeat(np.linspace(1e-4, 1e-3, 10), 10), np.full(300, 1e-3)], 141),
        (
            np.round(np.r_[np.linspace(1e-6, 1e-3, 3000), np.full(5000, 1e-3)], 5),
            2955,
        ),  # few digits: the last level but one is within 1 %
        # stages of a schedule are no warmup, nor is a restart, nor a run that rises throughout
        (np.repeat([1e-4, 1e-3], 300), 0),
        (np.repeat([1e-4, 5e-4, 1e-3], [100, 100, 800]), 0),
        (np.repeat(np.linspace(1e-4, 1e-3, 10), 60), 0),
        (np.r_[np.repeat(np.linspace(1e-4, 6e-4, 6), 200), np.full(2000, 6e-4)], 0),
        (np.r_[np.full(300, 1e-3), np.linspace(1e-3, 2e-3, 100), np.full(400, 2e-3)], 0),
        (np.r_[np.linspace(1e-3, 1e-5, 300), np.linspace(1e-5, 2e-3, 50), np.full(700, 2e-3)], 0),
        # a second rise after a plateau as long as the warmup is one of the schedule
        (np.r_[np.linspace(0, 1e-3, 100), np.full(200, 1e-3), np.linspace(1e-3, 2e-3, 100)], 100),
    ],
)
def test_warmup_is_the_leading_rise(lr, steps):
    assert warmup_end(np.array(lr)) == steps


@pytest.mark.parametrize("size", [1e-5, 3e-5, 1e-4])
def test_a_warmup_with_jitter_is_found(size):
    """Steps of 1e-5 with jitter up to ten times as large; the plateau is exact, or has jitter as well."""
    for seed in range(20):
        jitter = size * np.random.default_rng(seed).uniform(-1, 1, 600)
        ramp = np.maximum(np.r_[np.linspace(1e-5, 1e-3, 100), np.full(500, 1e-3)] + jitter, 1e-6)
        assert 85 <= warmup_end(np.r_[ramp[:100], np.full(500, 1e-3)]) <= 101
        assert 85 <= warmup_end(ramp) <= 200


def test_losses_of_a_warmup_in_stairs_are_left_out():
    lr = np.r_[np.repeat(np.linspace(1e-4, 1e-3, 10), 10), parse("cosine:steps=800,peak=1e-3")]
    at = np.arange(lr.size)
    loss = LAW.predict(lr, at) + np.where(at < 90, 5.0, 0.0)
    fit = fit_curves(pd.DataFrame({"run": "a", "step": at, "lr": lr, "loss": loss}), "cvx4q")
    assert fit.params["Linf"] == pytest.approx(2.0, abs=1e-3)
    assert "91 losses in the LR warmup are left out of the fit." in fit.notes


def test_split_is_chosen_and_said():
    train = log_of(TEXTS["cosine"], "a")
    few = train.copy()
    few["val_loss"] = np.where(few["step"] % 50 == 0, few["loss"] + 0.1, np.nan)
    many = train.copy()
    many["val_loss"] = many["loss"] + 0.1
    lr = parse(TEXTS["cosine"])
    fit = fit_curves(read_runs(few, schedule=lr), "cvx4q")
    assert fit.split == "train"
    assert any("only 9 validation losses" in n for n in fit.notes)
    fit = fit_curves(read_runs(many, schedule=lr), "cvx4q")
    assert fit.split == "val"
    assert fit.params["Linf"] == pytest.approx(2.1, abs=5e-3)
    assert fit_curves(read_runs(many, schedule=lr), "cvx4q", split="train").split == "train"
    with pytest.raises(ConvexlawError, match="no val loss"):
        fit_curves(read_runs(train, schedule=lr), "cvx4q", split="val")
    with pytest.raises(ConvexlawError, match="choose"):
        fit_curves(read_runs(train, schedule=lr), "cvx4q", split="test")


def test_law_is_chosen_and_said(tmp_path):
    table = table_of()
    plain = fit_curves(table)
    assert plain.law == "cvx4q"
    assert any("rc4 would need the weight decay" in n for n in plain.notes)
    assert fit_curves(table, weight_decay=0.1).law == "rc4"
    assert fit_curves(table, weight_decay=dict.fromkeys(TEXTS, 0.1)).law == "rc4"
    head = "# convexlaw-log: 1\n# weight_decay: 0.1\n# init_std: 0.05\n# optimizer: {}\n"
    for optimizer, law in (("adamw", "rc4"), ("sgd", "cvx4q")):
        path = tmp_path / f"{optimizer}.csv"
        frame = log_of(TEXTS["wsd"], every=1, law=RC4(2.0, 0.5, 20.0, 0.5), weight_decay=0.1, init_std=0.05)
        path.write_text(head.format(optimizer) + frame.drop(columns="run").to_csv(index=False))
        fit = fit_curves(path)
        assert fit.law == law
        if law == "rc4":
            assert fit.objective < 1e-9  # weight decay and initial std of the log
            assert fit.predict(TEXTS["wsd"]) == pytest.approx(
                RC4(2.0, 0.5, 20.0, 0.5).predict(parse(TEXTS["wsd"]), weight_decay=0.1, init_std=0.05),
                rel=1e-3,
            )
    with pytest.raises(ConvexlawError, match="needs the weight decay"):
        fit_curves(table, "rc4")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cosine:steps=2500,peak=1e-3,warmup=20", "2500 steps"),
        ("cosine:steps=500,peak=5e-3,warmup=20", "peak learning rate of 0.005"),
        ("cosine:steps=500,peak=1e-4,warmup=20", "peak learning rate of 0.0001"),
        ("constant:steps=1900,peak=3e-3,warmup=20", "sum of learning rates"),
    ],
)
def test_far_predictions_are_warned_about(fit, text, words):
    with pytest.warns(ExtrapolationWarning, match=re.escape(words)):
        fit.predict(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.predict("cosine:steps=1900,peak=1e-3,warmup=20")  # within 4 times
        fit.predict("constant:steps=9000,peak=1e-3,warmup=20", at=[100, 1500])  # only the steps asked count


def test_scores_of_far_runs_are_warned_about(fit, tmp_path):
    far = pd.concat([log_of(f"cosine:steps={n},peak=1e-3,warmup=20", f"s{n}") for n in (1900, 2500)])
    path = tmp_path / "fit.json"
    fit_curves(pd.concat([log_of(TEXTS["wsd"], "a"), far]), "cvx4q", train=["a"], alpha_prior=False).to_json(
        path
    )
    for call in (lambda: fit.score(far), lambda: load_fit(path).score("s*")):
        words = "scored losses lie beyond 4 times the fitted range (run 's2500': 2496 steps against"
        with pytest.warns(ExtrapolationWarning, match=re.escape(words)) as caught:
            call()
        assert len(caught) == 1
        assert "s1900" not in str(caught[0].message)
        assert caught[0].filename == __file__
    with pytest.warns(ExtrapolationWarning, match="peak learning rate of 0.005") as caught:
        fit.score(pd.concat([log_of(TEXTS["wsd"].replace("1e-3", "5e-3"), f"p{i}") for i in range(5)]))
    assert "; 2 more)" in str(caught[0].message)
    early = log_of("constant:steps=9000,peak=1e-3,warmup=20", "s").iloc[:300]
    fit.score(early)  # only the scored steps count


def test_batch_sizes_are_told_apart_only_where_they_differ():
    law = CVX4q(2.0, 0.5, 10.0, 0.5, b_batch=320.0)
    frame = pd.concat(
        [log_of(TEXTS["wsd"], f"b{b}", law=law, batch=b, every=1) for b in (16, 64)]
        + [log_of(TEXTS["cosine"], "c", law=law, batch=32, every=1)]
    )
    fit = fit_curves(frame, "cvx4q")
    assert fit.params["b"] == pytest.approx(10.0, rel=1e-2)
    assert fit.params["b_batch"] == pytest.approx(320.0, rel=1e-2)
    assert any("b_batch" in n for n in fit.notes)
    want = law.predict(parse(TEXTS["long"]), batch_size=48)
    assert fit.predict(TEXTS["long"], 48) == pytest.approx(want, rel=1e-3)
    with pytest.raises(ConvexlawError, match="pass batch_size"):
        fit.predict(TEXTS["long"])
    with pytest.warns(ExtrapolationWarning, match="batch sizes of 2 to 2"):
        fit.predict(TEXTS["long"], 2)
    one = fit_curves(frame[frame["run"] == "b16"], "cvx4q")
    assert "b_batch" not in one.params
    assert one.predict(TEXTS["wsd"], 16) == pytest.approx(one.predict(TEXTS["wsd"]))
    with pytest.raises(ConvexlawError, match="the batch size 16 alone"):
        one.predict(TEXTS["wsd"], 64)
    none = fit_curves(frame[frame["run"] == "b16"].drop(columns="batch_size"), "cvx4q")
    with pytest.raises(ConvexlawError, match="no batch size"):
        none.predict(TEXTS["wsd"], 64)


def test_papers_protocol_is_least_squares_on_the_first_half():
    table = table_of(("constant", "cosine", "wsd"), noise=2e-3)
    fit = fit_curves(table, protocol="paper")
    assert (fit.law, fit.protocol) == ("cd3", "paper")
    rows, losses, later = [], [], {}
    for name in ("constant", "cosine", "wsd"):
        lr = parse(TEXTS[name])[: table.last_step(name) + 1]
        steps, loss = table.curve(name)
        S = np.cumsum(lr)
        noise = CD3(0.0, 0.0, 1.0).predict(lr, steps)
        first = (steps >= 20) & (steps < lr.size / 2)
        rows.append(np.column_stack([np.ones(first.sum()), 1 / S[steps[first]], noise[first]]))
        losses.append(loss[first])
        later[name] = int(np.sum(steps >= lr.size / 2))
    want = lsq_linear(np.concatenate(rows), np.concatenate(losses), (0, np.inf), method="bvls", tol=1e-14)
    assert [fit.params[k] for k in ("Linf", "a", "b")] == pytest.approx(list(want.x), rel=1e-5)
    assert fit.objective == pytest.approx(want.cost, rel=1e-8)
    assert fit.score().set_index("run")["points"].to_dict() == later
    with pytest.raises(ConvexlawError, match="cd3"):
        fit_curves(table, "cvx4q", protocol="paper")
    with pytest.raises(ConvexlawError, match="choose 'robust' or 'paper'"):
        fit_curves(table, protocol="papers")


def test_papers_protocol_has_a_batch_column_where_the_batch_varies():
    law = CD3(2.0, 0.05, 10.0, b_batch=320.0)
    frame = pd.concat(
        [log_of(TEXTS["wsd"], f"b{b}", law=law, batch=b, every=1) for b in (16, 64)]
        + [log_of("wsd:steps=500,peak=1e-3,decay=0.8,warmup=20", "c", law=law, batch=32, every=1)]
    )
    fit = fit_curves(frame, protocol="paper")
    assert [fit.params[k] for k in ("Linf", "a", "b", "b_batch")] == pytest.approx(
        [2.0, 0.05, 10.0, 320.0], rel=1e-4
    )
    assert fit.score()["r2"].min() > 0.999


def test_the_prior_can_be_switched_off():
    table = table_of(noise=3e-3, law=CVX4q(2.0, 0.5, 20.0, 0.8))
    on, off = fit_curves(table, "cvx4q"), fit_curves(table, "cvx4q", alpha_prior=False)
    assert abs(np.log(on.params["alpha"] / 0.5)) < abs(np.log(off.params["alpha"] / 0.5))


def test_figures_draw(fit):
    import matplotlib.pyplot as plt

    from convexlaw.figures import fits

    for draw in (fits.plot_curve_fit, fits.plot_residuals, fits.plot_predicted_actual):
        ax = draw(fit)
        assert ax.get_xlabel()
        assert ax.lines
        plt.close(ax.figure)
    assert fit.plot().get_title(loc="left").startswith("cvx4q")
    figure = fits.plot_schedule_panel(fit)
    assert len(figure.axes) == 8  # loss above and schedule below, four runs
    assert {ax.get_ylabel() for ax in figure.axes} >= {"loss (nats)", "LR (1e-3)"}
    ax = fits.plot_profile(fit, "alpha")
    values, rise = ax.lines[0].get_data()
    assert np.min(rise) == pytest.approx(0.0, abs=0.05)
    assert values[0] < fit.params["alpha"] < values[-1]
    fit.identifiability.plot()
    plt.close("all")
