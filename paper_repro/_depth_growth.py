"""Growth of depth: runs on quadratics, the theory's functions against plain sums, and packaged small runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.simulations.descent import expected_descent
from convexlaw.simulations.problems import Quadratic, power_law_quadratic
from convexlaw.theory import depth
from convexlaw.theory.schedules import constant, cosine, wsd

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["SHAPES", "STARTS", "grow", "small_runs", "theory_errors"]

STARTS = (0.3, 0.5, 0.7, 0.8)
SHAPES = {
    "WSD": lambda steps, peak: wsd(steps, peak, decay=0.1),
    "cosine": cosine,
    "constant": constant,
}


def grow(steps: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train quadratics whole and grown, each schedule at its best peak.

    Returns
    -------
    growth : DataFrame
        One row a schedule and tau/T: early share of the rates, gap of the averaged losses, its bound, excess
        of the final loss over the whole run's, final losses of the whole and the grown run, bound of the last
        iterate, mixing time within 50 % (NaN where the curves do not meet), and the same by a plain search.
    curves : DataFrame
        Loss gaps along the runs, at most 500 points each.
    """
    import pandas as pd

    problem = power_law_quadratic(200, sigma=0.3)
    new = np.arange(200) % 2 == 1
    old, grown = (
        Quadratic(problem.curvature[part], problem.start[part], problem.noise[part]) for part in (~new, new)
    )
    rows, curves = [], {}
    for name, shape in SHAPES.items():
        peaks = np.geomspace(0.02, 1.5, 15)
        ends = [expected_descent(problem, shape(steps, float(peak))).gap[-1] for peak in peaks]
        lr = shape(steps, float(peaks[int(np.argmin(ends))]))
        shared, extra = (expected_descent(part, lr) for part in (old, grown))
        whole = shared.gap + extra.gap
        curves[f"{name}, whole"] = whole
        squares = _squared_distances(old, lr)
        for start in STARTS:
            tau = int(start * steps)
            late = expected_descent(grown, lr[tau:])
            path = shared.gap + np.concatenate([np.full(tau, extra.gap[0]), late.gap])
            norms = np.hypot(shared.grad_norm[tau:], late.grad_norm)
            distance = float(np.sqrt(squares[tau] + grown.distance**2))
            met = depth.mixing_time(path, whole, tau, tolerance=0.5)
            searched = next(
                (t - tau for t in range(tau, steps + 1) if abs(path[t] / whole[t] - 1) < 0.5), None
            )
            rows.append(
                {
                    "schedule": name,
                    "tau": start,
                    "early_share": float(lr[:tau].sum() / lr.sum()),
                    "average_gap": float(lr @ (path - whole)[:-1] / lr.sum()),
                    "formula": depth.average_gap(lr, tau, float(extra.gap[0])),
                    "final_excess": float(path[-1] - whole[-1]),
                    "final_loss": whole[-1],
                    "grown_loss": path[-1],
                    "final_bound": depth.final_bound(lr, tau, norms, distance),
                    "mixing": np.nan if met is None else met,
                    "mixing_searched": np.nan if searched is None else searched,
                }
            )
            curves[f"{name}, grown at {start:g} T"] = path
    thin = slice(None, None, max(1, steps // 500))
    table = pd.DataFrame({"step": np.arange(steps + 1)[thin]} | {k: v[thin] for k, v in curves.items()})
    return pd.DataFrame(rows), table


def _squared_distances(problem: Quadratic, lr: NDArray[np.float64]) -> NDArray[np.float64]:
    """E|x_t - x*|^2 before each update."""
    square, found = problem.start**2, []
    for rate in lr:
        found.append(square.sum())
        square = (1 - rate * problem.curvature) ** 2 * square + rate**2 * problem.noise**2
    return np.array(found)


def theory_errors() -> dict[str, float]:
    """Functions of the theory against plain sums and searches, on random schedules.

    Returns
    -------
    dict
        Largest relative errors of ``average_gap``, ``final_bound`` and ``flops``; cases in which
        ``mixing_steps``, ``latest_step`` or ``expansion_step`` differ from a search.
    """
    rng = np.random.default_rng(8)
    off = dict.fromkeys(("average_gap", "final_bound", "flops"), 0.0)
    wrong = dict.fromkeys(("mixing_steps", "latest_step", "expansion_step"), 0)
    for _ in range(30):
        steps = int(rng.integers(5, 40))
        lr, tau = rng.uniform(0.1, 1, steps), int(rng.integers(1, steps))
        far, tolerance = rng.uniform(0.5, 3), rng.uniform(0.1, 2)
        pairs = {
            "average_gap": _average_gaps(rng, lr, tau),
            "final_bound": _final_bounds(rng.uniform(0.1, 2, steps - tau), lr, tau, far),
            "flops": _flops(rng.integers(1, 100, steps), tau),
        }
        for name, (found, wanted) in pairs.items():
            off[name] = max(off[name], abs(found / wanted - 1))
        need = far**2 / (2 * tolerance)
        fits = [m for m in range(steps - tau + 1) if lr[tau : tau + m].sum() >= need]
        wrong["mixing_steps"] += depth.mixing_steps(lr, tau, far, tolerance) != (fits[0] if fits else None)
        late = [t for t in range(steps + 1) if lr[t:].sum() >= need]
        wrong["latest_step"] += depth.latest_step(lr, far, tolerance) != (late[-1] if late else None)
        # at a constant rate the recipe gives the latest step: as long before the end as mixing takes
        flat, cooldown = np.full(400, rng.uniform(0.1, 1)), int(rng.integers(0, 50))
        mixing = next(m for m in range(400) if flat[:m].sum() >= need)
        latest = max(t for t in range(401) if flat[t : 400 - cooldown].sum() >= need)
        wrong["expansion_step"] += depth.expansion_step(400, mixing, cooldown) != latest
    return off | wrong


def _average_gaps(rng: np.random.Generator, lr: NDArray[np.float64], tau: int) -> tuple[float, float]:
    """Give the package's gap, and the difference of two bounds on averages, each summed step by step."""
    norm, extra, middle, shared, new, new_at = rng.uniform(0.1, 2, 6)
    grown = whole = 0.0
    for t, rate in enumerate(lr):
        grown += rate**2 * norm**2 / 2 + (extra * rate if t < tau else 0.0)
        whole += rate**2 * norm**2 / 2
    # the small model's last distance is the large one's first: it cancels
    grown += (shared**2 - middle**2) / 2 + (middle**2 + new_at**2) / 2
    whole += (shared**2 + new**2) / 2
    found = depth.average_gap(lr, tau, extra, distance_at=new_at, distance=new)
    return found, (grown - whole) / float(lr.sum())


def _final_bounds(
    norms: NDArray[np.float64], lr: NDArray[np.float64], tau: int, far: float
) -> tuple[float, float]:
    """Give the package's bound, and the sum from tau on minimised over the weight of a next step."""
    from scipy.optimize import minimize_scalar

    rates = lr[tau:]
    tail = np.append(np.cumsum(rates[:0:-1])[::-1], 0.0)

    def total(log_v: float) -> float:
        v = np.exp(log_v)
        noise = float(np.sum(rates**2 * norms**2 / (tail + v)))
        return float(far**2 / (2 * (rates.sum() + v)) + 0.5 * noise + 0.5 * v * norms[-1] ** 2)

    grid = np.linspace(-12, 6, 181)
    start = float(grid[int(np.argmin([total(x) for x in grid]))])
    best = minimize_scalar(
        total, bounds=(start - 0.2, start + 0.2), method="bounded", options={"xatol": 1e-9}
    )
    return depth.final_bound(lr, tau, norms, far), float(best.fun)


def _flops(tokens: NDArray[np.int64], tau: int) -> tuple[float, float]:
    small, large = 3, 11
    each = [6 * int(b) * (small if t < tau else large) for t, b in enumerate(tokens)]
    return depth.flops(tokens, tau, small, large), float(sum(each))


def small_runs() -> dict[str, Any]:
    """Tables of the packaged runs of a small transformer: gaps, mixing, initialisations, equal compute."""
    from convexlaw.simulations import evidence_depth as runs

    return {
        "gaps": runs.depth_table(),
        "mixing": runs.mixing_table(),
        "inits": runs.depth_inits(),
        "same_compute": runs.depth_same_compute(),
    }
