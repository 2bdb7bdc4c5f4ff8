"""
Seven parameters or four
========================

The Multi-Power law with its printed parameters on held-out schedules of its own public curves (Luo et
al. 2025), beside laws that come from the convex last-iterate bound and have four parameters.
"""  # noqa: D205, D400

from convexlaw import fit_curves, read_runs
from convexlaw.paper_repro import luo_2025_multi_power as paper
from convexlaw.simulations import DEMO_TRAIN, demo_logs

data = paper.compute(quick=True)
figure = paper.draw(data)

# %%
# What the paper claims, and what was found here.

print(f"{paper.PAPER.authors}: {paper.PAPER.title} (arXiv {paper.PAPER.arxiv})")
for check in paper.check(data):
    print(f"{check.id} {check.verdict}: {check.claim}")

# %%
# Another question, on the runs that come with the package: laws fitted to three of them, scored on the
# other fifteen.

runs = read_runs(demo_logs())
for law in ("rc4", "cvx4q", "multipower"):
    print(f"{law:>10}: {fit_curves(runs, law, train=list(DEMO_TRAIN)).score().mae.mean():.4f} nats")
