"""Real text that every machine has: the sources of the Python standard library, one token a byte."""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["VOCABULARY", "Corpus", "SequenceOrder", "load_corpus"]

VOCABULARY = 128
"""Number of tokens: the bytes of ASCII; all others are one of them."""
_SEPARATOR = 0  # between files; no source file holds a NUL
_OTHER = 127  # every byte outside ASCII
# Folders that differ between distributions and versions, tests, and tables rather than prose.
_SKIPPED = frozenset(
    "site-packages dist-packages __pycache__ __phello__ test tests idle_test idlelib encodings pydoc_data "
    "lib2to3 distutils tkinter turtledemo ensurepip lib-dynload".split()
)


@dataclass(frozen=True)
class Corpus:
    """Tokens of a text collection, split by file into training and validation.

    Attributes
    ----------
    train : ndarray of uint8, shape (n_train,)
        Training tokens, files in the order of ``train_files``, a 0 after each file.
    validation : ndarray of uint8, shape (n_validation,)
        Validation tokens, built likewise from ``validation_files``.
    train_files, validation_files : tuple of str
        File names relative to the folder they were read from; the two are disjoint.
    sha256 : str
        Hash of every file name and its bytes, in order, with the side it went to.
    python : str
        Version of the running Python (it decides the standard library's text).
    source : str
        What was read, in words.
    """

    train: NDArray[np.uint8] = field(repr=False)
    validation: NDArray[np.uint8] = field(repr=False)
    train_files: tuple[str, ...] = field(repr=False)
    validation_files: tuple[str, ...] = field(repr=False)
    sha256: str
    python: str
    source: str

    def __str__(self) -> str:
        return (
            f"Corpus: {self.source}\n"
            f"  train       {self.train.size:>10,} tokens in {len(self.train_files)} files\n"
            f"  validation  {self.validation.size:>10,} tokens in {len(self.validation_files)} files\n"
            f"  sha256 {self.sha256}"
        )

    def validation_windows(self, count: int, context: int) -> NDArray[np.int64]:
        """Give a fixed set of validation sequences, evenly spaced over the validation tokens.

        Parameters
        ----------
        count : int
            Number of sequences wanted; fewer come back where the validation text is shorter.
        context : int
            Tokens a sequence is trained on.

        Returns
        -------
        ndarray of int64, shape (min(count, available), context + 1)
        """
        windows = _windows(self.validation, context, "validation")
        take = min(int(count), len(windows))
        if take < 1:
            raise ConvexlawError(
                f"{count} validation sequences: at least one is needed; pass eval_sequences >= 1"
            )
        chosen = np.linspace(0, len(windows) - 1, take).round().astype(np.int64)
        return windows[chosen].astype(np.int64)


class SequenceOrder:
    """The endless stream of training sequences of one seed.

    Sequence ``i`` depends on the seed, the context and the text alone, never on the batch sizes: runs of one
    seed with different batch schedules read the same sequences in the same order. Every pass over the text is
    a fresh permutation of its non-overlapping windows.

    Parameters
    ----------
    tokens : ndarray of uint8, shape (n,)
        Training tokens.
    context : int
        Tokens a sequence is trained on; a sequence has one more.
    seed : int
        Seed of the order.
    """

    def __init__(self, tokens: NDArray[np.uint8], context: int, seed: int) -> None:
        self._windows = _windows(tokens, context, "training")
        self._seed = int(seed)
        self._pass = -1
        self._permutation = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        """Sequences in one pass over the text."""
        return len(self._windows)

    def take(self, start: int, count: int) -> NDArray[np.int64]:
        """Sequences ``start`` to ``start + count - 1`` of the stream.

        Returns
        -------
        ndarray of int64, shape (count, context + 1)
        """
        pieces = []
        position, end = int(start), int(start) + int(count)
        while position < end:
            number, offset = divmod(position, len(self))
            stop = min(len(self), offset + end - position)
            if number != self._pass:
                self._permutation = np.random.default_rng([self._seed, number]).permutation(len(self))
                self._pass = number
            pieces.append(self._windows[self._permutation[offset:stop]])
            position += stop - offset
        if not pieces:
            return np.empty((0, self._windows.shape[1]), dtype=np.int64)
        return np.concatenate(pieces).astype(np.int64)


