"""TensorBoard event files (needs the extra ``tensorboard``), and the scalars that it exports as CSV."""

from __future__ import annotations

import logging
import mmap
import re
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from convexlaw._progress import progress_bar
from convexlaw.errors import ConvexlawError
from convexlaw.runs._columns import ALIASES, assign, metric_role, normal
from convexlaw.runs._raw import Floats, Ints, NotALog, RawRun, listed, plural, printable
from convexlaw.runs._source import Source

__all__ = ["is_event_file", "is_scalar_export", "read_events", "read_scalar_export"]

ROLES = ("loss", "val_loss", "lr", "batch_size", "tokens", "grad_norm")
_SHOWN_FROM = 20_000  # records: below this reading takes no time worth a bar
_LONGEST = 256 << 20  # one record
# Keras writes train/ and validation/, torch's add_scalars loss_train/ and loss_val/, with one tag in both
_PART = re.compile(
    r"(?:(.+)[_\-.])?(?:(val|valid|validation|eval|evaluation|dev)|train|training)", re.IGNORECASE
)


def is_event_file(head: bytes) -> bool:
    """Tell an event file: a record of a version event comes first."""
    return len(head) > 24 and head[4:8] == b"\0\0\0\0" and b"brain.Event:" in head[:64]


def _framing(path: Path, label: str) -> tuple[int, int]:
    """Count the records by their lengths; return (whole records, bytes left over at the end)."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _walk_records(data, label)


def _walk_records(data: mmap.mmap, label: str) -> tuple[int, int]:
    place, count, size = 0, 0, len(data)
    while place + 12 <= size:
        (length,) = struct.unpack_from("<Q", data, place)
        if length > _LONGEST:
            raise ConvexlawError(
                f"{label}: record {count + 1} claims {length} bytes; the event file is damaged, copy it again"
            )
        if place + 16 + length > size:
            break
        place += 16 + length
        count += 1
    return count, size - place


class _Loader(Protocol):
    def Load(self) -> Iterator[Any]:
        """Yield events."""


class _Counting:
    """An event loader that tells how many events have gone through it."""

    def __init__(self, loader: _Loader, advance: Callable[[float], None]) -> None:
        self._loader, self._advance = loader, advance
        self.count = 0

    def Load(self) -> Iterator[Any]:
        """Yield the events of the loader."""
        for event in self._loader.Load():
            self.count += 1
            if self.count % 1000 == 0:
                self._advance(1000)
            yield event


def read_events(source: Source) -> list[RawRun]:
    """Read one event file through tensorboard's EventAccumulator, never down-sampled, restarts kept.

    Parameters
    ----------
    source : Source
        Other event files in the same folder are further pieces of the same run.

    Raises
    ------
    ConvexlawError
        tensorboard is missing, the file is damaged, or it has no scalar of a loss.
    """
    try:
        from tensorboard.backend.event_processing import event_accumulator
    except ImportError:
        raise ConvexlawError(
            f"{source.label}: event files need tensorboard; install convexlaw[tensorboard]"
        ) from None
    path = source.plain_path()
    with tempfile.TemporaryDirectory() as folder:
        if path is None or "tfevents" not in path.name or path.name.endswith(".profile-empty"):
            # the accumulator goes by names; what was packed, piped or renamed is put under one that it takes
            data, path = source.data(), Path(folder) / "events.out.tfevents.0"
            path.write_bytes(data)
            source.forget()
        records, rest = _framing(path, source.label)
        quiet = logging.getLogger("tensorboard")
        level = quiet.level
        quiet.setLevel(logging.ERROR)
        try:
            accumulator = event_accumulator.EventAccumulator(
                str(path),
                size_guidance={"scalars": 0, "tensors": 0, "images": 1, "audio": 1, "histograms": 1},
                purge_orphaned_data=False,
            )
            count = _load(accumulator, source.name, records)
            series = _series(accumulator)
        except Exception as error:  # whatever a damaged record makes of the parser
            raise ConvexlawError(
                f"{source.label}: a record cannot be read ({printable(error)}); the file is damaged, "
                f"copy it again"
            ) from None
        finally:
            quiet.setLevel(level)
    if count < records:
        raise ConvexlawError(
            f"{source.label}: record {count + 1} of {records} fails its checksum; the file is "
            f"damaged and would be half-read, copy it again"
        )
    run = _joined(series, source)
    if rest:
        run.note(
            "cut", f"the last record is cut ({plural(rest, 'byte')}, a run still being written?): dropped"
        )
    return [run]


def _load(accumulator: Any, name: str, records: int) -> int:
    """Load all events with a progress bar where there are many; return how many there were."""
    with (
        warnings.catch_warnings(),
        progress_bar(f"reading {name}", records, None if records >= _SHOWN_FROM else False) as advance,
    ):
        warnings.simplefilter("ignore")
        counter = _Counting(accumulator._generator, advance)
        accumulator._generator = counter
        accumulator.Reload()
    return counter.count


def _series(accumulator: Any) -> dict[str, tuple[Floats, Ints, Floats]]:
    """Return tag -> (wall times, steps, values) of scalars and of tensors that the scalar plugin wrote."""
    found = {}
    for tag in accumulator.Tags()["scalars"]:
        events = accumulator.Scalars(tag)
        found[tag] = _columns(
            [e.wall_time for e in events], [e.step for e in events], [e.value for e in events]
        )
    try:
        scalar_tags = accumulator.PluginTagToContent("scalars")
    except KeyError:
        scalar_tags = {}
    for tag in accumulator.Tags()["tensors"]:
        if tag not in scalar_tags or tag in found:
            continue
        from tensorboard.util import tensor_util

        events = [(e, tensor_util.make_ndarray(e.tensor_proto)) for e in accumulator.Tensors(tag)]
        events = [(e, a) for e, a in events if a.size == 1]
        found[tag] = _columns(
            [e.wall_time for e, _ in events],
            [e.step for e, _ in events],
            [float(a.reshape(-1)[0]) for _, a in events],
        )
    return found


def _columns(times: list[float], steps: list[int], values: list[float]) -> tuple[Floats, Ints, Floats]:
    return (
        np.array(times, dtype=np.float64),
        np.array(steps, dtype=np.int64),
        np.array(values, dtype=np.float64),
    )


def _joined(series: dict[str, tuple[Floats, Ints, Floats]], source: Source) -> RawRun:
    """Put the series of the roles into rows in order of time."""
    tags = list(series)
    chosen, remarks = assign(tags, ROLES)
    if "loss" not in chosen and "val_loss" not in chosen and "lr" not in chosen:
        raise NotALog(
            f"{source.label}: no scalar of a loss among "
            f"{listed([printable(t, 40) for t in tags], 8) or 'no scalars at all'}; "
            f"tags such as {', '.join(ALIASES['loss'][:3])} are read"
        )
    times = np.concatenate([series[tags[p]][0] for p in chosen.values()])
    order = np.argsort(times, kind="stable")
    columns: dict[str, NDArray[Any]] = {
        "step": np.concatenate([series[tags[p]][1] for p in chosen.values()])[order].astype(np.float64)
    }
    part = _PART.fullmatch(source.path.parent.name) if source.path is not None else None
    if part is not None and part[2] and "loss" in chosen and not chosen.keys() & {"val_loss", "lr"}:
        if "train" not in normal(tags[chosen["loss"]]):
            chosen["val_loss"] = chosen.pop("loss")
            text = (
                f"{printable(tags[chosen['val_loss']], 40)!r} lies in a folder named {printable(part[0])!r}"
            )
            remarks.append(("columns", f"{text}: read as validation loss"))
    start = 0
    for role, place in chosen.items():
        values = series[tags[place]][2]
        column = np.full(times.size, np.nan)
        column[start : start + values.size] = values
        columns[role] = column[order]
        if role in ("loss", "val_loss"):
            said = np.zeros(times.size, dtype=bool)
            said[start : start + values.size] = np.isnan(values)
            columns[f"{role}_nan"] = said[order]
        start += values.size
    name, folder = source.name, source.path.parent.as_posix() if source.path is not None else source.name
    if part is not None and source.path is not None:
        columns["time"] = times[order]
        home = source.path.parent.parent
        own = part[1] if part[1] and metric_role(part[1]) is None else ""
        folder = (home / own).as_posix()
        name = name.rpartition("/")[0] or printable(home.resolve().name) or name
        name = f"{name}/{printable(own)}" if own else name
    run = RawRun(
        name,
        source.label,
        columns,
        "tensorboard",
        place="event",
        group=f"events:{folder}",
        notes=list(remarks),
    )
    global_step = [t for t in tags if metric_role(t) is not None and (metric_role(t) or ("",))[0] == "step"]
    if global_step:
        run.note(
            "step_column",
            f"steps are those of the events; the scalar {printable(global_step[0], 40)!r} is left aside",
        )
    return run


def is_scalar_export(header: Sequence[str]) -> bool:
    """Tell the CSV that TensorBoard's download link writes: Wall time, Step, Value."""
    return [normal(h) for h in header] == ["wall_time", "step", "value"]


