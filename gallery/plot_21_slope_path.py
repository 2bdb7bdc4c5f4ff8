"""
The path of a SLOPE regression
==============================

Coefficients against the penalty for the diabetes data: features join a cluster, share its size, and leave it.
"""  # noqa: D205, D400

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from convexlaw import Slope, slope_path

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
path = slope_path(X, y, lambda_type="oscar", theta1=1.0, theta2=0.5, scaling="sd")
print(path)
figure, ax = plt.subplots(figsize=(7, 4))
path.plot(ax)

# %%
# One fit of it, with its certificate.

print(Slope(alpha=2.0, lambda_type="oscar", scaling="sd").fit(X, y).summary())
