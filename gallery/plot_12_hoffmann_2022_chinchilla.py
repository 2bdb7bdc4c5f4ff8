"""
Compute-optimal models, refitted
================================

The loss E + A/N^alpha + B/D^beta fitted to the digitised points (Hoffmann et al. 2022, Besiroglu et al.
2024), and the tokens per parameter that it advises: the printed parameters advise four times as many.
"""  # noqa: D205, D400

import numpy as np
import pandas as pd

from convexlaw import fit_table
from convexlaw.paper_repro import hoffmann_2022_chinchilla as paper

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question: fit the law to a table of your own (made up here, from the refit), and ask for the
# best split of a budget.

n, d = (x.ravel() for x in np.meshgrid(np.geomspace(1e8, 1e10, 6), np.geomspace(1e9, 3e11, 6)))
noise = np.exp(0.002 * np.random.default_rng(0).standard_normal(n.size))
table = pd.DataFrame({"N": n, "D": d, "loss": (1.82 + 480 / n**0.347 + 2100 / d**0.366) * noise})
print(fit_table(table).optimal(flops=1e22))
