"""
One law, fitted on three runs, predicts fifteen
===============================================

The runs that come with the package, a law fitted to three of them, and what it makes of schedules that nobody
ran. Put your own files in the place of ``demo_logs()``.
"""  # noqa: D205, D400

from convexlaw import fit_curves, read_runs
from convexlaw.simulations import DEMO_TRAIN, demo_logs

runs = read_runs(demo_logs())
fit = fit_curves(runs, train=list(DEMO_TRAIN))
print(fit)
ax = fit.plot()

# %%
# How far off are the held-out runs? The last column is the error of the constant "last value".

columns = ["run", "points", "mae", "final_error", "last_value_mae"]
print(fit.score()[columns].round(4).to_string(index=False))

# %%
# A schedule nobody ran: the cosine of the same length costs this much more than a long cooldown.

for schedule in ("wsd:steps=8000,peak=3e-3,decay=0.4,warmup=300", "cosine:steps=8000,peak=3e-3,warmup=300"):
    print(f"{schedule}: {fit.predict(schedule)[-1]:.4f} nats")
