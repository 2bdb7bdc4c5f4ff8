"""Claims about the compute-optimal law and its refit."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "hoffmann-2022-chinchilla",
    "Training compute-optimal large language models; Chinchilla scaling: a replication attempt",
    "Hoffmann et al. 2022; Besiroglu et al. 2024",
    "2203.15556, 2404.10102",
)
"""The paper, as the ledger names it."""

_REFIT = "Besiroglu et al., refit of the third approach"
_DATA = "chinchilla"

# fmt: off
CLAIMS = (
    Claim("C333", "The best fit to 240 points is E 1.81722, alpha .34731, beta .36717, A 477.83, B 2143.4",
          "authors' notebook", "equal", (1.81722, 0.34731, 0.36717, 477.83, 2143.4), 0.005, relative=True,
          source="code", needs=_DATA),
    Claim("C334", "The Huber sum there is 1.01827402e-3", "authors' notebook", "equal", 0.00101827402,
          1e-06, relative=True, source="code", needs=_DATA),
    Claim("C335", "The published refit is E 1.8169, alpha .3478, beta .3659, A 482.0, B 2085.4", _REFIT,
          "equal", (1.8169, 0.3478, 0.3659, 482.0, 2085.4), 0.03, relative=True, needs=_DATA),
    Claim("C336", "Its standard errors of E, alpha, beta are .0257, .0154, .0206", _REFIT, "equal",
          (0.0257, 0.0154, 0.0206), 0.25, relative=True, needs=_DATA),
    Claim("C337", "95 % intervals: E [1.769, 1.871], alpha [.317, .373], beta [.331, .415]", _REFIT,
          "equal", (1.769, 1.871, 0.317, 0.373, 0.331, 0.415), 0.03, relative=True, needs=_DATA),
    Claim("C338", "95 % intervals of ln A [ln 285, ln 744] and ln B [ln 1042, ln 5810]", _REFIT, "equal",
          (5.652, 6.612, 6.949, 8.667), 0.03, relative=True, needs=_DATA),
    Claim("C339", "With all 245 points the fit is A 495.7, B 12845, E 1.8913, alpha .3493, beta .4530",
          "authors' data without the exclusion", "equal", (495.7, 12845.0, 1.8913, 0.3493, 0.453), 0.005,
          relative=True, source="measured", needs=_DATA),
    Claim("C340", "The printed parameters (E 1.69, A 406.4, B 410.7, alpha .34, beta .28) are the best fit",
          "Hoffmann et al., equation (10)", "upper", 1.0, 0.05, expected="fails", needs=_DATA,
          why="Huber sum at the printed parameters over the Huber sum at the optimum"),
    Claim("C341", "The exponent of N_opt is 0.46 by the third approach", "Hoffmann et al., Table 2",
          "equal", 0.46, 0.02, expected="fails", needs=_DATA,
          why="the refit has 0.514, and 0.46 lies outside its 95 % interval"),
    Claim("C342", "The first two approaches give exponents 0.50 and 0.49; the refit agrees with both",
          _REFIT, needs=_DATA),
    Claim("C343", "The exponent of N_opt is .5139 with 95 % interval [.483, .554]", _REFIT, "equal",
          (0.5139, 0.483, 0.554), 0.03, relative=True, source="measured", needs=_DATA),
    Claim("C344", "Intervals as narrow as the printed [0.454, 0.455] would take over 600 000 experiments",
          "Besiroglu et al., abstract", "lower", 600000.0, needs=_DATA),
    Claim("C345", "About 20 tokens a parameter at 5.76e23 FLOPs, the model's own budget",
          "Hoffmann et al., section 4", needs=_DATA),
    Claim("C346", "The printed parameters give that rule", "Hoffmann et al., equation (10)", "equal", 20.0,
          5.0, expected="fails", why="they give about 90 tokens a parameter at that budget"),
    Claim("C347", "The model of 70e9 parameters and 1.4e12 tokens is compute-optimal for 5.76e23 FLOPs",
          "Hoffmann et al., section 4", needs=_DATA),
    Claim("C348", "N_opt = K (C/6)^a with a = beta/(alpha+beta), K = (alpha A/(beta B))^(1/(alpha+beta))",
          "Hoffmann et al., equation (4)", "equal", 0.0, 0.001, source="paper"),
    Claim("C349", "Minimising the mean of the Huber losses with L-BFGS at its default tolerance stops "
                  "early", "Besiroglu et al., on the original code", "lower", 1.5, source="notes",
          needs=_DATA, why="best Huber sum reached over three starts, over the optimum"),
    Claim("C350", "The sum, from the same starts with the same tolerance, ends near the optimum",
          "Besiroglu et al., on the original code", "upper", 1.1, source="notes", needs=_DATA),
    Claim("C351", "The additive law fits these points better than Kaplan's law",
          "comparison of the two laws", "lower", 1.0, source="measured", needs=_DATA,
          why="Huber sum of Kaplan's law over that of the additive one, all 245 points"),
    Claim("C352", "Three terms (size, batch M, steps K) with best batch M* = .667 D^.566",
          "arXiv 2607.01487", expected="unobtainable", source="notes",
          why="the paper was not obtained; nothing was measured: the points have neither batch size nor "
              "steps"),
    Claim("C459", "1000 resamples of our fit, 95 %: A [282, 724], B [1111, 5896], E [1.770, 1.876], alpha "
                  "[.316, .372], beta [.335, .416]", "bootstrap of the refit", "upper", 0.1,
          source="measured", needs=_DATA,
          why="distance of each limit from ours over the width of its interval; three standard errors of "
              "two sets of 1000 resamples are .09"),
)
"""What it states, with the place, the reference and what is expected here."""
