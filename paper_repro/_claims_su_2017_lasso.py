"""Claims about the Lasso's trade-off."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "su-2017-lasso",
    "False discoveries occur early on the Lasso path",
    "Su, Bogdan and Candès 2017",
    "1511.01957",
)
"""The paper, as the ledger names it."""

# fmt: off
CLAIMS = (
    Claim("C001", "FDP of every Lasso is at least q*(TPP), for all signals, noise levels and penalties",
          "Theorem 2.1", "lower", 0.0, 1e-09),
    Claim("C002", "The trade-off is there without any noise", "Theorem 2.1, sigma = 0", "lower", 0.0,
          1e-09),
    Claim("C003", "q* is attained in the limit by signals that are huge or vanishing, at every TPP",
          "Theorem 2.1, sharpness", "equal", 0.0, 1e-06,
          why="q* and the FDP of the limiting function of that design"),
    Claim("C004", "q*(0) = 0 and q* increases strictly", "section 2", "lower", (0.0, 0.5),
          why="minus q*(0) as drawn; smallest relative rise per unit of TPP along the curves drawn, from "
              "TPP .1 on: 0 for a flat piece"),
    Claim("C005", "The zero threshold t*(u) is the largest root of its equation in delta, epsilon and u",
          "equation of t*", "equal", 0.0, 1e-09),
    Claim("C006", "The same threshold solves (1 - eps p) E0(a) + eps p (1 + a²) = delta",
          "equation of t*, rewritten", "equal", 0.0, 1e-09, source="derived"),
    Claim("C007", "q* starts extremely flat: q*(0.1) = 4.9e-5 at delta = 0.6, epsilon = 0.25",
          "figure of q*", "equal", 4.9e-05, 5e-07, source="measured"),
    Claim("C008", "epsilon*(delta) = sup over a of [delta - E0(a)] / [1 + a² - E0(a)]",
          "Donoho-Tanner curve", "equal", 0.0, 1e-06),
    Claim("C009", "epsilon*(0.6) = 0.26303: at (0.6, 0.25) the Lasso has no power limit", "section 2",
          "equal", 0.26303, 5e-06, source="code"),
    Claim("C010", "2 Phi(-t_DT) = (delta - epsilon*) / (1 - epsilon*)", "Donoho-Tanner curve", "equal", 0.0,
          1e-12, source="derived"),
    Claim("C011", "The power limit is u_DT(0.3, 0.5) = 0.36690", "power limit", "equal", 0.3669, 5e-06,
          source="code"),
    Claim("C012", "u_DT = 1 where delta >= 1 or epsilon <= epsilon*", "power limit", "equal", 1.0),
    Claim("C013", "No Lasso exceeds u_DT", "power limit", "upper", 0.0, 1e-09),
    Claim("C014", "1 - q*(u_DT) = epsilon u_DT / delta: at the power limit n variables are selected",
          "Donoho-Tanner curve", "equal", 0.0, 1e-09, source="derived"),
    Claim("C015", "Fits of finite size stay above q* too", "section on simulations", "lower", -3.0,
          why="smallest mean FDP - q*(mean TPP) over six penalties in standard errors, p = 400; three below "
              "0 are left to chance"),
    Claim("C016", "q* falls with delta at every TPP", "figure of q*", "upper", 0.95,
          why="ratio of neighbours, delta .3, .5, .8, 1.2, epsilon .2; 1 if it did not fall"),
    Claim("C353", "q*(u) is the FDP at the largest root t*(u); none where more than n would be selected",
          "Theorem 2.1, definition of q*", "equal", 0.0, 1e-09,
          why="the curves drawn and q* itself beside a scan of the paper's equation with bracketed roots"),
    Claim("C354", "Fits of huge and vanishing signals lie on q*", "Theorem 2.1, sharpness", "monte-carlo",
          0.0, 3.0, source="derived",
          why="signals 50 and .001, sigma .3: their limit lies .0036 above q*, within a standard error"),
)
"""What it states, with the place, the reference and what is expected here."""
