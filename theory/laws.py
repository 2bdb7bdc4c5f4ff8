"""Loss laws as values: what a learning-rate schedule (or a size and a number of tokens) does to the loss.

Laws of a curve give the loss at every step of a schedule. ``S_t`` is the running sum of learning rates; the
value at step k uses S through step k and the noise of the updates before k:

====================  ======================================================  ========================
name                  loss                                                    fitted
====================  ======================================================  ========================
cd3                   Linf + a/S + b N (plain)                                Linf, a, b
cb4                   Linf + a S^-alpha + b N (plain)                         + alpha
cvx3, cvx4, cvx4q     Linf + a S^-alpha + b N_q (free step), q=.2, 0, 1/8     + alpha (cvx3: 1/2)
cvx5                  the same with q free                                    + q
cvx6                  the same with b (peak/1e-3)^-r                          + r
rc4                   cvx4 on the rotational clock                            Linf, a, b, alpha
averaged              Linf + a/S + b sum(lr^2)/S                              Linf, a, b
tissue                Linf + a S^-alpha - b S2(lam)                           + alpha, lam
multipower            Linf + a S^-alpha + b LD(C, beta, gamma)                + alpha, C, beta, gamma
====================  ======================================================  ========================

Laws of a table give the final loss of a model of N parameters trained on D tokens:

====================  ======================================================  ========================
chinchilla            E + A N^-alpha + B D^-beta                              E, A, B, alpha, beta
kaplan                [(Nc/N)^(alphaN/alphaD) + Dc/D]^alphaD                  Nc, Dc, alphaN, alphaD
two_dimensional       E + A N^-a + c0 N^k/sqrt(D)                             E, A, c0, a, k
====================  ======================================================  ========================
"""

from __future__ import annotations

from convexlaw.errors import ConvexlawError
from convexlaw.theory._law_columns import Parameter, RunPath
from convexlaw.theory._law_curves import (
    CB4,
    CD3,
    CVX3,
    CVX4,
    CVX5,
    CVX6,
    RC4,
    Averaged,
    CurveLaw,
    CVX4q,
    MultiPower,
    Tissue,
)
from convexlaw.theory._law_tables import Chinchilla, Kaplan, TableLaw, TwoDimensional
from convexlaw.theory._warmup import warmup_end

__all__ = [
    "CB4",
    "CD3",
    "CURVE_LAWS",
    "CVX3",
    "CVX4",
    "CVX5",
    "CVX6",
    "RC4",
    "TABLE_LAWS",
    "Averaged",
    "CVX4q",
    "Chinchilla",
    "CurveLaw",
    "Kaplan",
    "MultiPower",
    "Parameter",
    "RunPath",
    "TableLaw",
    "Tissue",
    "TwoDimensional",
    "curve_law",
    "table_law",
    "warmup_end",
]

CURVE_LAWS: dict[str, type[CurveLaw]] = {
    law.name: law for law in (CD3, CB4, CVX3, CVX4, CVX4q, CVX5, CVX6, RC4, Averaged, Tissue, MultiPower)
}
"""Laws of loss curves by name."""


def curve_law(name: str) -> type[CurveLaw]:
    """Return the class of a law of a loss curve.

    Parameters
    ----------
    name : str
        One of ``CURVE_LAWS``.

    Raises
    ------
    ConvexlawError
        Unknown name.

    Examples
    --------
    >>> curve_law("cvx4q").names()
    ('Linf', 'a', 'b', 'alpha')
    """
    if not isinstance(name, str) or name not in CURVE_LAWS:
        raise ConvexlawError(f"law {name!r} is not known: choose one of {', '.join(CURVE_LAWS)}")
    return CURVE_LAWS[name]


TABLE_LAWS: dict[str, type[TableLaw]] = {law.name: law for law in (Chinchilla, Kaplan, TwoDimensional)}
"""Laws of tables of final losses by name."""


def table_law(name: str) -> type[TableLaw]:
    """Return the class of a law of a table of final losses.

    Parameters
    ----------
    name : str
        One of ``TABLE_LAWS``.

    Raises
    ------
    ConvexlawError
        Unknown name.

    Examples
    --------
    >>> table_law("chinchilla").__name__
    'Chinchilla'
    """
    if not isinstance(name, str) or name not in TABLE_LAWS:
        raise ConvexlawError(f"law {name!r} is not known for a table: choose one of {', '.join(TABLE_LAWS)}")
    return TABLE_LAWS[name]
