"""A ledger of finished pieces of work: one JSON line each, whole or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from convexlaw.errors import ConvexlawError

__all__ = ["Ledger"]

_HEADER = {"convexlaw_ledger": 1}


class Ledger:
    """Append-only file of records by key. A process that dies leaves at most one cut line, which is dropped.

    Parameters
    ----------
    path : path-like or None
        None keeps everything in memory.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self.records: dict[str, dict[str, Any]] = {}
        if self.path is None:
            return
        if self.path.is_dir():
            raise ConvexlawError(f"{self.path} is a folder: give the ledger the name of a file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size:
            self._read()
        else:
            self._append(_HEADER)

    def _read(self) -> None:
        assert self.path is not None
        text = self.path.read_bytes()
        whole = text.rfind(b"\n") + 1
        lines = text[:whole].decode("utf-8", errors="replace").splitlines()
        try:
            header = json.loads(lines[0]) if lines else {}
            known = isinstance(header, dict) and header.get("convexlaw_ledger") == 1
        except ValueError:
            known = False
        if not known:
            raise ConvexlawError(
                f"{self.path} is not a ledger of this package: give another path, or remove it"
            )
        for number, line in enumerate(lines[1:], start=2):
            try:
                record = json.loads(line)
                self.records[record["key"]] = record["value"]
            except (ValueError, KeyError, TypeError):
                raise ConvexlawError(
                    f"{self.path}, line {number}: not a record; the file was edited: remove that line"
                ) from None
        if whole < len(text):
            os.truncate(self.path, whole)

    def _append(self, value: dict[str, Any]) -> None:
        assert self.path is not None
        line = (json.dumps(value) + "\n").encode()
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(handle, line)
            os.fsync(handle)
        finally:
            os.close(handle)

    def add(self, key: str, value: dict[str, Any]) -> None:
        """Record a finished piece; it is on disk when this returns."""
        self.records[key] = value
        if self.path is not None:
            self._append({"key": key, "value": value})