def read_scalar_export(numbers: Callable[[int], Floats], label: str, name: str, home: str) -> list[RawRun]:
    """Read one exported scalar as a piece of its run; the file's name says which scalar it is.

    Parameters
    ----------
    numbers : callable
        A column's values by its place.
    label, name, home : str
        The source in messages, its name without a suffix (``run-<run>-tag-<tag>``), and its folder.

    Raises
    ------
    NotALog
        A scalar that plays no part here.
    """
    stem = name.rpartition("/")[2]
    found = re.fullmatch(r"(?:run-)?(.*?)[-_ ]?tag-(.+)", stem)
    run, tag = (found[1], found[2]) if found else ("", stem)
    role = metric_role(tag) or metric_role(tag.replace("_", "/", 1)) or metric_role(tag.rpartition("_")[2])
    if role is None or role[0] not in ROLES:
        raise NotALog(
            f"{label}: the exported scalar {printable(tag, 60)!r} plays no part here; name the file "
            f"run-NAME-tag-train_loss.csv (or "
            "val_loss, lr)"
        )
    times, steps, values = (numbers(k) for k in range(3))
    columns: dict[str, NDArray[Any]] = {"step": steps, role[0]: values, "time": times}
    columns["line"] = np.arange(2, 2 + steps.size)
    if role[0] in ("loss", "val_loss"):
        columns[f"{role[0]}_nan"] = np.isnan(values)
    title = run.strip("-_ .") or (name.rpartition("/")[0] if "/" in name else stem)
    return [RawRun(title, label, columns, "tensorboard_csv", group=f"export:{home}/{run}", place="line")]
