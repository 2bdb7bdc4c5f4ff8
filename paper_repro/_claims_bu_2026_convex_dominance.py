"""Claims about convex dominance: the forms of the bound, the exam, the fits and their transfer."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "bu-2026-convex-dominance",
    "Convex dominance in deep learning I: a scaling law of loss and learning rate",
    "Bu, Xu and Mao 2026",
    "2602.07145",
)
"""The paper, as the ledger names it."""

_T2 = "Table 2, 15 model sizes"
_SQRT = "Table 1, 1/sqrt(t)"
_RUNS = "needs training runs of GPT2 up to 7B, ResNet18 or a vision-language model that are not public"

# fmt: off
CLAIMS = (
    Claim("C160", "Constant: the best bound is D G sqrt(ln T/T) to leading order", "Table 1, constant",
          "equal", 1.0, 0.001, why="slope of T (bound/DG)² against ln T from 1e4 to 1e6"),
    Claim("C161", "Constant: at eta* = D/(G sqrt(T ln T))", "Table 1, constant", "equal", 1.0, 0.001,
          why="slope of 1/(T eta²) against ln T from 1e4 to 1e6"),
    Claim("C162", "Linear: 2 D G/sqrt(T) at eta* = D/(G sqrt T)", "Table 1, linear", "equal", (2.0, 1.0),
          0.001),
    Claim("C163", "Cosine: 2 D G sqrt(1.061/T) at eta* = D/(G sqrt(1.061 T))", "Table 1, cosine", "equal",
          (2.0600971, 0.9708269), 0.0005),
    Claim("C164", "WSD, stable fraction c = .8: 2 D G sqrt([1 + .5 ln((1+c)/(1-c))]/((1+c) T))",
          "Table 1, WSD", "equal", 2.1595332, 1e-06),
    Claim("C165", "WSD: eta* = D/(G sqrt((1+c) [1 + .5 ln((1+c)/(1-c))] T))", "Table 1, WSD", "equal",
          0.5145152, 1e-06),
    Claim("C166", "1/sqrt(t): the noise is eta G² ln T/(4 sqrt T)", _SQRT, "equal", 0.25, 0.01,
          expected="fails", why="an error in the paper: the coefficient of its own bound is 3/4"),
    Claim("C167", "Corrected: 3/4", _SQRT, "equal", 0.75, 0.002, source="derived"),
    Claim("C168", "1/sqrt(t): the best bound is D G sqrt(ln T/(4T))", _SQRT, "equal", 0.25, 0.01,
          expected="fails", why="slope of T (bound/DG)² against ln T; 3/4, by the same error"),
    Claim("C169", "Corrected: D G sqrt(3 ln T/(4T))", _SQRT, "equal", 0.75, 0.02, source="derived"),
    Claim("C170", "1/sqrt(t): eta* = D/(G sqrt(ln T))", _SQRT, "equal", 1.0, 0.05, expected="fails",
          why="slope of 1/eta² against ln T; 3, by the same error"),
    Claim("C171", "Corrected: eta* = D/(G sqrt(3 ln T))", _SQRT, "equal", 3.0, 0.06, source="derived"),
    Claim("C172", "For WSD the bias constant is q1 = D/(1 + c)", "remark after Table 1", "equal", 1 / 1.9,
          0.01, expected="fails", why="an error in the paper: its own Table 1 gives D/sqrt(1 + c)"),
    Claim("C173", "Corrected: q1 = D/sqrt(1 + c)", "remark after Table 1", "equal", 0.7254763, 2e-05,
          source="derived", why="c = .9"),
    Claim("C174", "With eta = eta_ref/sqrt(T) the bound is (q1²/eta_ref + eta_ref q2²)/sqrt(T) for any "
                  "eta_ref", "Corollary 2.4", "equal", 0.0, 0.0002),
    Claim("C175", "Best eta_ref = q1/q2 with bound 2 q1 q2/sqrt(T)", "Corollary 2.4", "equal", 0.0, 1e-09),
    Claim("C176", "Linear, cosine and WSD pass the exam", "Condition 2.5"),
    Claim("C177", "Constant and 1/sqrt(t) fail it", "Condition 2.5"),
    Claim("C178", "Linear: bound sqrt(T) = 2.006, 2.001, 2.000, 2.000 at T = 1e3 to 1e6",
          "Condition 2.5, eta_ref = 1", "equal", (2.006, 2.001, 2.0, 2.0), 0.0006, source="derived"),
    Claim("C179", "Cosine: 2.064, 2.061, 2.061, 2.061", "Condition 2.5, eta_ref = 1", "equal",
          (2.064, 2.061, 2.061, 2.061), 0.0006, source="derived"),
    Claim("C180", "WSD, cooldown 10 %: 3.044, 3.005, 2.999, 2.999", "Condition 2.5, eta_ref = 1", "equal",
          (3.044, 3.005, 2.999, 2.999), 0.002, source="derived"),
    Claim("C181", "1 - sqrt: 2.180, 2.177, 2.176, 2.176", "Condition 2.5, eta_ref = 1", "equal",
          (2.18, 2.177, 2.176, 2.176), 0.003, source="derived"),
    Claim("C182", "Constant: 4.74, 5.89, 7.05, 8.20", "Condition 2.5, eta_ref = 1", "equal",
          (4.74, 5.89, 7.05, 8.2), 0.006, source="derived"),
    Claim("C183", "Linear to 10 %: 2.153, 2.264, 2.378, 2.493: any floor fails, by half of it per e-fold "
                  "of T", "Condition 2.5, eta_ref = 1", "equal", (2.153, 2.264, 2.378, 2.493), 0.0006,
          source="derived"),
    Claim("C184", "Linear to 1 %: 2.008 to 2.037", "Condition 2.5, eta_ref = 1", "equal", (2.008, 2.037),
          0.0006, source="derived"),
    Claim("C185", "Cosine to 10 %: 2.144 to 2.487", "Condition 2.5, eta_ref = 1", "equal", (2.144, 2.487),
          0.0006, source="derived"),
    Claim("C186", "Cosine cycles pass where they end at 0 and fail where they end at the peak",
          "Condition 2.5", source="derived"),
    Claim("C187", "The log-log slope of the best bound would pass linear to 1 % (-.498) and fail linear "
                  "to 10 % (-.48)", "exam by slope", "equal", (-0.498, -0.48), 0.006, source="derived"),
    Claim("C188", "Number of horizons of each size in the digitised data", _T2, "equal",
          (5, 7, 8, 8, 8, 10, 9, 9, 8, 7, 10, 6, 8, 4, 3), 0.0, needs="chinchilla"),
    Claim("C189", "2 q1 q2 (1e4): 3.22 3.04 3.29 3.27 3.17 3.10 3.18 3.36 3.62 4.41 5.90 3.83 4.66 4.29 "
                  "4.23", _T2, "equal",
          (3.22, 3.04, 3.29, 3.27, 3.17, 3.1, 3.18, 3.36, 3.62, 4.41, 5.9, 3.83, 4.66, 4.29, 4.23), 0.0051,
          needs="chinchilla"),
    Claim("C190", "Linf: 2.825 2.670 2.498 2.430 2.367 2.275 2.253 2.228 2.178 2.128 2.016 2.106 2.023 "
                  "2.046 2.053", _T2, "equal",
          (2.825, 2.67, 2.498, 2.43, 2.367, 2.275, 2.253, 2.228, 2.178, 2.128, 2.016, 2.106, 2.023, 2.046,
           2.053), 0.00051, needs="chinchilla"),
    Claim("C191", "R²: .991 .991 .999 .998 .998 .998 .996 .995 .999 1 .990 .978 .999 .988 1", _T2, "equal",
          (0.991, 0.991, 0.999, 0.998, 0.998, 0.998, 0.996, 0.995, 0.999, 1.0, 0.99, 0.978, 0.999, 0.988,
           1.0), 0.00051, needs="chinchilla"),
    Claim("C192", "Within 1 % relative error up to 1e22 FLOPs", "text on Table 2", "upper", 0.01,
          expected="fails", needs="chinchilla", why="12 of 110 points exceed 1 %, one by 7 %"),
    Claim("C193", "Linf falls log-linearly with size: 2.321 - .359 log10(N in 1e9), R² .929",
          "text on Table 2", "equal", (2.321, -0.359, 0.929), 0.002, source="derived", needs="chinchilla"),
    Claim("C194", "A power law does better: 1.732 + .541 N^-.275, R² .974", "text on Table 2", "equal",
          (1.732, 0.541, -0.275, 0.974), 0.004, source="derived", needs="chinchilla"),
    Claim("C195", "The slope roughly rises with size: 2 q1 q2 = 3.61e4 N^.086", "text on Table 2", "equal",
          (3.61, 0.086), 0.005, source="derived", needs="chinchilla"),
    Claim("C196", "Sizes span a factor of 170", "Table 2", "equal", 170.0, 1.0, source="notes",
          needs="chinchilla"),
    Claim("C197", "The loss at the best learning rate is a line in 1/sqrt(T)", "generalisation 3", "lower",
          0.95, needs="lr_scheduling", why="R² of four horizons, 124M runs, WSD with cooldown 20 %"),
    Claim("C198", "The best learning rate falls as T^-1/2 whatever the data", "equation (5.1)", "equal",
          -0.5, 0.05, expected="fails", needs="lr_scheduling", why="the measured exponent is -.22"),
    Claim("C199", "Half of the steps fitted by non-negative least squares predict the other half with R² "
                  ">= .95", "Figures 2 to 5", "lower", 0.95, expected="fails", needs="multi_power_law",
          why="largest R² over public curves of Llama models of 25M to 400M: all are negative; the "
              "paper's own runs are not public"),
    Claim("C200", "The sequence fits of ResNet18/ImageNet and GPT2-124M have R² >= .95", "Figures 2 to 5",
          expected="unobtainable", why=_RUNS),
    Claim("C201", "GPT2 of .1B: R² >= .99", "reading notes alone", expected="unobtainable", source="notes",
          why="not in the text; the runs are not public"),
    Claim("C202", "The learning rate transfers over 80 times the horizon, \"from 100 to 5000 steps\"",
          "reading notes", "equal", 80.0, 1.0, expected="fails", source="notes",
          why="5000/100 is 50; in the paper the horizons go from 100 to 500 000"),
    Claim("C203", "eta_ref* = 10 (Muon-NSGD) and .3 (AdamW) at every horizon of .1B", "Figures 9 and 10",
          expected="unobtainable", why=_RUNS),
    Claim("C204", "The transferred eta_ref works from .1B to 7B (70 times)", "section 5",
          expected="unobtainable", why=_RUNS),
    Claim("C205", "The line in 1/sqrt(T) is good for T > 2500", "section 4", expected="unobtainable",
          why=_RUNS),
    Claim("C206", "The loss-against-rate data of the Step Law follow (4.1) with R² >= .95", "section 4",
          expected="unobtainable", why="that data is not in the public data folder"),
    Claim("C207", "A vision-language model of 1B follows the line for T > 2000 at three eta_ref",
          "section 4", expected="unobtainable", why=_RUNS),
    Claim("C208", "LoRA, weight decay, clipping, momentum, batch and seed keep the rate 1/sqrt(T)",
          "Appendix D", expected="unobtainable", why=_RUNS),
    Claim("C209", "Training loss is predicted, test loss is not, under strong overfitting", "Figure 12",
          expected="unobtainable", why=_RUNS),
    Claim("C210", "muP does not transfer across horizons", "section 1", expected="unobtainable", why=_RUNS),
)
"""What it states, with the place, the reference and what is expected here."""
