"""
Penalties made to measure
=========================

Which penalty has the smallest error, and how little is lost with two or three levels instead of p
(Zhang and Bu 2021).
"""  # noqa: D205, D400

from convexlaw.paper_repro import zhang_2021_slope_designs as paper
from convexlaw.theory.designs import optimal_lasso, optimal_slope, optimal_two_level
from convexlaw.theory.scalar_limit import Prior

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: the best Lasso, two-level SLOPE and SLOPE for signals of size 1 on half of the
# features.

prior = Prior.parse("1:0.5")
for best in (optimal_lasso, optimal_two_level, optimal_slope):
    print(f"{best.__name__:>18}: MSE {best(prior, 0.5, 0.2).state.mse:.5f}")
