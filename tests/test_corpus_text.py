from __future__ import annotations

import sysconfig
from pathlib import Path

import numpy as np
import pytest

from convexlaw.errors import ConvexlawError
from convexlaw.simulations.corpus import VOCABULARY, SequenceOrder, load_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("text")
    for k in range(60):
        (root / f"part{k % 3}").mkdir(exist_ok=True)
        (root / f"part{k % 3}" / f"f{k}.py").write_text(f"def f{k}(x):\n    return x + {k}\n" * 5)
    return root


def test_standard_library_is_stable_and_split_by_file():
    first, second = load_corpus(), load_corpus()
    assert first.sha256 == second.sha256
    np.testing.assert_array_equal(first.train, second.train)
    assert not set(first.train_files) & set(first.validation_files)
    assert list(first.train_files) == sorted(first.train_files)
    assert first.train.size > 3_000_000
    assert first.validation.size > 50_000
    assert max(first.train.max(), first.validation.max()) < VOCABULARY
    # what a file holds is what its tokens say
    name = first.validation_files[0]
    raw = (Path(sysconfig.get_path("stdlib")) / name).read_bytes().replace(b"\r\n", b"\n")
    ascii_only = bytes(b if 0 < b < 127 else 127 for b in raw)
    assert first.validation[: len(ascii_only)].tobytes() == ascii_only
    assert first.validation[len(ascii_only)] == 0


def test_machine_specific_files_are_left_out():
    corpus = load_corpus()
    names = [*corpus.train_files, *corpus.validation_files]
    bad = [
        n for n in names if "_sysconfigdata" in n or "site-packages" in n or "/test/" in n or "config-" in n
    ]
    assert bad == []


def test_hash_sees_content_and_names_and_split_ignores_other_files(folder: Path, tmp_path: Path):
    base = load_corpus(folder)
    files = sorted(folder.rglob("*.py"))
    for path in files:
        target = tmp_path / path.relative_to(folder)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes())
    assert load_corpus(tmp_path).sha256 == base.sha256
    (tmp_path / "part0" / "new.py").write_text("x = 1\n")
    grown = load_corpus(tmp_path)
    assert grown.sha256 != base.sha256
    assert set(base.validation_files) <= set(grown.validation_files) | {"part0/new.py"}
    assert set(base.train_files) <= set(grown.train_files)


def test_line_ends_do_not_matter(folder: Path, tmp_path: Path):
    for path in folder.rglob("*.py"):
        target = tmp_path / path.relative_to(folder)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_corpus(tmp_path).sha256 == load_corpus(folder).sha256


def test_sequences_do_not_depend_on_how_they_are_drawn(folder: Path):
    tokens = load_corpus(folder).train
    order = SequenceOrder(tokens, context=16, seed=3)
    count = 3 * len(order) + 5
    whole = order.take(0, count)
    sizes = np.random.default_rng(0).integers(1, 40, size=200)
    position, pieces = 0, []
    for size in sizes:
        take = min(int(size), count - position)
        pieces.append(SequenceOrder(tokens, context=16, seed=3).take(position, take))
        position += take
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert not np.array_equal(SequenceOrder(tokens, context=16, seed=4).take(0, count), whole)


def test_each_pass_reads_every_window_once_in_a_new_order(folder: Path):
    tokens = load_corpus(folder).train
    order = SequenceOrder(tokens, context=16, seed=0)
    windows = {tokens[i : i + 17].tobytes() for i in range(0, 16 * len(order), 16)}
    first, second = (order.take(k * len(order), len(order)) for k in (0, 1))
    for one in (first, second):
        assert {row.astype(np.uint8).tobytes() for row in one} == windows
    assert not np.array_equal(first, second)


def test_validation_windows_are_fixed_and_spread(folder: Path):
    corpus = load_corpus(folder)
    few = corpus.validation_windows(3, 8)
    assert few.shape == (3, 9)
    np.testing.assert_array_equal(few[0], corpus.validation[:9])
    available = (corpus.validation.size - 1) // 8
    assert corpus.validation_windows(10**6, 8).shape == (available, 9)


def test_single_files_and_lists_of_files(folder: Path):
    files = sorted(folder.rglob("*.py"))
    corpus = load_corpus(files)
    assert len(corpus.train_files) + len(corpus.validation_files) == len(files)
    for count in (2, 3, 4):
        few = load_corpus(files[:count])
        assert min(len(few.train_files), len(few.validation_files)) >= 1
        assert len(few.train_files) + len(few.validation_files) == count
    one = load_corpus(files[0])
    text = files[0].read_bytes()
    assert np.concatenate([one.train, one.validation]).tobytes() == text + b"\0"
    assert one.validation.size == round(0.05 * (len(text) + 1))


def test_errors_name_what_is_wrong(folder: Path, tmp_path: Path):
    with pytest.raises(ConvexlawError, match="no text files"):
        load_corpus(tmp_path)
    with pytest.raises(ConvexlawError, match="strictly between 0 and 1"):
        load_corpus(folder, validation=1.0)
    with pytest.raises(ConvexlawError, match="no such file"):
        load_corpus([tmp_path / "gone.py"])
    with pytest.raises(ConvexlawError, match="fewer than one sequence"):
        SequenceOrder(np.zeros(10, dtype=np.uint8), context=64, seed=0)
    with pytest.raises(ConvexlawError, match="context = 0"):
        SequenceOrder(np.zeros(10, dtype=np.uint8), context=0, seed=0)