def load_corpus(
    source: str | Path | Iterable[str | Path] | None = None, *, validation: float = 0.05
) -> Corpus:
    """Read a text collection as byte tokens and split it by file.

    A file goes to the validation side when the hash of its name says so, so that neither the number of files
    nor their order moves a file from one side to the other. Of a single file the end is held out.

    Parameters
    ----------
    source : path or iterable of paths, optional
        A folder (its ``*.py``, ``*.md``, ``*.rst`` and ``*.txt`` files, recursively), or files. Without it
        the sources of the running Python's standard library: tests, tables and parts that distributions leave
        out are skipped.
    validation : float
        Share of the files held out, in (0, 1); of several files at least one is on each side.

    Returns
    -------
    Corpus
        Tokens 1 to 126 are ASCII bytes, 127 stands for any other byte, 0 separates files; line ends are
        LF.

    Raises
    ------
    ConvexlawError
        Where there is nothing to read.

    Examples
    --------
    >>> corpus = load_corpus()
    >>> bool(set(corpus.train_files) & set(corpus.validation_files))
    False
    >>> int(corpus.train.max()) < VOCABULARY
    True
    """
    if not 0 < validation < 1:
        raise ConvexlawError(
            f"validation = {validation}: the share of held-out files lies strictly between 0 and 1"
        )
    named, words = _files(source)
    places = {name: int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) for name, _ in named}
    held_out = {name for name, place in places.items() if place < validation * 2**32}
    if len(named) > 1:  # few files: neither side may be empty
        held_out = (held_out or {min(named, key=lambda item: places[item[0]])[0]}) - (
            {max(named, key=lambda item: places[item[0]])[0]}
        )
    digest = hashlib.sha256()
    sides: tuple[list[Any], list[Any]] = ([], [])
    for name, path in named:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{int(name in held_out)}\0{len(content)}\0".encode())
        digest.update(content)
        raw = np.frombuffer(content, dtype=np.uint8)
        tokens = np.where((raw > 0) & (raw < _OTHER), raw, _OTHER).astype(np.uint8)
        sides[name in held_out].append(np.append(tokens, np.uint8(_SEPARATOR)))
    if len(named) == 1:
        whole = sides[0][0]
        at = whole.size - max(1, round(validation * whole.size))
        sides = ([whole[:at]], [whole[at:]])
    return Corpus(
        train=np.concatenate(sides[0]),
        validation=np.concatenate(sides[1]),
        train_files=tuple(name for name, _ in named if name not in held_out),
        validation_files=tuple(name for name, _ in named if name in held_out),
        sha256=digest.hexdigest(),
        python=platform.python_version(),
        source=words,
    )


def _files(source: str | Path | Iterable[str | Path] | None) -> tuple[list[tuple[str, Path]], str]:
    """Named files in a fixed order, and what they are."""
    if source is None:
        root = Path(sysconfig.get_path("stdlib"))
        found = [
            path
            for path in root.rglob("*.py")
            # _sysconfigdata holds paths and flags of the machine that built this Python
            if not _SKIPPED.intersection(path.relative_to(root).parts)
            and not path.name.startswith("_sysconfigdata")
            and not path.relative_to(root).parts[0].startswith("config-")
        ]
        words = f"Python {platform.python_version()} standard library"
    elif isinstance(source, str | Path):
        root = Path(source)
        if root.is_dir():
            endings = {".py", ".md", ".rst", ".txt"}
            found = [path for path in root.rglob("*") if path.suffix in endings and path.is_file()]
        else:
            root, found = root.parent, [root] if root.is_file() else []
        words = str(source)
    else:
        found = [Path(path) for path in source]
        missing = [path for path in found if not path.is_file()]
        if missing:
            raise ConvexlawError(f"{missing[0]}: no such file; every entry of a corpus list must be a file")
        named = sorted((path.as_posix(), path) for path in found)
        return named, f"{len(named)} files"
    if not found:
        raise ConvexlawError(
            f"{words}: no text files there (*.py, *.md, *.rst, *.txt); give a folder or files of text"
        )
    return sorted((path.relative_to(root).as_posix(), path) for path in found), words


def _windows(tokens: NDArray[np.uint8], context: int, label: str) -> NDArray[np.uint8]:
    """View of the non-overlapping windows of context + 1 tokens (neighbours share one token)."""
    if context < 1:
        raise ConvexlawError(f"context = {context}: a sequence needs at least one token; pass context >= 1")
    count = (tokens.size - 1) // context
    if count < 1:
        raise ConvexlawError(
            f"context = {context}: the {label} text has {tokens.size} tokens, fewer than one sequence; "
            "give more text or a shorter context"
        )
    return np.lib.stride_tricks.sliding_window_view(tokens, context + 1)[:: int(context)][:count]
