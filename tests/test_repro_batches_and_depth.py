"""Batch schedules and growth of depth: claims notice an error of 5 %, figures are read in grey."""

from __future__ import annotations

import dataclasses

import matplotlib.pyplot as plt
import pytest

from convexlaw.paper_repro import _batch_simulations, bu_2025_depth, li_2026_batch_schedules
from convexlaw.paper_repro._data import Data
from convexlaw.paper_repro._depth_growth import theory_errors
from convexlaw.theory import batch, depth


def verdicts(module, data):
    return {check.id: check.verdict for check in module.check(data)}


def larger(function, *fields):
    """Return the function with its result, or these fields of it, 5 % larger."""

    def wrong(*args, **options):
        found = function(*args, **options)
        if fields:
            return dataclasses.replace(found, **{name: 1.05 * getattr(found, name) for name in fields})
        if isinstance(found, tuple):
            return tuple(1.05 * x for x in found)
        return found if found is None else 1.05 * found

    return wrong


@pytest.fixture(scope="module")
def grown():
    return bu_2025_depth.compute(quick=True)


@pytest.fixture(scope="module")
def batches():
    return li_2026_batch_schedules.compute(quick=True)


@pytest.fixture(scope="module")
def grown_verdicts(grown):
    return verdicts(bu_2025_depth, grown)


@pytest.fixture(scope="module")
def batch_verdicts(batches):
    return verdicts(li_2026_batch_schedules, batches)


@pytest.mark.parametrize(
    ("name", "claims"),
    [
        ("average_gap", {"C400"}),
        ("final_bound", {"C401"}),
        ("mixing_steps", {"C403"}),
        ("latest_step", {"C403"}),
        ("expansion_step", {"C404"}),
        ("flops", {"C282", "C405"}),
        ("compute_ratio", {"C278", "C280"}),
    ],
)
def test_an_error_in_the_theory_of_depth_flips_a_claim(monkeypatch, grown, grown_verdicts, name, claims):
    monkeypatch.setattr(depth, name, larger(getattr(depth, name)))
    after = verdicts(bu_2025_depth, Data(grown.tables, grown.values | {"theory": theory_errors()}))
    assert {id for id in after if after[id] != grown_verdicts[id]} == claims


@pytest.mark.parametrize(
    ("name", "fields", "claims"),
    [
        ("joint_optimum", ("loss",), {"C229", "C230", "C231", "C232", "C264", "C265", "C384"}),
        ("joint_optimum", ("total_rate",), {"C265"}),
        ("critical_batch_size", (), {"C263"}),
        ("next_batch", (), {"C268"}),
    ],
)
def test_an_error_in_the_rules_of_batches_flips_a_claim(
    monkeypatch, batches, batch_verdicts, name, fields, claims
):
    monkeypatch.setattr(batch, name, larger(getattr(batch, name), *fields))
    after = verdicts(li_2026_batch_schedules, batches)
    assert {id for id in after if after[id] != batch_verdicts[id]} == claims


@pytest.mark.parametrize("which", [0, 1])
def test_both_parts_of_the_noise_scale_are_checked(monkeypatch, batches, which):
    right = _batch_simulations.noise_scale

    def wrong(*args):
        found = list(right(*args))
        found[which] = 1.05 * found[which]
        return tuple(found)

    monkeypatch.setattr(_batch_simulations, "noise_scale", wrong)
    values = batches.values | {"gradients": _batch_simulations.sampled_gradients(12_000)}
    assert verdicts(li_2026_batch_schedules, Data(batches.tables, values))["C272"] == "fails"


def test_what_cannot_be_obtained_has_a_measurement_or_says_that_there_is_none(grown, batches):
    checks = bu_2025_depth.check(grown) + li_2026_batch_schedules.check(batches)
    without = [check for check in checks if check.verdict == "unobtainable" and check.computed is None]
    assert without
    for check in without:
        assert "nothing was measured" in check.note or "not tried" in check.note, check.id


def test_curves_and_bars_are_told_apart_without_colour(grown, batches):
    for module, data in ((bu_2025_depth, grown), (li_2026_batch_schedules, batches)):
        figure = module.draw(data)
        for ax in figure.axes:
            named = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
            looks = [
                (line.get_linestyle(), line.get_marker(), line.get_markerfacecolor() == "white")
                for line in named
            ]
            assert len(set(looks)) == len(looks), ax.get_title()
            hatches = [bars[0].get_hatch() for bars in ax.containers]
            assert len(set(hatches)) == len(hatches), ax.get_title()
        plt.close(figure)
