"""Which format a file is in, by its content alone."""

from __future__ import annotations

from convexlaw.runs._raw import RawRun, UnknownFormat, printable
from convexlaw.runs._source import Source
from convexlaw.runs.csv import read_delimited
from convexlaw.runs.mlflow import is_metric_file, read_metric_file
from convexlaw.runs.parquet import read_parquet
from convexlaw.runs.records import looks_like_lines, read_json, read_lines
from convexlaw.runs.tensorboard import is_event_file, read_events

__all__ = ["read_source", "recognise"]

_OTHERS = (
    (b"PK\x03\x04", "a zip archive (or a spreadsheet)", "unpack it, or save the sheet as CSV"),
    (b"\xfd7zXZ\x00", "compressed with xz", "unpack it"),
    (b"BZh", "compressed with bzip2", "unpack it"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it"),
    (b"SQLite format 3\x00", "an SQLite database", "export the metrics as CSV, one run a file"),
    (b"\x89HDF", "an HDF5 file", "save the table as CSV or parquet"),
    (b"\x80\x04", "a pickle", "pickles are never opened: save the table as CSV"),
    (b"\x93NUMPY", "a numpy array", "save a table with the columns step, lr, loss as CSV"),
)


def recognise(head: bytes) -> str:
    """Return the format of content that begins with ``head``.

    Returns
    -------
    str
        ``"parquet"``, ``"tensorboard"``, ``"jsonl"``, ``"json"``, ``"mlflow"`` or ``"text"``.
    """
    if head.startswith(b"PAR1"):
        return "parquet"
    if is_event_file(head):
        return "tensorboard"
    start = head[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start in (b"{", b"["):
        return "jsonl" if looks_like_lines(head) else "json"
    return "mlflow" if is_metric_file(head) else "text"


_READERS = {
    "parquet": read_parquet,
    "tensorboard": read_events,
    "jsonl": read_lines,
    "json": read_json,
    "mlflow": read_metric_file,
    "text": read_delimited,
}


def read_source(source: Source) -> list[RawRun]:
    """Read one source in whatever format it is.

    Raises
    ------
    UnknownFormat
        As it says.
    ConvexlawError
        A log that cannot be read whole.
    """
    head = source.head()
    if not head.strip(b"\xef\xbb\xbf \t\r\n\0"):
        raise UnknownFormat(f"{source.label}: the file is empty")
    for magic, what, advice in _OTHERS:
        if head.startswith(magic):
            raise UnknownFormat(f"{source.label}: this is {what}; {advice}")
    kind = recognise(head)
    if kind == "text" and _binary(head):
        raise UnknownFormat(
            f"{source.label}: binary content in no format known here (CSV, JSON, parquet, TensorBoard, "
            f"MLflow)"
        )
    runs = _READERS[kind](source)
    for run in runs:
        run.listed = source.listed
        run.path = str(source.path) if source.path is not None else ""
        if not run.name:
            run.name = printable(source.name) or "run"
    return runs


def _binary(head: bytes) -> bool:
    """Tell binary content from text in UTF-8, UTF-16 or an 8-bit code page."""
    sample = head[:8192]
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")) or sample.count(b"\0") > 0.3 * len(sample):
        return sample.count(b"\0") > 0.7 * len(sample)
    odd = sum(1 for byte in sample if byte < 32 and byte not in (9, 10, 12, 13))
    return odd > 0.08 * len(sample)
