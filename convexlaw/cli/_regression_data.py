"""Tables for a regression: CSV of any separator, compressed or not, and parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from convexlaw.errors import ConvexlawError

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = ",;\t|"


def read_table(path: Path) -> pd.DataFrame:
    """Read a table.

    Parameters
    ----------
    path : pathlib.Path
        Its suffix tells the format: .parquet, else text with a header and one of the separators , ; tab |, in
        UTF-8, UTF-16 with its mark, or else Windows' cp1252.

    Returns
    -------
    DataFrame

    Raises
    ------
    ConvexlawError
        No such file, not a table, one column only.
    """
    import lzma
    import zipfile

    import pandas as pd

    if not path.is_file():
        raise ConvexlawError(f"{path} does not exist; give a CSV, TSV or parquet file")
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in (".parquet", ".pq"):
        try:
            return pd.read_parquet(path)
        except ImportError:
            raise ImportError("parquet files need pyarrow: pip install 'convexlaw[parquet]'") from None
        except (ValueError, OSError) as error:
            raise ConvexlawError(f"{path} cannot be read as parquet ({error})") from None
    if suffixes and suffixes[-1] in (".xlsx", ".xls", ".ods"):
        raise ConvexlawError(f"{path} is a spreadsheet: save the sheet as CSV")
    try:
        try:
            frame = _read_text(path, _encoding(path))
        except UnicodeDecodeError:
            frame = _read_text(path, "cp1252")
    except (ValueError, OSError, EOFError, IndexError, zipfile.BadZipFile, lzma.LZMAError) as error:
        raise ConvexlawError(
            f"{path} cannot be read as a table ({error}); give a CSV with a header"
        ) from None
    if frame.empty or frame.shape[1] < 2:
        raise ConvexlawError(
            f"{path} has {frame.shape[0]} rows and {frame.shape[1]} columns: a regression needs a "
            "response and a feature, separated by commas, semicolons, tabs or |"
        )
    frame.columns = [str(c).strip() for c in frame.columns]
    return frame


def _encoding(path: Path) -> str:
    with path.open("rb") as handle:
        return "utf-16" if handle.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _read_text(path: Path, encoding: str) -> pd.DataFrame:
    import pandas as pd

    lines = _head(path, encoding)
    separator = _separator(lines)
    decimal = "," if separator == ";" and _decimal_commas(lines) else "."
    return pd.read_csv(
        path, sep=separator, decimal=decimal, encoding=encoding, low_memory=False, skipinitialspace=True
    )


def _head(path: Path, encoding: str) -> list[str]:
    """First lines of a text file, unpacked."""
    import bz2
    import gzip
    import lzma
    import zipfile

    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as packed:
            lines = [packed.readline().decode(encoding) for _ in range(30)]
    else:
        opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix, open)
        with opener(path, "rt", encoding=encoding) as handle:
            lines = [handle.readline() for _ in range(30)]
    return [line for line in lines if line.strip()]


def _separator(lines: list[str]) -> str:
    """Return the separator that parts the header, outside quotes, most often; commas without any."""
    import csv

    if not lines:
        raise ValueError("it is empty")
    counts = {s: len(next(csv.reader(lines[:1], delimiter=s))) for s in _SEPARATORS}
    return max(_SEPARATORS, key=lambda s: counts[s])


def _decimal_commas(lines: list[str]) -> bool:
    """Whether cells parted by semicolons look like 1,5."""
    import re

    cells = [cell.strip() for line in lines[1:] for cell in line.split(";")]
    return any(re.fullmatch(r"[-+]?\d+,\d+", cell) for cell in cells)
