"""Claims about the trade-off of SLOPE."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "bu-2021-slope-tradeoff",
    "Characterizing the SLOPE trade-off: a variational perspective and the Donoho-Tanner limit",
    "Bu, Klusowski, Rush and Su 2021",
    "2105.13302",
)
"""The paper, as the ledger names it."""

# fmt: off
CLAIMS = (
    Claim("C049", "FDP of every SLOPE is at least q_*(TPP), for all signals, noise levels and penalties",
          "Theorem 1, lower curve", "lower", 0.0, 1e-09),
    Claim("C050", "SLOPE has no power limit: TPP comes near 1 where the Lasso stops at 0.568", "Theorem 1",
          "lower", 0.95),
    Claim("C051", "Up to u_DT the upper curve q^* is the Lasso's q*", "Theorem 1, upper curve", "equal",
          0.0, 1e-12),
    Claim("C052", "Beyond it is the Moebius function (1-eps)(eps u - eps*)/(eps u (1-eps*) - eps*(1-eps))",
          "Theorem 1, upper curve", "equal", 0.0, 1e-12),
    Claim("C053", "q^*(1) = 1 - epsilon", "Theorem 1, upper curve", "equal", 0.0, 1e-12),
    Claim("C054", "q^* is continuous at u_DT", "Theorem 1, upper curve", "equal", 0.0, 1e-06),
    Claim("C055", "The Moebius part is attained by two levels (t_DT, t^*) with the printed share of ranks",
          "Proposition on attaining designs", "equal", 0.0, 1e-05),
    Claim("C056", "An arbitrarily larger share drops its selection to the Lasso's: TPP and FDP jump",
          "the same design", source="derived"),
    Claim("C057", "q_* < q^* strictly inside (0, 1)", "Theorem 1", "lower", 1e-12),
    Claim("C058", "For small TPP the two differ by less than 1e-3", "figures", "upper", 0.001,
          source="measured"),
    Claim("C059", "At (0.3, 0.2): q_*(0.5), q_*(0.7), q_*(0.9) = 0.544894, 0.660243, 0.760270",
          "lower curve", "equal", (0.544894, 0.660243, 0.76027) * 2, 2e-05, source="derived",
          why="of the function and of the curve drawn"),
    Claim("C060", "The lower curve is attained: its designs have that TPP and FDP and df < delta",
          "lower curve", "equal", 0.0, 2e-05, source="derived"),
    Claim("C061", "The mark u-dagger of the figure at (0.3, 0.2) is 0.5283", "figure, zoom on [0.5, 0.58]",
          "equal", 0.5283, 5e-05, source="code"),
    Claim("C062", "The power limit in the same figure is 0.5676", "figure, zoom on [0.5, 0.58]", "equal",
          0.5676, 5e-05, source="code"),
    Claim("C063", "q_* does not fall with TPP and ends at most at 1 - epsilon", "Theorem 1", "lower", 0.0),
    Claim("C064", "At epsilon = 0.2 both curves fall with delta (0.2, 0.3, 0.5)", "figures of families",
          "upper", 0.995, why="ratio of neighbours; 1 if they did not fall, the threshold is ours"),
    Claim("C065", "At delta = 0.9 both curves rise with epsilon (0.1, 0.2, 0.5)", "figures of families",
          "lower", 1.1, source="measured", why="ratio of neighbours; 1 if they did not rise"),
    Claim("C066", "SLOPE improves every Lasso at once: larger TPP, smaller FDP, smaller error",
          "instance-wise comparison", "lower", (0.0, 1e-08), 1e-09,
          why="smallest of the gains, and of the relative gain in error alone: where TPP is 1 to double "
              "precision it cannot rise"),
    Claim("C067", "20 % signals of size 4, delta 0.64, sigma 0.5, Lasso 1.5: TPP .8289 -> .8344, FDP "
                  ".3920 -> .3905, MSE 1.5463 -> 1.5166", "instance-wise comparison, an example", "equal",
          (0.8289, 0.392, 1.5463, 0.8344, 0.3905, 1.5166), 6e-05, source="derived"),
    Claim("C068", "One level alone is the Lasso", "definition", "equal", 0.0, 1e-06),
    Claim("C069", "No FDP above 1 - epsilon is better than selecting at random: SLOPE stays below it "
                  "wherever its curve is drawn", "diagram of regions", "upper", 0.0, 1e-12),
    Claim("C358", "At epsilon = 0.1 both curves fall with delta (0.3, 0.4, 0.5)", "figures of families",
          "upper", 0.95, why="ratio of neighbours; 1 if they did not fall"),
    Claim("C359", "At delta = 0.1 both curves fall with epsilon (0.1, 0.2, 0.5) from TPP .3 on",
          "figures of families", "upper", 0.97, source="measured",
          why="ratio of neighbours, the threshold is ours: the reverse of delta = .9, near the ends at "
              "1 - epsilon"),
    Claim("C360", "... and rise with epsilon at every TPP, as at delta = .9", "figures of families", "lower",
          1.0, expected="fails", source="measured",
          why="smallest ratio of neighbours, TPP .1 to .9: with few rows the curves cross at a small TPP"),
    Claim("C361", "Their power limits: .90211, 1, 1 (epsilon .1; delta .3, .4, .5) and .25640, .16951, "
                  ".11738 (delta .1; epsilon .1, .2, .5)", "figures of families", "equal",
          (0.90211, 1.0, 1.0, 0.2564, 0.16951, 0.11738), 6e-06, source="derived",
          why="the reference from the supremum of epsilon* on a grid"),
    Claim("C362", "q_*(.5) there: .306894, .125580, .045877 and .832194, .753433, .475075",
          "figures of families", "equal",
          (0.306894, 0.12558, 0.045877, 0.832194, 0.753433, 0.475075), 2e-06, source="derived",
          why="the reference from a search over laws of two sizes with a pooled penalty on a grid, the "
              "definition of the curve"),
)
"""What it states, with the place, the reference and what is expected here."""
