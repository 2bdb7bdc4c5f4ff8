"""
Message passing for SLOPE
=========================

SLOPE by approximate message passing takes a few products with X where FISTA and ISTA take many more,
and state evolution tells the error of each step in advance (Bu, Klusowski, Rush and Su 2019, 2021).
"""  # noqa: D205, D400

from convexlaw.paper_repro import bu_2019_slope_amp as paper
from convexlaw.theory.scalar_limit import Prior, TwoLevel
from convexlaw.theory.state_evolution import solve

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: how good is the two-level penalty (2, 1) on a fifth of the features, before any data
# is seen?

print(solve(Prior.parse("4:0.2"), TwoLevel(2.0, 1.0, 0.2), delta=0.64, sigma=0.5))
