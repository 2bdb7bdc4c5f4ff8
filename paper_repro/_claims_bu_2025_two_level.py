"""Claims about two-level SLOPE."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "bu-2025-two-level",
    "Sharp trade-offs in high-dimensional inference via 2-level SLOPE",
    "Bu, Klusowski, Rush and Wu 2025",
    "2507.09110",
)
"""The paper, as the ledger names it."""

_CURVE = "exact trade-off curve (derived here)"
_TABLE = "smallest errors: Lasso, two levels, any SLOPE; delta = .5"
_TEXT = "announced in the abstract; the full text was not obtained"

# fmt: off
CLAIMS = (
    Claim("C084", "Two-level SLOPE has an exact trade-off curve: its printed formula", "main theorem",
          expected="unobtainable", why=_TEXT + "; the curve checked below was derived from scratch"),
    Claim("C085", "The derived curve lies between the bounds of SLOPE: q_* <= q_2", _CURVE, "lower", 0.0,
          1e-09, source="derived", why="smallest difference over three settings"),
    Claim("C086", "... and q_2 <= q^*", _CURVE, "upper", 0.0, 1e-09, source="derived",
          why="largest difference over three settings"),
    Claim("C087", "At (.3, .2): q_2(.3, .5, .7, .9) = .331241, .544894, .667336, .765887", _CURVE, "equal",
          (0.331241, 0.544894, 0.667336, 0.765887), 2e-05, source="derived"),
    Claim("C088", "The Lasso and Moebius curve there: .331724, .549327, .727804, .785231", _CURVE, "equal",
          (0.331724, 0.549327, 0.727804, 0.785231, 0.331724, 0.549327), 2e-06, source="derived",
          why="q^* at the four, q* at the first two, below the power limit"),
    Claim("C089", "Below the crossing at .54618 two levels are as good as any SLOPE", _CURVE, "equal", 0.0,
          1e-09, source="derived"),
    Claim("C090", "The crossings are at TPP .54618 (two levels) and .54123 (any SLOPE)", _CURVE, "equal",
          (0.54618, 0.54123), 6e-06, source="derived"),
    Claim("C091", "It overcomes the Donoho-Tanner power limit: defined for every TPP below 1", "abstract"),
    Claim("C092", "No random two-level problem lies below q_2", _CURVE, "lower", 0.0, 1e-09,
          source="derived"),
    Claim("C093", "The curve is attained: its designs have that TPP and FDP", _CURVE, "equal", 0.0, 1e-08,
          source="derived"),
    Claim("C094", "Signals 1.4311 (20 %), delta .3, sigma .02: TPP, FDP, error, df as predicted",
          "finite check, n = 450, p = 1500", "upper", 4.0, source="derived",
          why="largest deviation in standard errors"),
    Claim("C095", "There the limits are .6999, .6674, .3001, .2622", "finite check", "equal",
          (0.6999, 0.6674, 0.3001, 0.2622), 0.0001, source="derived"),
    Claim("C096", "The limiting function for signals 4 (20 %), penalty (2, 1) on 20 %: zero to 1, flat at "
                  ".96794", "limiting scalar function", "equal", (1.0, 0.9679449823), 1e-08,
          source="derived"),
    Claim("C097", "With 50 % instead the second level has no effect: the Lasso at 2",
          "limiting scalar function", "equal", (2.0, 0.0), 1e-12, source="derived"),
    Claim("C098", "Every zero threshold, upper level and flat value belong to exactly one share",
          "limiting scalar function", "equal", 0.0, 1e-06, source="derived",
          why="largest error of the shape for the share found, nine shapes"),
    Claim("C099", "Normal signals (50 %), sigma .2: .26795, .24418, .23480", _TABLE, "equal",
          (0.26795, 0.24418, 0.2348), 3e-05, source="derived"),
    Claim("C100", "sigma .5: .35160, .31781, .30435", _TABLE, "equal", (0.3516, 0.31781, 0.30435), 3e-05,
          source="derived"),
    Claim("C101", "sigma 1: .44702, .40173, .38571", _TABLE, "equal", (0.44702, 0.40173, 0.38571), 3e-05,
          source="derived"),
    Claim("C102", "sigma 2: .49739, .46306, .45329", _TABLE, "equal", (0.49739, 0.46306, 0.45329), 3e-05,
          source="derived"),
    Claim("C103", "sigma .5, signals 5 %: .03073, .03041, .03028", _TABLE, "equal",
          (0.03073, 0.03041, 0.03028), 2e-05, source="derived"),
    Claim("C104", "20 %: .12361, .11945, .11802", _TABLE, "equal", (0.12361, 0.11945, 0.11802), 2e-05,
          source="derived"),
    Claim("C105", "35 %: .23167, .21707, .21150", _TABLE, "equal", (0.23167, 0.21707, 0.2115), 3e-05,
          source="derived"),
    Claim("C106", "70 %: .52279, .44869, .42292", _TABLE, "equal", (0.52279, 0.44869, 0.42292), 4e-05,
          source="derived"),
    Claim("C107", "90 %: .70126, .57109, .53451", _TABLE, "equal", (0.70126, 0.57109, 0.53451), 4e-05,
          source="derived"),
    Claim("C108", "Normal signals (10 %), sigma .2: .019955, .019873, .019851", _TABLE, "equal",
          (0.019955, 0.019873, 0.019851), 2e-06, source="derived"),
    Claim("C109", "Signals 1 (50 %), sigma .2: .40288, .28159, .26132", _TABLE, "equal",
          (0.40288, 0.28159, 0.26132), 3e-05, source="derived"),
    Claim("C110", "Signals 4 (20 %), delta .64, sigma .5: .62594, .51958, .51957", "smallest errors",
          "equal", (0.62594, 0.51958, 0.51957), 3e-05, source="derived"),
    Claim("C111", "The gain over the Lasso grows with the share of signals",
          "abstract: signal that is not sparse", "lower", 0.005,
          why="smallest step of the relative gain over six shares"),
    Claim("C112", "The gain over the Lasso grows with the noise", "abstract: large noise", "lower", 0.0,
          expected="fails",
          why="smallest step of the relative gain: it rises up to sigma = 1 and falls beyond"),
    Claim("C113", "Two levels keep most of the gain of general SLOPE", "abstract", "lower", 0.5,
          why="smallest share of the gain of general SLOPE over the Lasso, twelve problems"),
    Claim("C114", "Two levels beat the Lasso where predictors are highly correlated",
          "abstract: correlated predictors", "lower", 2.0,
          why="mean prediction error of the best Lasso minus that of the best two-level penalty, AR(.8) "
              "rows, in standard errors"),
    Claim("C115", "From a Lasso with the same zero threshold TPP rises while FDP and error fall",
          "improvement over the Lasso", "lower", 0.001, source="derived",
          why="smallest of the three gains over three problems"),
)
"""What it states, with the place, the reference and what is expected here."""
