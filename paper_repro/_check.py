"""Claims of papers and what was found: a claim has a fixed id, a check is a claim with a computed number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from convexlaw.errors import ConvexlawError

__all__ = ["Check", "Claim", "Paper", "Sheet", "Value"]

Value: TypeAlias = "float | str | tuple[float, ...] | None"
Kind = Literal["equal", "upper", "lower", "monte-carlo", "qualitative"]
Outcome = Literal["holds", "fails", "unobtainable"]
Verdict = Literal["holds", "fails", "unobtainable", "not run"]
Source = Literal["paper", "code", "notes", "derived", "measured"]


@dataclass(frozen=True)
class Paper:
    """One paper (or two that belong together) and the module that reproduces it.

    Attributes
    ----------
    id : str
        Name on the command line and of its files.
    title : str
    authors : str
        With the year.
    arxiv : str
        Identifiers, separated by commas.
    """

    id: str
    title: str
    authors: str
    arxiv: str


@dataclass(frozen=True)
class Claim:
    """What a paper says, before anything is computed.

    Attributes
    ----------
    id : str
        C001, C002, ...; never reused or renumbered.
    claim : str
        The statement, in words.
    place : str
        Theorem, equation, table, figure or section of the paper.
    kind : {"equal", "upper", "lower", "monte-carlo", "qualitative"}
        How computed and reference are compared: equal within ``tolerance``; computed at most (least) the
        reference, up to ``tolerance``; equal within ``tolerance`` standard errors; a statement that is true
        or false.
    reference : float, tuple of float or str, optional
        What the claim says the number is; None where the reference is computed too.
    tolerance : float
        Absolute, or relative to the reference where ``relative``; in standard errors for monte-carlo.
    relative : bool
    expected : {"holds", "fails", "unobtainable"}
        What this repository knows about the claim.
    source : {"paper", "code", "notes", "derived", "measured"}
        Where the claim was read: the paper's text, its authors' code, other people's notes on it, or derived
        or measured by us from it.
    needs : str
        Folder of public data that the check reads; empty for none.
    why : str
        What is compared, the reason of an expected failure, or why the claim cannot be obtained.
    """

    id: str
    claim: str
    place: str
    kind: Kind = "qualitative"
    reference: Value = None
    tolerance: float = 0.0
    relative: bool = False
    expected: Outcome = "holds"
    source: Source = "paper"
    needs: str = ""
    why: str = ""

    def judge(
        self,
        computed: Any,
        *,
        reference: Any = None,
        error: float | None = None,
        holds: bool | None = None,
        note: str = "",
    ) -> Check:
        """Compare a computed number with the claim.

        Parameters
        ----------
        computed : float, sequence of float or str
            What was found here.
        reference : float or sequence of float, optional
            For claims whose reference is computed too.
        error : float, optional
            Standard error of ``computed`` (monte-carlo).
        holds : bool, optional
            Verdict of a qualitative claim.
        note : str
            What else was seen.

        Returns
        -------
        Check

        Raises
        ------
        ConvexlawError
            A qualitative claim without ``holds``, a monte-carlo claim without ``error``.

        Examples
        --------
        >>> claim = Claim("C999", "the answer", "Theorem 1", "equal", reference=42.0, tolerance=0.5)
        >>> claim.judge(42.3).verdict, claim.judge(43.0).verdict
        ('holds', 'fails')
        """
        found, wanted = _value(computed), _value(self.reference if reference is None else reference)
        if self.kind == "qualitative":
            if holds is None:
                raise ConvexlawError(f"{self.id} is qualitative: say whether it holds")
            good = holds
        else:
            if self.kind == "monte-carlo" and not (error is not None and error > 0):
                raise ConvexlawError(f"{self.id} is a Monte Carlo check: give its standard error > 0")
            good = _agree(self.kind, _numbers(found), _numbers(wanted), self.tolerance, self.relative, error)
        return self._check("holds" if good else "fails", found, wanted, error, note)

    def unobtainable(self, note: str = "", computed: Any = None) -> Check:
        """Record that the claim cannot be obtained here, with what was measured instead."""
        return self._check("unobtainable", _value(computed), _value(self.reference), None, note or self.why)

    def not_run(self, reason: str) -> Check:
        """Record that the claim was not checked: public data is absent, or the run is a quick one."""
        return self._check("not run", None, _value(self.reference), None, reason)

    def _check(
        self, verdict: Verdict, computed: Value, reference: Value, error: float | None, note: str
    ) -> Check:
        return Check(
            id=self.id,
            claim=self.claim,
            place=self.place,
            source=self.source,
            computed=computed,
            reference=reference,
            kind=self.kind,
            tolerance=self.tolerance,
            relative=self.relative,
            error=error,
            expected=self.expected,
            verdict=verdict,
            note=note or self.why,
        )


@dataclass(frozen=True)
class Check:
    """A claim with what was computed and the verdict; fields as in :class:`Claim`.

    Attributes
    ----------
    computed : float, tuple of float, str or None
        What was found here; None where nothing was computed.
    error : float or None
        Standard error of ``computed``.
    verdict : {"holds", "fails", "unobtainable", "not run"}
        "not run": the public data it reads is absent, or it was left out of a quick run.
    note : str
        What else was seen, or why.
    """

    id: str
    claim: str
    place: str
    source: Source
    computed: Value
    reference: Value
    kind: Kind
    tolerance: float
    relative: bool
    error: float | None
    expected: Outcome
    verdict: Verdict
    note: str

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the expected one (a check that was not run is no surprise)."""
        return self.verdict in (self.expected, "not run")

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON values; infinities and NaN become text."""
        out: dict[str, Any] = asdict(self) | {"as_expected": self.as_expected}
        return {key: _plain(value) for key, value in out.items()}

    def __str__(self) -> str:
        mark = "" if self.as_expected else f" (expected: {self.expected})"
        lines = [f"{self.id} {self.verdict}{mark}: {self.claim} [{self.place}]"]
        if self.computed is not None:
            error = f" +- {self.error:.2g}" if self.error is not None else ""
            lines.append(f"  computed {show(self.computed)}{error}, reference {show(self.reference)}")
        if self.note:
            lines.append(f"  {self.note}")
        return "\n".join(lines)


class Sheet:
    """Collects the checks of one paper; every claim gets exactly one.

    Parameters
    ----------
    claims : sequence of Claim
        All claims of the paper, in order.
    missing : mapping of data folder to reason
        Public data that is absent: claims that need it are "not run".
    """

    def __init__(self, claims: Sequence[Claim], missing: dict[str, str] | None = None) -> None:
        self._claims = {claim.id: claim for claim in claims}
        self._missing = missing or {}
        self._checks: dict[str, Check] = {}

    def judge(self, id: str, computed: Any, **options: Any) -> None:
        """Judge claim ``id`` (see :meth:`Claim.judge`)."""
        self._add(id, self._claim(id).judge(computed, **options))

    def unobtainable(self, id: str, note: str = "", computed: Any = None) -> None:
        """Record that claim ``id`` cannot be obtained here."""
        self._add(id, self._claim(id).unobtainable(note, computed))

    def skip(self, id: str, reason: str) -> None:
        """Record that claim ``id`` was left out of this run (a quick one)."""
        self._add(id, self._claim(id).not_run(reason))

    def done(self) -> list[Check]:
        """Return the checks in the order of the claims.

        Claims that nobody judged are unobtainable where that is expected, not run where their data is absent.

        Raises
        ------
        ConvexlawError
            A claim without a check.
        """
        for claim in self._claims.values():
            if claim.id in self._checks:
                continue
            if claim.needs in self._missing:
                self._checks[claim.id] = claim.not_run(self._missing[claim.needs])
            elif claim.expected == "unobtainable":
                self._checks[claim.id] = claim.unobtainable()
            else:
                raise ConvexlawError(f"claim {claim.id} was not checked: {claim.claim}")
        return [self._checks[id] for id in self._claims]

    def _claim(self, id: str) -> Claim:
        if id not in self._claims:
            raise ConvexlawError(f"{id!r} is no claim of this paper: {', '.join(self._claims)}")
        return self._claims[id]

    def _add(self, id: str, check: Check) -> None:
        if id in self._checks:
            raise ConvexlawError(f"claim {id} was checked twice")
        self._checks[id] = check


def show(value: Value, digits: int = 6) -> str:
    """Write a value of a check for people."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(show(v, digits) for v in value)
    return f"{value:.{digits}g}"


