"""
Schedules that a bound prefers
==============================

Bounds along a run for four schedules at their best peak, the effect of the length of the cooldown, and
the best learning rate by cooldown that the theory gives beside the one measured on runs of 124M
parameters (Defazio et al. 2023, Schaipp et al. 2025).
"""  # noqa: D205, D400

from convexlaw.paper_repro import defazio_2023_last_iterate as paper
from convexlaw.theory.last_iterate import bound, optimal_peak
from convexlaw.theory.schedules import wsd

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: how much does the bound lose when the base learning rate is three times too large?

shape = wsd(10_000, 1.0, decay=0.2)
peak, best = optimal_peak(shape)
print(f"best peak {peak:.5f}: {best:.5f}; three times that: {bound(3 * peak * shape, form='tail'):.5f}")
