"""
Convex dominance
================

The bound times sqrt(T) by schedule (flat: qualified; growing: not), the loss of 15 model sizes against
one over the square root of their tokens, and the limits of those lines by size (Bu, Xu and Mao 2026).
"""  # noqa: D205, D400

from convexlaw.paper_repro import bu_2026_convex_dominance as paper
from convexlaw.theory.last_iterate import qualify

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: does your own schedule pass the exam? A floor of 10 % fails it, by a logarithm.

print(qualify("cosine:steps=10000,peak=1,end=0.1"))
