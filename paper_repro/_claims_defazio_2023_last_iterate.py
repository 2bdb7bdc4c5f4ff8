"""Claims about last-iterate bounds, the schedules they favour, and the runs that were held against them."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "defazio-2023-last-iterate",
    "Optimal linear decay learning rate schedules and further refinements; The surprising agreement "
    "between convex optimization theory and learning-rate scheduling",
    "Defazio et al. 2023; Schaipp et al. 2025",
    "2310.07831, 2501.18965",
)
"""The paper, as the ledger names it."""

_DATA = "lr_scheduling"
_SHAPES = "closed forms: mean s, I, best peak sqrt(T) G/D, bound sqrt(T)/(DG), batch gain"
_FINALS = "152 final losses, MAE in nats: horizons, peaks, shapes held out"

# 1 - R² is a square: twice the relative tolerance of the mean absolute errors
# fmt: off
CLAIMS = (
    Claim("C116", "The three-term bound equals one sum over the tails of the schedule",
          "Defazio et al., Theorem 10", "equal", 0.0, 1e-10, relative=False,
          why="largest relative difference over random schedules and gradient norms"),
    Claim("C117", "Linear decay has the minimax rate D G/sqrt(T) with the best weights",
          "Defazio et al., Theorem 1", "equal", 1.0, 1e-07),
    Claim("C118", "The one-sum bound gives 2 D G/sqrt(T) for it: twice as much",
          "Schaipp et al., linear decay", "equal", 2.0, 0.01),
    Claim("C119", "The best weights give half of the one-sum bound for every schedule that ends at 0",
          "continuous limit", "equal", 0.5, 0.002, source="derived",
          why="T = 20 000; a constant rate gets there only as fast as 1/ln T"),
    Claim("C120", "No loss of gradient descent on random maxima of affine functions exceeds the tight "
                  "bound", "Defazio et al., Theorem 1", "upper", 1.0,
          why="largest loss gap over bound; 0.87 in 214 problems elsewhere"),
    Claim("C121", "Nor the bound with a free next step", "one-sum bound", "upper", 1.0, source="derived",
          why="largest loss gap over bound; 0.66 in 214 problems elsewhere"),
    Claim("C122", "Constant learning rate: the best bound is sqrt(1 + H(T-1)) D G/sqrt(T): 2.91, 3.28, "
                  "3.62 at T = 1e3, 1e4, 1e5", "constant schedule", "equal", (2.91, 3.28, 3.62), 0.005,
          source="derived"),
    Claim("C123", "Constant: bound D²/(2 gamma T) + gamma G² (1 + H(T-1))/2 exactly", "constant schedule",
          "equal", 0.0, 1e-12),
    Claim("C124", "Linear: bound D²/(gamma (T+1)) + gamma G² [2(T-1+H(T-1))+1]/(2T) exactly",
          "linear schedule", "equal", 0.0, 1e-12, source="derived"),
    Claim("C125", "Linear: 1/2, 2, 1, 2, 1", _SHAPES, "equal", (0.5, 2.0, 1.0, 2.0, 1.0), 1e-09),
    Claim("C126", "Cosine: 1/2, 2.12215, 0.9708, 2.0602, 1.0611", _SHAPES, "equal",
          (0.5, 2.12215, 0.9708, 2.0602, 1.0611), 6e-05),
    Claim("C127", "1 - sqrt(u): 1/3, 1.35208, 1.4896, 2.0140, 1.0141", _SHAPES, "equal",
          (1 / 3, 1.35208, 1.4896, 2.014, 1.0141), 6e-05, source="derived"),
    Claim("C128", "(1-u)^k: 1/(k+1), (k+1)/k, sqrt(k), (k+1)/sqrt(k), (k+1)²/(4k), k = 3", _SHAPES, "equal",
          (0.25, 4 / 3, 1.7320508, 2.3094011, 1.3333333), 1e-06, source="derived"),
    Claim("C129", "WSD, cooldown 20 %: I 4.19722, peak .5145, bound 2.1595, gain 1.166", _SHAPES, "equal",
          (0.9, 4.19722, 0.5145, 2.1595, 1.166), 0.00012),
    Claim("C130", "WSD, cooldown 10 %: I 4.944, peak .461, bound 2.281, gain 1.301", _SHAPES, "equal",
          (0.95, 4.944, 0.461, 2.281, 1.301), 0.0006),
    Claim("C131", "WSD, cooldown 50 %: I 3.0986, peak .656, bound 2.0326, gain 1.0329", _SHAPES, "equal",
          (0.75, 3.0986, 0.656, 2.0326, 1.0329), 6e-05),
    Claim("C132", "The printed upper bound of WSD is .0846 at T = 1000, cooldown from 800",
          "Schaipp et al., theorem on WSD", "equal", 0.0846, 5e-05),
    Claim("C133", "It is looser than the bound itself, .0687", "Schaipp et al., theorem on WSD", "equal",
          0.0687, 5e-05, source="derived"),
    Claim("C134", "At r times the best learning rate the bound is (r + 1/r)/2 times as large",
          "Schaipp et al., base learning rate", "equal", 0.0, 1e-12),
    Claim("C135", "The bound at the best learning rate falls with the length of the cooldown: 10, 20, 50, "
                  "100 %", "Schaipp et al., cooldown length", "upper", 0.0),
    Claim("C136", "The bound drops suddenly in the cooldown, as the loss does", "Schaipp et al., Figure 1"),
    Claim("C137", "Averaged iterates have no logarithm under a constant rate", "averaged iterate", "equal",
          1.0, 1e-09, source="paper"),
    Claim("C138", "... and gain nothing from a decay", "averaged iterate", "lower", 1.0, source="paper",
          why="best averaged bound of linear decay over that of a constant rate"),
    Claim("C139", "After a drop of the learning rate by r the literal bound rises by eta/(2r) times G², "
                  "an artefact", "prefixes of a schedule", "equal", 1.0, 0.1, source="derived",
          why="rise of the bound at the first step after a drop by 100, over eta G²/(2 r)"),
    Claim("C140", "With a free next step there is no spike", "prefixes of a schedule", "upper", 1.0,
          source="derived"),
    Claim("C141", "For known gradient norms weights 1/G² give a schedule at least as good as linear decay",
          "Defazio et al., refined schedules", "upper", 1.0),
    Claim("C142", "To train longer, lower the second-stage learning rate or lengthen the cooldown: both "
                  "beat going on as before", "Schaipp et al., continued training"),
    Claim("C143", "The best learning rate of the bound falls as T^-1/2",
          "Schaipp et al., base learning rate", "equal", -0.5, 0.002),
    Claim("C144", "So does the measured one, cooldown 20 %, 15k to 50k steps", "124M runs", "equal", -0.5,
          0.05, expected="fails", needs=_DATA, why="the measured exponent is -0.24"),
    Claim("C145", "So does the measured one, cooldown 60 %, 15k to 50k steps", "124M runs", "equal", -0.5,
          0.05, expected="fails", needs=_DATA, why="the measured exponent is -0.13"),
    Claim("C146", "Theory: best rate relative to linear decay .464, .518, .612, .712, .837 at cooldowns "
                  ".1 to .8, .971 for cosine", "transfer between shapes", "equal",
          (0.464, 0.518, 0.612, 0.712, 0.837, 0.971), 0.01, source="derived"),
    Claim("C147", "Measured: .48, .59, .74, .90, .92, and .99 for cosine (T = 50k)", "124M runs", "equal",
          (0.48, 0.59, 0.74, 0.9, 0.92, 0.99), 0.01, source="measured", needs=_DATA),
    Claim("C148", "The measured transfer follows the theoretical one to 30 %",
          "Schaipp et al., transfer of the learning rate", "equal", 1.0, 0.3, source="measured", needs=_DATA,
          why="measured over theoretical factor, cooldowns .1 to .8 and cosine"),
    Claim("C149", "CVX6: .0105/.0110/.0057", _FINALS, "equal", (0.0105, 0.011, 0.0057), 0.1, relative=True,
          source="measured", needs=_DATA),
    Claim("C150", "RC4 with 4 parameters: .0116/.0154/.0085", _FINALS, "equal", (0.0116, 0.0154, 0.0085),
          0.1, relative=True, source="measured", needs=_DATA),
    Claim("C151", "CVX4q: .0235/.0454/.0194", _FINALS, "equal", (0.0235, 0.0454, 0.0194), 0.1,
          relative=True, source="measured", needs=_DATA),
    Claim("C152", "CD3, the literal bound: .0596/.173/.0415", _FINALS, "equal", (0.0596, 0.173, 0.0415),
          0.1, relative=True, source="measured", needs=_DATA),
    Claim("C153", "The fitted exponents explain the slow fall: -(alpha-q)/(1+alpha-r-q) = -.05 to -.09",
          "generalised exponents", "upper", 0.03, source="derived", needs=_DATA,
          why="distance of CVX6's exponent from the interval [-.09, -.05]"),
    Claim("C154", "A Multi-Power fit of these finals is worse than CVX6 in every split", _FINALS, "lower",
          1.0, source="measured", needs=_DATA,
          why="MAE over that of CVX6 (by the published errors 2.5, 3.1 and 8.5), seven parameters followed "
              "from one start"),
    Claim("C155", "On unseen peaks RC4 has .0175", "the rotational clock, six splits", "upper", 0.0175, 0.1,
          relative=True, source="measured", needs=_DATA),
    Claim("C156", ".26 of the error of CVX4q, 95 % [.16, .38], and less in all six splits",
          "the rotational clock, six splits", "equal", 0.27, 0.11, source="measured", needs=_DATA),
    Claim("C157", "On 18 cells of 124M and 53M runs RC4 has .00363, .36 of CVX4q", "the rotational clock",
          expected="unobtainable", source="measured",
          why="the cells are not described well enough to repeat them"),
    Claim("C158", "CVX4q fitted at one peak picks the best learning rate to .14 octave",
          "which law for which question", "upper", 0.14, 0.1, source="measured", expected="fails",
          needs=_DATA,
          why="rms over cooldowns and horizons of the pick against the measured vertex, fitted at .0005, "
              ".001, .002: near .2 only where the fitted peak is near the best one"),
    Claim("C159", "RC4 is worse at that: .37 octave, fitted at .001", "which law for which question",
          "lower", 1.0, source="measured", needs=_DATA,
          why="rms of RC4 over that of CVX4q, both fitted at .001"),
    Claim("C432", "Tissue: .0646/.0647/.0419", _FINALS, "equal", (0.0646, 0.0647, 0.0419), 0.1,
          relative=True, source="measured", needs=_DATA),
    Claim("C433", "CVX6: 1 - R² .081/.024/.015", _FINALS, "equal", (0.081, 0.024, 0.015), 0.2,
          relative=True, source="measured", needs=_DATA),
    Claim("C434", "CVX4q: 1 - R² .435/.846/.303", _FINALS, "equal", (0.435, 0.846, 0.303), 0.2,
          relative=True, source="measured", needs=_DATA),
    Claim("C435", "Tissue: 1 - R² 1.16/.855/.618", _FINALS, "equal", (1.16, 0.855, 0.618), 0.2,
          relative=True, source="measured", needs=_DATA),
    Claim("C436", "CD3: 1 - R² .903/7/.481", _FINALS, "equal", (0.903, 7.0, 0.481), 0.2,
          relative=True, source="measured", needs=_DATA),
    Claim("C437", "Multi-Power: .0262/.0343/.0483, R² .679/.782/-3.1; the fit is ill-posed", _FINALS, "equal",
          (0.0262, 0.0343, 0.0483, 0.679, 0.782, -3.1), 0.1, relative=True, source="measured",
          expected="fails", needs=_DATA,
          why="ill-posed indeed: followed from the parameters printed for 100M the fit ends elsewhere"),
)
"""What it states, with the place, the reference and what is expected here."""
