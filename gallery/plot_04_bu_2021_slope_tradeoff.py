"""
Beyond the power limit of the Lasso
===================================

SLOPE reaches every true positive proportion. Its best false discovery proportion lies between an upper
and a lower curve (Bu, Klusowski, Rush and Su 2021); random SLOPE problems lie above the lower one.
"""  # noqa: D205, D400

from convexlaw.paper_repro import bu_2021_slope_tradeoff as paper
from convexlaw.theory.tradeoff import best_tpp

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: how much of the signal can each find when 60 % of its discoveries may be false?

for kind in ("lasso", "two_level", "slope_lower"):
    print(f"{kind:>12}: TPP {best_tpp(0.6, 0.3, 0.2, kind):.4f}")
