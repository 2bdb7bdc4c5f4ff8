"""
Growing a model during training
===============================

A run that trains half of the coordinates from the start and the others from a step tau on, beside one
that trains all (Bu 2025): the gap of the weighted averages against its bound, and the excess of the
final loss. The bound is the difference of two upper bounds, not a bound on the difference of the
losses.
"""  # noqa: D205, D400

from convexlaw.paper_repro import bu_2025_depth as paper
from convexlaw.theory.schedules import cosine, wsd

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: which share of the learning rates lies before 80 % of the steps? It is the weight of
# the small model's loss in that bound, and why a late growth costs less under WSD.

for name, lr in (("WSD", wsd(10_000, 1.0, decay=0.1)), ("cosine", cosine(10_000, 1.0))):
    print(f"{name}: {lr[:8_000].sum() / lr.sum():.3f}")
