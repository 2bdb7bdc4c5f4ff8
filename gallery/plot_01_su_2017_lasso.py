"""
False discoveries of the Lasso
==============================

No Lasso finds a proportion u of the signals at a false discovery proportion below q*(u), whatever the
signals, the noise and the penalty (Su, Bogdan and Candès 2017). The dots are random problems, the curve
is q*.
"""  # noqa: D205, D400

from convexlaw.paper_repro import su_2017_lasso as paper
from convexlaw.theory.tradeoff import rows_needed

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: how many rows for each feature does a Lasso need to find 80 % of the signals with at
# most 10 % of false discoveries, when one feature in ten carries a signal?

print(f"n/p = {rows_needed(0.8, 0.1, 0.1, kind='lasso'):.4f}")
