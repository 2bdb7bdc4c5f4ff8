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
    Claim("C281",
          "GPT2-124M grows at 480k and 528k steps: with 480k of 528k = .8 T a zero-layer start costs 20 "
          "% of the FLOPs", _NOTES, "equal", 0.2, 0.01, source="notes", expected="fails",
          why="480/528 is .91, so that 9 % of the FLOPs would be left"),
    Claim("C282",
          "Of the 600k steps that nanoGPT trains they are .80 and .88: 20 % of the FLOPs (as the "
          "abstract has it) and 12 %", _NOTES, "equal", (0.2, 0.12), 1e-12, source="derived",
          why="FLOPs of the updates, no parameters before the growth, 124M after"),
    Claim("C283",
          "Growing costs (early share of the rates) (L_s* - L_l*) in the averaged loss; gradient norms "
          "cancel", _BOUND, "upper", 1.0,
          why="gap of weighted averages over the bound's on quadratics, new coordinates 0 before tau, "
              "largest of 12"),
    Claim("C284", "The formula is close to it there", _BOUND, "lower", 0.9, source="derived",
          why="smallest of the same ratios"),
    Claim("C400",
          "The formula is the difference of two upper bounds on averages, with the distances of the new "
          "layers", _BOUND, "equal", 0.0, 1e-10,
          why="largest relative error against both bounds summed step by step, random schedules"),
    Claim("C285", "WSD has the smaller early share at tau = .8 T: it is the schedule to grow under", _BOUND,
          "upper", 1.0, source="notes", why="early share of WSD (10 % cooldown) over that of cosine"),
    Claim("C286", "After tau cosine has hardly any rate left to train the new layers",
          "section on schedules", "lower", 5.0, source="notes",
          why="share of the rates after .8 T: WSD over cosine; the threshold 5 is ours"),
    Claim("C287", "Growing at .8 T costs much more final loss under cosine than under WSD",
          "section on schedules", "lower", 5.0, source="notes",
          why="excess of the final loss gap under cosine over that under WSD, power-law quadratic, each "
              "at its best peak; the threshold 5 is ours"),
    Claim("C288", "The cost grows with tau under both", "section on schedules", "lower", 0.0,
          source="notes", why="smallest step of the excess from tau = .3 to .8 T"),
    Claim("C289", "The last-iterate bound from tau on explains final losses better than the averaged bound",
          "generalisation", "lower", 0.0, source="derived",
          why="rank correlation with the final loss of 12 grown runs on quadratics: that of the "
              "last-iterate bound minus that of the averaged one"),
    Claim("C401",
          "That bound is D_tau²/(2 (S_T - S_tau + v)) and the noise sum after tau, v the best weight of "
          "a next step", "generalisation", "equal", 0.0, 1e-08, source="derived",
          why="largest relative error against the sum, minimised numerically"),
    Claim("C402", "It bounds the final loss of every grown run", "generalisation", "lower", 1.0,
          source="derived", why="smallest bound over loss gap of 12 runs on quadratics: far from tight"),
    Claim("C403", "Mixing steps and latest step solve S_T - S_tau >= D_tau²/(2 tolerance)",
          "generalisation", "equal", (0.0, 0.0), source="derived",
          why="cases of 30 that differ from a search over all steps"),
    Claim("C404",
          "Recipe tau = T - cooldown - t_mix: the latest step from which a constant rate mixes in time",
          "recipe", "equal", 0.0, source="derived",
          why="cases of 30 that differ from a search over all steps"),
    Claim("C405", "FLOPs are 6 B (tau N_s + (T - tau) N_l)", "compute ratio", "equal", 0.0, 1e-12,
          source="notes", why="largest relative error against a sum over the updates, batches of any size"),
    Claim("C407", "The mixing time is the first time that the curves meet", "mixing", "equal", 0.0,
          source="notes",
          why="12 grown runs on quadratics, within 50 % of the loss gap: cases that differ from a search"),
    Claim("C290", "GPT2-124M, 12 layers grown from 0 or 1: gap below .5 %", "abstract",
          expected="unobtainable", source="notes",
          why=_RUNS + "; small transformer, 3 blocks grown at .8 T: percent gap under WSD from 0 and 1, "
              "under cosine from 0 and 1"),
    Claim("C291", "7B, 60 layers grown from .15B or .27B: gap below .2 %", "abstract",
          expected="unobtainable", source="notes", why=_RUNS + "; nothing was measured at such a size"),
    Claim("C292",
          "LLAMA3 .25B to 2B, DeepSeekV3 .2B to .5B: 3 to 5 times the compute efficiency, growing with "
          "size", "scaling", expected="unobtainable", source="notes",
          why=_RUNS + "; small transformer grown from 1 block at .8 T under WSD, at a gap not told from "
              "0: compute saved, embeddings free and counted"),
    Claim("C293", "Cosine does not mix for tau >= .5 T (GPT), .7 T (ResNet); WSD does at .8 T", "mixing",
          "equal", (1.0, 1.0, 0.0, 0.0), source="notes", expected="fails",
          why="small transformer, 900 updates, three seeds, share that mixes: WSD at .8 T from 0 and 1 "
              "block, cosine at .5 T and later from 0 and 1; from 0 blocks nothing mixes, from 1 also "
              "some cosine runs do"),
    Claim("C294", "The latest workable tau hardly depends on the depth grown from (.6 T to .8 T)", "mixing",
          "equal", 0.7, 0.11, source="notes", expected="fails",
          why="small transformer under WSD: latest tau/T at which most seeds mix, from 0 (0: none) and 1 "
              "block"),
    Claim("C295", "Growing from 0 or 1 layers alone is on the Pareto front of loss and FLOPs (150 runs)",
          "source depth", expected="unobtainable", source="notes",
          why=_RUNS + "; small transformer, only 0 and 1 blocks were tried: rows of 8 in which growing "
              "beats a shorter run of the whole model with the same compute, and beyond the spread"),
    Claim("C408", "At equal compute growing from 0 or 1 blocks beats a shorter run of the whole model",
          "source depth", "upper", 0.0, source="derived",
          why="small transformer under WSD: differences of the final loss (nats), from 0 and 1 blocks at "
              ".3 to .8 T"),
    Claim("C296", "Copying the last layer is clearly worse; stacking and interpolating copies are equal",
          "initialisation", source="notes", expected="fails",
          why="small transformer, 2 to 3 blocks at .5 T: copying the last block is no worse than the "
              "others, which agree with each other; two seeds"),
    Claim("C406", "Zero and copied-zero initialisations preserve the function", "initialisation", "upper",
          0.0, source="notes",
          why="small transformer: change of the loss over the growth (nats), at most what 30 updates gain"),
    Claim("C297", "Zero and copied-zero initialisations learn no features", "initialisation",
          expected="unobtainable", source="notes",
          why="features were not measured; small transformer, percent gap to the whole model: random, "
              "zero, copied zero (copied zero ends lowest, zero in the middle)"),
    Claim("C298", "Growing 0 to 2 to 12 layers costs as much as 2 to 12 and is worse than 0 to 12",
          "stages", expected="unobtainable", source="notes",
          why=_RUNS + "; not tried: the trainer of this package grows a model once"),
    Claim("C299", "Two short runs calibrate the mixing time: tau = T - t_mix", "recipe", "lower", 0.5,
          source="notes", expected="fails",
          why="small transformer under WSD: share of seeds that mix when grown where the recipe says "
              "(.72 T from 0 blocks, .75 T from 1; runs at .7 T and .8 T): it fails from 0 blocks"),
    Claim("C300", "muP carries the learning rate across the growth", "recipe", expected="unobtainable",
          source="notes", why=_RUNS + "; not tried: the trainer of this package has no muP"),
)
"""What it states, with the place, the reference and what is expected here."""
