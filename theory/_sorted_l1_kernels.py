"""Compiled kernels of the sorted L1 norm: sorting, filtering, pooling. Plain arrays in, plain arrays out.

Vectors may be float64 or float32; penalties, sort keys and sums are float64 throughout, so that only the
kernels that read or write a user's vector are compiled twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.theory._jit import kernel, leaf

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[Any]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = [
    "correct_for_shrinkage",
    "dual_norm",
    "kkt_violation",
    "norm_value",
    "pool",
    "prox",
    "sort_decreasing",
    "survivors",
]

_BINS = 2048


@leaf
def _insertion(key: Floats, index: Ints, k: int, budget: int) -> bool:
    """Sort (key, index) pairs decreasingly by insertion; give up (False) after ``budget`` moves."""
    for i in range(1, k):
        value = key[i]
        if value <= key[i - 1]:
            continue
        item = index[i]
        j = i - 1
        while j >= 0 and key[j] < value:
            key[j + 1] = key[j]
            index[j + 1] = index[j]
            j -= 1
        key[j + 1] = value
        index[j + 1] = item
        budget -= i - j
        if budget < 0:
            return False
    return True


@kernel
def _radix(key: Floats, index: Ints, k: int, low: int) -> None:
    """Stable decreasing radix sort of non-negative floats on their bits from ``low`` up, 11 at a time."""
    key2 = np.empty(k, np.float64)
    index2 = np.empty(k, np.int64)
    count = np.empty(_BINS, np.int64)
    mask = np.uint64(_BINS - 1)
    for shift in range(low, 63, 11):
        bits = key.view(np.uint64)
        step = np.uint64(shift)
        for b in range(_BINS):
            count[b] = 0
        for i in range(k):
            count[(bits[i] >> step) & mask] += 1
        if count[(bits[0] >> step) & mask] == k:
            continue
        total = 0
        for b in range(_BINS - 1, -1, -1):
            here = count[b]
            count[b] = total
            total += here
        for i in range(k):
            digit = (bits[i] >> step) & mask
            place = count[digit]
            count[digit] = place + 1
            key2[place] = key[i]
            index2[place] = index[i]
        for i in range(k):
            key[i] = key2[i]
            index[i] = index2[i]


@kernel
def sort_decreasing(key: Floats, index: Ints, k: int) -> None:
    """Sort the first k (key, index) pairs by decreasing key, in place; keys are >= 0 and not NaN.

    Non-negative floats sort like their bits: three counting passes order the upper 33 bits, and insertion
    ends what is then almost sorted, unless many keys differ in their last bits alone.
    """
    if _insertion(key, index, k, 800 if k <= 64 else 2 * k):
        return
    _radix(key, index, k, 30)
    if not _insertion(key, index, k, 4 * k):
        _radix(key, index, k, 0)


@leaf
def count_above(v: Reals, bound: float) -> int:
    """How many entries exceed the bound in magnitude."""
    k = 0
    for i in range(v.size):
        if abs(np.float64(v[i])) > bound:
            k += 1
    return k


@leaf
def filter_bound(v: Reals, lam: Floats) -> tuple[float, int]:
    """Return a bound below which the prox is zero, and how many entries exceed it.

    If |v|_(i) <= lam_k for all i > k, no block that reaches beyond k has a positive mean, so every entry with
    |v| <= lam_k is zero. This holds for k = p first, then for the number of entries that are left. Counting
    is much faster than collecting, so the bound rises first, while it still shrinks the rest.
    """
    bound = lam[lam.size - 1]
    k = count_above(v, bound)
    while k > 0 and lam[k - 1] > bound:
        before = k
        bound = lam[k - 1]
        k = count_above(v, bound)
        if k > 0.7 * before:
            break
    return bound, k


@leaf
def collect(v: Reals, lam: Floats, bound: float, index: Ints, key: Floats) -> int:
    """Collect the entries above a bound of :func:`filter_bound`, and raise it as far as it goes."""
    k = 0
    for i in range(v.size):
        a = abs(np.float64(v[i]))
        if a > bound:
            index[k] = i
            key[k] = a
            k += 1
    while k > 0:
        bound = lam[k - 1]
        kept = 0
        for i in range(k):
            if key[i] > bound:
                key[kept] = key[i]
                index[kept] = index[i]
                kept += 1
        if kept == k:
            break
        k = kept
    return k


@leaf
def survivors(v: Reals, lam: Floats, index: Ints, key: Floats) -> int:
    """Collect the entries that the prox can leave nonzero; returns how many."""
    return int(collect(v, lam, filter_bound(v, lam)[0], index, key))


@leaf
def pool(key: Floats, lam: Floats, start: int, k: int, end: Ints, value: Floats) -> int:
    """Non-increasing least-squares fit of key[i] - lam[start + i] for i < k (pool adjacent violators).

    Returns the number of leading blocks with a positive mean; block j ends before ``end[j]`` and has the mean
    ``value[j]``. Means are compared by cross-multiplication.
    """
    blocks = 0
    for i in range(k):
        total = key[i] - lam[start + i]
        count = 1
        while blocks > 0:
            before = end[blocks - 1] - (end[blocks - 2] if blocks > 1 else 0)
            if value[blocks - 1] * count > total * before:
                break
            total += value[blocks - 1]
            count += before
            blocks -= 1
        end[blocks] = i + 1
        value[blocks] = total
        blocks += 1
    first = 0
    for j in range(blocks):
        if value[j] <= 0.0:
            return j
        value[j] /= end[j] - first
        first = end[j]
    return blocks


@kernel
def prox(v: Reals, lam: Floats, out: Reals) -> None:
    """Prox of the sorted L1 norm into ``out``, which must hold zeros; members of a cluster get one float."""
    p = v.size
    if p == 0:
        return
    bound, k = filter_bound(v, lam)
    index = np.empty(k, np.int64)
    key = np.empty(k, np.float64)
    k = collect(v, lam, bound, index, key)
    if k == 0:
        return
    sort_decreasing(key, index, k)
    end = np.empty(k, np.int64)
    value = np.empty(k, np.float64)
    blocks = pool(key, lam, 0, k, end, value)
    i = 0
    for b in range(blocks):
        for j in range(i, end[b]):
            item = index[j]
            out[item] = value[b] if v[item] > 0 else -value[b]
        i = end[b]


@kernel
def norm_value(v: Reals, lam: Floats) -> float:
    """sum_i lam_i |v|_(i)."""
    index = np.empty(v.size, np.int64)
    key = np.empty(v.size, np.float64)
    k = 0
    for i in range(v.size):
        if v[i] != 0:
            key[k] = abs(np.float64(v[i]))
            index[k] = i
            k += 1
    sort_decreasing(key, index, k)
    total = 0.0
    for i in range(k):
        total += key[i] * lam[i]
    return total


@kernel
def dual_norm(v: Reals, lam: Floats) -> float:
    """max_k sum_{i<=k} |v|_(i) / sum_{i<=k} lam_i; infinite where lam is zero and v is not.

    At the maximiser k, |v|_(k) >= R lam_k with R the maximum, so entries below lam_k times a lower bound of R
    cannot take part. The bound is lowered by 1e-12: rounded up by one ulp it would leave no candidates.
    """
    p = v.size
    top = 0.0
    total = 0.0
    weight = 0.0
    for i in range(p):
        a = abs(np.float64(v[i]))
        total += a
        weight += lam[i]
        if a > top:
            top = a
    if top == 0.0:
        return 0.0
    if lam[0] == 0.0:
        return np.inf
    best = max(top / lam[0], total / weight)
    lower = best * (1.0 - 1e-12)
    index = np.empty(p, np.int64)
    key = np.empty(p, np.float64)
    k = 0
    bound = lower * lam[p - 1]
    for i in range(p):
        a = abs(np.float64(v[i]))
        if a >= bound:
            key[k] = a
            index[k] = i
            k += 1
    while k > 0:
        bound = lower * lam[k - 1]
        kept = 0
        for i in range(k):
            if key[i] >= bound:
                key[kept] = key[i]
                kept += 1
        if kept == k:
            break
        k = kept
    sort_decreasing(key, index, k)
    total = 0.0
    weight = 0.0
    for i in range(k):
        total += key[i]
        weight += lam[i]
        if total > best * weight:
            best = total / weight
    return float(best)


@kernel
def kkt_violation(coef: Reals, correlation: Reals, lam: Floats) -> float:
    """Largest violation of the optimality conditions for coef where correlation = -(gradient of the loss)."""
    p = coef.size
    index = np.empty(p, np.int64)
    key = np.empty(p, np.float64)
    for i in range(p):
        index[i] = i
        key[i] = abs(np.float64(coef[i]))
    sort_decreasing(key, index, p)
    # the sort takes keys >= 0
    shift = 0.0
    for i in range(p):
        shift = max(shift, abs(np.float64(correlation[i])))
    worst = 0.0
    signed = np.empty(p, np.float64)
    place = np.empty(p, np.int64)
    first = 0
    while first < p:
        last = first
        while last < p and key[last] == key[first]:
            item = index[last]
            pull = np.float64(correlation[item])
            if key[first] == 0.0:
                signed[last - first] = abs(pull)
            else:
                signed[last - first] = pull if coef[item] > 0 else -pull
            signed[last - first] += shift
            last += 1
        size = last - first
        sort_decreasing(signed, place, size)
        total = 0.0
        for i in range(size):
            total += signed[i] - shift - lam[first + i]
            worst = max(worst, total)
        if key[first] != 0.0:
            worst = max(worst, abs(total))
        first = last
    return worst


@leaf
def correct_for_shrinkage(lam: Floats, n: float) -> None:
    """Gaussian correction of a BH sequence, in place; the sum may overflow, the running minimum not."""
    total = 0.0
    lowest = np.inf
    for i in range(lam.size):
        value = lam[i]
        if i > 0 and value > 0.0:
            value *= np.sqrt(1.0 + total / max(1.0, n - i - 1.0))
        total += value * value
        lowest = min(lowest, value)
        lam[i] = lowest