def _value(x: Any) -> Value:
    """Numbers as float, sequences as tuples of float, everything else as text."""
    if x is None or isinstance(x, str):
        return x
    if isinstance(x, bool):
        return "yes" if x else "no"
    if isinstance(x, Iterable):
        return tuple(float(v) for v in x)
    if hasattr(x, "item"):
        x = x.item()
        return _value(x)
    return float(x)


def _numbers(x: Value) -> tuple[float, ...]:
    if x is None or isinstance(x, str):
        raise ConvexlawError(f"a number is compared with {x!r}: give numbers, or a qualitative claim")
    return x if isinstance(x, tuple) else (x,)


def _agree(
    kind: Kind,
    found: tuple[float, ...],
    wanted: tuple[float, ...],
    tolerance: float,
    relative: bool,
    error: float | None,
) -> bool:
    if len(found) != len(wanted) and len(wanted) != 1:
        raise ConvexlawError(f"{len(found)} numbers are compared with {len(wanted)}")
    wanted = wanted * len(found) if len(wanted) == 1 else wanted
    for f, w in zip(found, wanted, strict=True):
        room = tolerance * (abs(w) if relative else 1.0)
        if kind == "monte-carlo":
            room = tolerance * (error or 0.0)
        # a NaN fails every comparison
        if f == w and math.isinf(w):
            continue
        good = {"upper": f <= w + room, "lower": f >= w - room}.get(kind, abs(f - w) <= room)
        if not good:
            return False
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value
