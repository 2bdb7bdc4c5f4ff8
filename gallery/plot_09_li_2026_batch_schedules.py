"""
Optimal batch sizes
===================

The batch schedule that minimises the noise in the bound has a closed form for every shape of the
learning rate; a linear decay needs none (Li, Bu and Xu 2026).
"""  # noqa: D205, D400

from convexlaw.paper_repro import li_2026_batch_schedules as paper
from convexlaw.theory.batch import plan
from convexlaw.theory.schedules import wsd

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: which batch sizes, in multiples of 8, for a WSD run of 1000 steps and 256 000
# samples?

print(plan(wsd(1000, 1e-3), 256_000, min_batch=64, max_batch=1024, multiple_of=8))
