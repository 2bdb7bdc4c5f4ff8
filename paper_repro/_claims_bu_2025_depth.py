"""Claims about progressive depth expansion."""

from __future__ import annotations

from convexlaw.paper_repro._check import Claim, Paper

PAPER = Paper(
    "bu-2025-depth",
    "Deep progressive training: scaling up depth capacity of zero/one-layer models",
    "Bu 2025",
    "2511.04981",
)
"""The paper, as the ledger names it."""

_BOUND = "bound on the gap (wording of arXiv 2604.19835, Appendix A)"
_RUNS = "needs training runs of GPT2 to 7B, LLAMA3, Qwen3, Mixtral, DeepSeekV3 or ResNet that are not public"
_NOTES = "reading notes"

# fmt: off
CLAIMS = (
    Claim("C278", "FLOPs of a run that grows at tau: share 1 - (tau/T)(1 - N_s/N_l) of the large model's",
          "compute ratio", "equal", 0.4516129, 1e-07, source="notes",
          why="39M to 124M at tau = .8 T, all parameters counted"),
    Claim("C279", "That is about 20 % of the FLOPs (5 times less)", "abstract, 124M from zero layers",
          "upper", 0.25, source="notes", expected="fails", why="with all parameters counted it is 45 %"),
    Claim("C280", "It is 20 % where embeddings are not counted: a zero-layer model has no other parameters",
          "compute ratio", "equal", 0.2, 1e-12, source="derived"),
    Claim("C281", "GPT2-124M grows at 480k and 528k steps: 480/528 is .8", _NOTES, "equal", 0.8, 0.01,
          source="notes", expected="fails", why="480/528 is .91"),
    Claim("C282", "They are .80 and .88 of the 600k steps that nanoGPT trains", _NOTES, "equal",
          (0.8, 0.88), 1e-12, source="derived"),
    Claim("C283", "Growing costs (early share of the rates) (L_s* - L_l*) in the averaged loss; gradient "
                  "norms cancel", _BOUND, "upper", 1.0,
          why="gap of weighted averages over the formula on quadratics, new coordinates 0 before tau, "
              "largest of 12"),
    Claim("C284", "The formula is close to it there", _BOUND, "lower", 0.9, source="derived",
          why="smallest of the same ratios"),
    Claim("C285", "WSD has the smaller early share at tau = .8 T: it is the schedule to grow under", _BOUND,
          "upper", 1.0, source="notes", why="early share of WSD (10 % cooldown) over that of cosine"),
    Claim("C286", "After tau cosine has hardly any rate left to train the new layers",
          "section on schedules", "lower", 5.0, source="notes",
          why="share of the rates after .8 T: WSD over cosine"),
    Claim("C287", "Growing at .8 T costs much more final loss under cosine than under WSD",
          "section on schedules", "lower", 5.0, source="notes",
          why="excess of the final loss gap under cosine over that under WSD, power-law quadratic, each "
              "at its best peak"),
    Claim("C288", "The cost grows with tau under both", "section on schedules", "lower", 0.0,
          source="notes", why="smallest step of the excess from tau = .3 to .8 T"),
    Claim("C289", "The last-iterate bound explains more than the averaged one: its own bias D²/(2 (S_T - "
                  "S_tau))", "generalisation", "lower", 5.0, source="derived",
          why="bias after tau = .8 T under cosine over that under WSD, each at its best peak"),
    Claim("C290", "GPT2-124M, 12 layers grown from 0 or 1: gap below .5 %", "abstract",
          expected="unobtainable", source="notes", why=_RUNS),
    Claim("C291", "7B, 60 layers grown from .15B or .27B: gap below .2 %", "abstract",
          expected="unobtainable", source="notes", why=_RUNS),
    Claim("C292", "LLAMA3 .25B to 2B, DeepSeekV3 .2B to .5B: 3 to 5 times the compute efficiency, growing "
                  "with size", "scaling", expected="unobtainable", source="notes", why=_RUNS),
    Claim("C293", "Cosine does not mix for tau >= .5 T (GPT), .7 T (ResNet); WSD does at .8 T", "mixing",
          expected="unobtainable", source="notes",
          why=_RUNS + "; on quadratics the order is the same (see C287)"),
    Claim("C294", "The latest workable tau hardly depends on the depth grown from (.6 T to .8 T)", "mixing",
          expected="unobtainable", source="notes", why=_RUNS),
    Claim("C295", "Growing from 0 or 1 layers alone is on the Pareto front of loss and FLOPs (150 runs)",
          "source depth", expected="unobtainable", source="notes", why=_RUNS),
    Claim("C296", "Copying the last layer is clearly worse; stacking and interpolating copies are equal",
          "initialisation", expected="unobtainable", source="notes", why=_RUNS),
    Claim("C297", "Zero and copied-zero initialisations preserve the function and learn no features",
          "initialisation", expected="unobtainable", source="notes", why=_RUNS),
    Claim("C298", "Growing 0 to 2 to 12 layers costs as much as 2 to 12 and is worse than 0 to 12",
          "stages", expected="unobtainable", source="notes", why=_RUNS),
    Claim("C299", "Two short runs calibrate the mixing time: tau = T - t_mix", "recipe",
          expected="unobtainable", source="notes", why=_RUNS),
    Claim("C300", "muP carries the learning rate across the growth", "recipe", expected="unobtainable",
          source="notes", why=_RUNS),
)
"""What it states, with the place, the reference and what is expected here."""
