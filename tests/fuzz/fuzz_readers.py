"""Feed damaged logs to ``read_runs``: every one must end in a RunTable or a ConvexlawError.

``python tests/fuzz/fuzz_readers.py --seconds 1200 --seed 1 --save crashes`` takes 20 minutes.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from convexlaw import read_runs
from convexlaw.errors import ConvexlawError

LOGS = Path(__file__).resolve().parent.parent / "data" / "logs"

TOKENS = [
    *(
        b"",
        b"nan",
        b"NaN",
        b"-inf",
        b"Infinity",
        b"1e999",
        b"-1",
        b"0.5",
        b"1e308",
        b"-1e308",
        b"5e-324",
        b"1e15",
    ),
    *(
        b"99999999999999999999999",
        b"9007199254740993",
        b"1_000",
        b"0x10",
        b"True",
        b"None",
        b"1,5",
        b"1.000,5",
        b"#",
    ),
    *(
        b'"',
        b'""',
        b"'",
        b"\n",
        b"\r",
        b"\r\n",
        b"\t",
        b";",
        b",",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x80",
        b"\xe9",
    ),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b"null",
        b"[" * 3000,
        b'{"a":' * 2000,
        b"9" * 5000,
        b"\xf0\x9f\x98\x80",
        b" - ",
        b"__MIN",
    ),
    *(
        b"step",
        b"loss",
        b"run",
        b"split",
        b"val_loss",
        b"# steps: 5\n",
        b"\x1f\x8b",
        b"PAR1",
        b"brain.Event:2",
    ),
]


def seeds() -> dict[str, bytes]:
    """Small whole logs of every format."""
    rows = [(10 * k, 3.0 / (1 + k) ** 0.3, 1e-3 * min(1, (k + 1) / 5)) for k in range(40)]
    csv = "step,loss,lr\n" + "".join(f"{s},{a},{b}\n" for s, a, b in rows)
    resumed = csv + "".join(f"{s},{a},{b}\n" for s, a, b in rows[20:])
    european = "\ufeffstep;loss;lr\r\n" + "".join(f"{s};{a};{b}\r\n".replace(".", ",") for s, a, b in rows)
    chart = '"Step","a - b - train/loss","a - b - train/loss__MIN","a - b - train/loss__MAX"\n' + "".join(
        f'"{s}","{a}","{a - 0.1}","{a + 0.1}"\n' for s, a, _ in rows
    )
    history = "_step,_runtime,trainer/global_step,train/loss,val/loss,lr-AdamW\n" + "".join(
        f"{k},{k}.5,{s},{a if k % 2 else ''},{a if k % 7 == 0 else ''},{'' if k % 2 else b}\n"
        for k, (s, a, b) in enumerate(rows)
    )
    state = {
        "log_history": [{"step": s + 10, "loss": a, "learning_rate": b, "epoch": 0.1} for s, a, b in rows],
        "max_steps": 400,
    }
    state["log_history"].append({"step": 400, "train_loss": 2.0, "train_runtime": 1.0})
    lines = "".join(json.dumps({"step": s, "train": {"loss": a}, "lr": b}) + "\n" for s, a, b in rows)
    runs = "run,seed,step,split,loss,batch_size,tokens\n" + "".join(
        f"r{k % 2},{k % 3},{s},{'val' if k % 5 == 0 else 'train'},{a},8,{s * 8 * 512}\n"
        for k, (s, a, _) in enumerate(rows)
    )
    columns = json.dumps(
        {
            "history": {"train": {"iter": [r[0] for r in rows], "train_loss": [r[1] for r in rows]}},
            "config": {"a": 1},
        }
    )
    metric = "".join(f"{1_700_000_000_000 + s} {a} {s}\n" for s, a, _ in rows)
    found = {
        "plain.csv": csv.encode(),
        "resumed.csv": resumed.encode(),
        "european.csv": european.encode(),
        "chart.csv": chart.encode(),
        "history.csv": history.encode(),
        "trainer_state.json": json.dumps(state).encode(),
        "log.jsonl": lines.encode(),
        "runs.tsv": runs.replace(",", "\t").encode(),
        "columns.json": columns.encode(),
        "loss": metric.encode(),
        "utf16.csv": csv.encode("utf-16"),
        "comments.csv": (f"# steps: 40\n# schedule: wsd:steps=40\n{csv}# again\n{csv}").encode(),
    }
    for path in sorted(LOGS.rglob("*")):
        if path.is_file() and path.suffix not in (".py", ".md") and not {"params", "tags"} & set(path.parts):
            name = path.relative_to(LOGS).as_posix().replace("/", "__")
            found[name.replace("mlflow__0__run__metrics__", "")] = path.read_bytes()
    try:
        import pandas as pd

        out = io.BytesIO()
        pd.read_csv(io.StringIO(csv)).to_parquet(out)
        found["log.parquet"] = out.getvalue()
    except ImportError:
        pass
    return found


def damage(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Change a log in one to four ways."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        size = len(data)
        at = rng.randrange(size + 1)
        to = min(size, at + rng.choice((1, 2, 5, 20, 200)))
        way = rng.randrange(9)
        if way == 0 and size:
            bits = bytearray(data)
            for _ in range(rng.choice((1, 1, 3, 10))):
                bits[rng.randrange(size)] = rng.randrange(256)
            data = bytes(bits)
        elif way == 1:
            data = data[:at]
        elif way == 2:
            data = data[:at] + data[to:]
        elif way == 3:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif way == 4:
            data = data[:at] + data[at:to] * rng.choice((2, 3, 50)) + data[to:]
        elif way == 5:
            other = rng.choice(others)
            data = data[:at] + other[rng.randrange(len(other) + 1) :]
        elif way == 6:
            # put a nasty word in the place of a number
            ends = [k for k, c in enumerate(data[:20000]) if c in b',;\t\n" :}']
            if len(ends) > 2:
                k = rng.randrange(len(ends) - 1)
                data = data[: ends[k] + 1] + rng.choice(TOKENS) + data[ends[k + 1] :]
        elif way == 7:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = b"\n".join(lines)
        else:
            data = bytes(rng.randrange(256) for _ in range(rng.randrange(200))) + data[at:]
    return gzip.compress(data, 1)[: rng.choice((None, None, -3))] if rng.random() < 0.05 else data


def try_one(path: Path, rng: random.Random) -> str:
    """Read one file and use the table; return how it ended."""
    options = {
        "duplicates": rng.choice(("later", "earlier", "mean", "error")),
        "na": rng.choice(("drop", "drop", "error")),
        "loss_scale": rng.choice((1.0, 1.0, 8.0)),
    }
    try:
        table = read_runs(path if rng.random() < 0.7 else path.parent, **options)
        str(table)
        table.summary()
        table.drop_spikes()
        for run in table.runs[:3]:
            table.curve(run)
            table.notes_for(run)
            if table.has_lr(run) and table.last_step(run) < 100_000:
                table.dense_lr(run)
        table.select(table.runs[:1])
    except ConvexlawError as error:
        if len(str(error)) < 10:
            raise AssertionError(f"an error that says nothing: {error!r}") from error
        return "error"
    return "table"


def fuzz(
    seconds: float, seed: int, save: Path | None = None, most: int | None = None
) -> tuple[Counter[str], list[str], float]:
    """Damage and read logs until the time is over.

    Returns
    -------
    counts : Counter
        How many ended in a table, in an error, or crashed.
    crashes : list of str
        Tracebacks.
    slowest : float
        Seconds of the slowest reading.
    """
    rng = random.Random(seed)
    whole = seeds()
    names, contents = list(whole), list(whole.values())
    counts: Counter[str] = Counter()
    crashes: list[str] = []
    slowest = 0.0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        while time.monotonic() < end and (most is None or sum(counts.values()) < most):
            name = rng.choice(names)
            data = damage(whole[name], contents, rng)
            home = Path(folder) / "case"
            home.mkdir(exist_ok=True)
            path = home / rng.choice(
                (name, "log.csv", "x y'\".txt", "trainer_state.json", "events.out.tfevents.1")
            )
            path.write_bytes(data)
            start = time.monotonic()
            try:
                counts[try_one(path, rng)] += 1
            except Exception:
                counts["crash"] += 1
                crashes.append(f"{name}\n{traceback.format_exc()}")
                if save is not None:
                    save.mkdir(parents=True, exist_ok=True)
                    (save / f"{len(crashes)}-{path.name}").write_bytes(data)
            slowest = max(slowest, time.monotonic() - start)
            path.unlink()
    return counts, crashes, slowest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    counts, crashes, slowest = fuzz(arguments.seconds, arguments.seed, arguments.save)
    for crash in crashes[:20]:
        print(crash, file=sys.stderr)
    print(
        json.dumps(
            {**counts, "cases": sum(counts.values()), "slowest_s": round(slowest, 3), "seed": arguments.seed}
        )
    )
    return bool(crashes)


if __name__ == "__main__":
    raise SystemExit(main())
