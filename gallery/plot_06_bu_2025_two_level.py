"""
Two levels are nearly enough
============================

Two-level SLOPE beside the Lasso and the best SLOPE (Bu et al. 2025). The text of the paper could not be
obtained: the exact curve drawn here is derived from scratch, not read.
"""  # noqa: D205, D400

from convexlaw.paper_repro import bu_2025_two_level as paper
from convexlaw.theory.designs import improve_lasso
from convexlaw.theory.scalar_limit import Lasso, Prior
from convexlaw.theory.state_evolution import solve

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: take a Lasso and improve it in all respects at once, with the same zero threshold.

prior = Prior.parse("4:0.2")
before, after = solve(prior, Lasso(1.5), 0.64, 0.5), improve_lasso(prior, 0.64, 0.5, 1.5).state
for name, state in (("Lasso", before), ("two-level", after)):
    print(f"{name:>9}: TPP {state.tpp:.4f}, FDP {state.fdp:.4f}, MSE {state.mse:.4f}")
