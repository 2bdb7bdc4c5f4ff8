"""
All that the Lasso can reach
============================

The region of all pairs of true positive and false discovery proportion that some Lasso has, for some
signals, noise and penalty (Wang, Yang, Bu and Su 2020). The dots are random problems that fill it.
"""  # noqa: D205, D400

from convexlaw.paper_repro import wang_2020_lasso_diagram as paper
from convexlaw.theory.tradeoff import complete_lasso_region

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: where does the region lie for half as many rows as features and 30 % of signals?

print(complete_lasso_region(0.5, 0.3, n=6).to_frame().round(4).to_string(index=False))
