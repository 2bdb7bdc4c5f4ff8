"""Claims about designing SLOPE penalties."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "zhang-2021-slope-designs",
    "Efficient designs of SLOPE penalty sequences in finite dimension",
    "Zhang and Bu 2021",
    "2102.07211",
)
"""The paper, as the ledger names it."""

_PGD = "projected gradient descent"
_ARMA = "authors' code: ARMA(1, 1) rows, n = 20, p = 50, leave one out, 50 repetitions"

# fmt: off
CLAIMS = (
    Claim("C070", "The gradient of tau² in the p weights has a closed form", _PGD, "lower", 0.99,
          source="code",
          why="cosine between the first step and finite differences of the fixed point, p = 24"),
    Claim("C071", "The steps lower tau: every accepted one", _PGD, "upper", 0.0,
          why="largest change of tau along the run"),
    Claim("C072", "The projection keeps the weights non-increasing and not negative", _PGD, "upper", 0.0,
          why="largest increase from rank to rank, and minus the smallest weight"),
    Claim("C073", "The design has a smaller noise level than the best Lasso", _PGD, "upper", 1.0,
          why="tau over that of the best Lasso, fresh draws"),
    Claim("C074", "... and than the best two-level penalty", _PGD, "upper", 1.0,
          why="tau over that of the best two-level penalty, fresh draws, p = 200"),
    Claim("C075", "It comes near the best sequence of the limit", _PGD, "upper", 1.02, source="derived",
          why="tau over that of the optimal sequence at the same p, fresh draws"),
    Claim("C076", "Fits with the designed penalty have the predicted error", "section on simulations",
          "upper", 4.0,
          why="deviation of the mean error of repeated fits from its limit in standard errors"),
    Claim("C077", "A few levels are nearly as good as p of them", "k-level SLOPE", "lower", 0.7,
          why="share of the gain in error of the best sequence over the Lasso that two levels keep, "
              "signals 1 (50 %)"),
    Claim("C078", "More levels are never worse: one, two, any", "k-level SLOPE", "upper", -0.01,
          why="largest change of the error from one to two to any number of levels; here each step gains"),
    Claim("C079", "Lasso: cross-validated error .2985", _ARMA, "monte-carlo", 0.2985, 3.0, source="code",
          why="penalty 1e-4, other random numbers; the standard error includes that of the script's 50 "
              "repetitions"),
    Claim("C080", "Two levels (40 % of ranks, second level 0): .2081", _ARMA, "monte-carlo", 0.2081, 3.0,
          source="code",
          why="first level 1e-3, other random numbers; the script's own error included, not its choice of "
              "the best of four levels"),
    Claim("C081", "Two levels are better there", _ARMA, "lower", 3.0, source="code",
          why="mean difference in standard errors; 50 repetitions, as in the script, cannot tell: .012 with "
              "a standard error of .018"),
    Claim("C082", "ASCVD, cross-validated errors: Lasso .5276, two levels .4888, three .4884, BH .531, "
                  "minimax .559", "real data", expected="unobtainable", source="code",
          why="the data is not public: no error of it can be measured"),
    Claim("C083", "ADNI, accuracy: Lasso .62, two levels .66", "real data", expected="unobtainable",
          source="code",
          why="the data is not public: no accuracy of it can be measured"),
)
"""What it states, with the place, the reference and what is expected here."""
