"""Claims about the complete diagram of the Lasso."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "wang-2020-lasso-diagram",
    "The complete Lasso tradeoff diagram",
    "Wang, Yang, Bu and Su 2020",
    "2007.11078",
)
"""The paper, as the ledger names it."""

# fmt: off
CLAIMS = (
    Claim("C017", "Every (TPP, FDP) limit of a Lasso lies above the lower boundary q*", "Theorem 1",
          "lower", 0.0, 1e-09),
    Claim("C018", "It lies below 1 - epsilon TPP / delta: no more than n variables are selected",
          "Theorem 1", "upper", 0.0, 1e-09),
    Claim("C019", "It lies below 1 - epsilon: never worse than choosing at random", "Theorem 1", "upper",
          0.0, 1e-09),
    Claim("C020", "It lies left of the power limit u_DT", "Theorem 1", "upper", 0.0, 1e-09),
    Claim("C021", "Every point between the boundaries is reached: the diagram is complete", "Theorem 1",
          "lower", 0.95,
          why="share of the cells of a 10 by 10 grid inside the region that random problems hit"),
    Claim("C022", "For (delta, epsilon) = (0.5, 0.3) the power limit is u_DT = 0.77874",
          "figure of the diagram", "equal", 0.77874, 5e-06, source="code"),
    Claim("C023", "For epsilon > epsilon* the lower boundary meets 1 - epsilon TPP/delta exactly at u_DT",
          "figure of the diagram", "equal", 0.0, 1e-09),
    Claim("C024", "For epsilon <= epsilon* the diagram reaches TPP 1, where q*(1) < 1 - epsilon/delta",
          "figure below the Donoho-Tanner curve", "equal",
          (1.0, 0.509794, 0.509794, 0.07354), 1e-06, source="derived",
          why="(.6, .25): last TPP drawn, lower boundary there, q*(1), 1 - epsilon/delta - q*(1); the "
              "reference by a separate root"),
    Claim("C025", "Above u_DT no Lasso exists: the boundary is undefined there", "Theorem 1"),
    Claim("C355", "The boundaries are q*, and the smaller of 1 - epsilon and 1 - epsilon TPP / delta",
          "Theorem 1", "equal", 0.0, 1e-09,
          why="both boundaries drawn, and q* itself, beside the formulas; q* by a scan of its equation with "
              "bracketed roots"),
)
"""What it states, with the place, the reference and what is expected here."""
