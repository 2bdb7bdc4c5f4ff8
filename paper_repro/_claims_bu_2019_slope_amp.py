"""Claims about approximate message passing for SLOPE and its state evolution."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "bu-2019-slope-amp",
    "Algorithmic analysis and statistical estimation of SLOPE via approximate message passing",
    "Bu, Klusowski, Rush and Su 2019",
    "1907.07502",
)
"""The paper, as the ledger names it."""

_RUN = "experiment: n = 500, p = 1000, 10 % signals, penalty half 2, half 0 (units of tau), sigma = .2"

# fmt: off
CLAIMS = (
    Claim("C026", "AMP converges to the SLOPE solution: below 1e-2 to 1e-6 after 1, 3, 5, 6 to 7, 8 to 9 "
                  "iterations", _RUN, "equal", (1, 3, 5, 6.5, 8.5), 2.0, source="measured",
          why="mean over three seeds of the first iteration with that mean squared distance to the "
              "minimiser"),
    Claim("C027", "ISTA: after 6, 17, 33, 50, 68 iterations", _RUN, "equal", (6, 17, 33, 50, 68), 6.0,
          source="measured", why="mean over three seeds"),
    Claim("C028", "FISTA needs several times as many iterations as AMP", _RUN, "lower", 2.0, source="code",
          why="iterations to 1e-6 over those of AMP; this FISTA restarts, without restarts it needs 34 "
              "to 37"),
    Claim("C029", "Data-driven thresholds reach a gap of 1e-12 within 50 iterations",
          "mode with thresholds alpha |z|/sqrt n", "upper", 1e-12, source="measured",
          why="relative duality gap, penalty (1.8, 1) on 25 %, no exact finish"),
    Claim("C030", "A fixed point is exactly a SLOPE solution, for lambda = theta (1 - m/n)", "fixed points",
          "upper", 1e-12, source="derived",
          why="its duality gap over the objective at zero, by the independent check"),
    Claim("C031", "The noise level of every iteration follows the state evolution", "Theorem 1", "upper",
          4.0, why="largest deviation of |z|/sqrt n from tau_t in standard errors, nine iterations"),
    Claim("C032", "F increases and is concave in tau²", "Proposition on state evolution"),
    Claim("C033", "From the start tau_0 it converges to its only fixed point",
          "Proposition on state evolution", "equal", 0.0, 1e-06),
    Claim("C034", "There is a fixed point iff f(alpha) < delta; for the Lasso alpha > alpha_min(delta)",
          "domain of alpha"),
    Claim("C035", "lambda = alpha tau (1 - df/delta) increases along a fixed shape", "calibration", "lower",
          0.0),
    Claim("C036", "... so alpha follows from lambda: there and back", "calibration", "equal", 0.0, 1e-06),
    Claim("C037", "TPP, FDP, error, df and selected share of solutions have the predicted limits",
          "Theorem 2", "upper", 4.0, why="largest deviation in standard errors: Lasso, two levels, BH"),
    Claim("C038", "Error = delta (tau² - sigma²)", "Theorem 2", "equal", 0.0, 1e-08),
    Claim("C039", "|y - X b|²/n tends to tau² (1 - df/delta)²", "Theorem 2", "monte-carlo", 0.0, 4.0),
    Claim("C040", "tau is estimated from the residual alone: |y - X b|/(sqrt n (1 - m/n))",
          "estimation without the prior", "monte-carlo", 0.0, 4.0, source="derived"),
    Claim("C041", "... and the error by delta (tau² - sigma²)", "estimation without the prior",
          "monte-carlo", 0.0, 4.0, source="derived"),
    Claim("C042", "Stein: error = E(h - Y)² + 2 tau² df - tau²", "limiting scalar function", "equal", 0.0,
          1e-06, source="derived"),
    Claim("C043", "BH penalty at scale 1: FDP = q (1 - epsilon) for every prior, delta and sigma",
          "limiting scalar function", "equal", 0.0, 0.0001, source="derived",
          why="largest difference over nine problems with a fixed point"),
    Claim("C044", "df is E h', not the selected share: .4636 against .639 (BH .6, q = .5, signals 4)",
          "degrees of freedom", "equal", (0.4636, 0.639), 0.0006, source="derived"),
    Claim("C045", "The divergence of the prox is its number of distinct nonzero magnitudes", "Onsager term",
          "equal", 0.0, 1e-05),
    Claim("C046", "The original code counts 0 among the magnitudes: the same divergence", "authors' code",
          "equal", 0.0, 0.5, source="code", expected="fails",
          why="an error in the code: the count is one too many, 1/n in the Onsager term"),
    Claim("C047", "The experiment without noise and penalty half 1, half 0 is a SLOPE problem",
          "authors' code, sigma = 0", "lower", 1e-06, source="code", expected="fails",
          why="without noise this penalty recovers the signals exactly: tau = 0, so lambda is 0 and not "
              "defined; the code averages tau over the transient"),
    Claim("C048", "With sigma = .2 it has 1 - df/delta = .10", "authors' code", "equal", 0.1, 0.005,
          source="derived"),
    Claim("C356", "AMP selects exactly the solution's features after 7, 9, 9 iterations", _RUN, "equal",
          (7, 9, 9), 2.0, source="measured",
          why="the script's second figure, the support set difference by iteration: from here on it is 0; "
              "the iterations are those of our three draws, the source prints none"),
    Claim("C357", "FISTA and ISTA need several times as many for the support", _RUN, "lower", (2.0, 4.0),
          source="measured", why="means over three draws, divided by that of AMP; the thresholds are ours"),
)
"""What it states, with the place, the reference and what is expected here."""
