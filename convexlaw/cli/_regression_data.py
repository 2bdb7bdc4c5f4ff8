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
        Its suffix tells the format: .parquet, else text with a header and one of the separators , ; tab |.

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
        separator = _separator(path)
        decimal = "," if separator == ";" and _decimal_commas(path) else "."
        frame = pd.read_csv(path, sep=separator, decimal=decimal, low_memory=False, skipinitialspace=True)
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


def _head(path: Path) -> list[str]:
    """First lines of a text file, unpacked."""
    import bz2
    import gzip
    import lzma
    import zipfile

    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as packed:
            lines = [packed.readline().decode("utf-8") for _ in range(30)]
    else:
        opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix, open)
        with opener(path, "rt", encoding="utf-8-sig") as handle:
            lines = [handle.readline() for _ in range(30)]
    return [line for line in lines if line.strip()]


def _separator(path: Path) -> str:
    """Return the separator that parts the header, outside quotes, most often; commas without any."""
    import csv

    lines = _head(path)
    if not lines:
        raise ValueError("it is empty")
    counts = {s: len(next(csv.reader(lines[:1], delimiter=s))) for s in _SEPARATORS}
    return max(_SEPARATORS, key=lambda s: counts[s])


def _decimal_commas(path: Path) -> bool:
    """Whether cells parted by semicolons look like 1,5."""
    import re

    cells = [cell.strip() for line in _head(path)[1:] for cell in line.split(";")]
    return any(re.fullmatch(r"[-+]?\d+,\d+", cell) for cell in cells)
