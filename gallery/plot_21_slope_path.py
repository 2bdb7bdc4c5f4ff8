"""
The path of a SLOPE regression
==============================

Coefficients of standardised features against the penalty, for the diabetes data: features join a cluster,
share its size for a while, and leave it.
"""  # noqa: D205, D400

from sklearn.datasets import load_diabetes

from convexlaw import Slope, slope_path

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
Z = (X - X.mean()) / X.std(ddof=0)
weights = {"lambda_type": "oscar", "theta1": 1.0, "theta2": 0.5}
path = slope_path(Z, y, **weights)
print(path)
ax = path.plot()

# %%
# One fit on it, with its certificate. Features of one cluster have the same coefficient up to the sign.

print(Slope(alpha=1.0, **weights).fit(Z, y).summary().to_frame().round(3).to_string(index=False))
