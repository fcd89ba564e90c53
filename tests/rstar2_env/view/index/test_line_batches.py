"""Files of lines are read as far as they are whole, in pieces, from any place where a piece ended."""

from __future__ import annotations

import gzip
import random

import pytest

from rstar2_env.view.index import line_batches
from rstar2_env.view.index.line_batches import line_at, read_batches

LINES = [f"line {number} {'x' * (number * 37 % 500)}".encode() for number in range(700)]


def write(path, members):
    data = b"".join(gzip.compress(member, mtime=0) if path.suffix == ".gz" else member for member in members)
    path.write_bytes(data)
    return data


@pytest.fixture(params=["x.jsonl", "x.jsonl.gz"])
def file(request, tmp_path):
    return tmp_path / request.param


def members_of(lines, size):
    return [b"".join(line + b"\n" for line in lines[at : at + size]) for at in range(0, len(lines), size)]


def read(path, start=0):
    lines, after = [], start
    for piece in read_batches(path, start):
        lines += piece.lines
        after = piece.after if piece.after is not None else after
    return lines, after


def test_every_line_is_found_again_at_its_place(file):
    write(file, members_of(LINES, 23))
    lines, _ = read(file)
    assert [line for _, line in lines] == LINES
    for place, line in random.Random(0).sample(lines, 60):
        assert line_at(file, place) == line


def test_a_broken_end_is_left_out_and_read_once_it_is_whole(file):
    data = write(file, members_of(LINES[:60], 7))
    rng = random.Random(1)
    for cut in sorted(rng.sample(range(len(data)), 40)):
        file.write_bytes(data[:cut])
        first, after = read(file)
        whole = [line for piece in read_batches(file, 0) if piece.after is not None for _, line in piece.lines]
        assert whole == LINES[: len(whole)]
        file.write_bytes(data)
        rest, end = read(file, after)
        assert end == len(data)
        durable = len(whole) if file.suffix == ".gz" else len(first)
        assert [line for _, line in rest] == LINES[durable:60]


def test_a_damaged_member_ends_what_is_read_and_is_told(tmp_path):
    file = tmp_path / "x.jsonl.gz"
    data = write(file, members_of(LINES[:30], 10))
    first = len(gzip.compress(members_of(LINES[:30], 10)[0], mtime=0))
    file.write_bytes(data[: first + 20] + b"\xff" * 30 + data[first + 50 :])
    pieces = list(read_batches(file, 0))
    assert [line for piece in pieces if piece.after for _, line in piece.lines] == LINES[:10]
    assert f"byte {first} is damaged" in pieces[-1].broken


def test_a_line_that_is_too_long_is_passed_over(file, monkeypatch):
    monkeypatch.setattr(line_batches, "MOST_LINE", 1 << 20)
    # Random, so that it is as long when it is compressed.
    long = random.Random(0).randbytes(3 << 20).replace(b"\n", b" ")
    write(file, [b"a\n", long + b"\nb\n", b"c\n"])
    lines, _ = read(file)
    assert [line for _, line in lines] == [b"a", None, b"b", b"c"]
    assert lines[1][0].length == len(long)
    assert line_at(file, lines[2][0]) == b"b"


def test_one_large_member_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(line_batches, "_PIECE", 1024)
    file = tmp_path / "x.jsonl.gz"
    write(file, [b"".join(line + b"\n" for line in LINES)])
    pieces = list(read_batches(file, 0))
    assert len(pieces) > 2
    assert [piece.after for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert [line for piece in pieces for _, line in piece.lines] == LINES


def test_a_file_that_changed_gives_no_other_line(file):
    write(file, members_of(LINES[:20], 5))
    place = read(file)[0][-1][0]
    write(file, members_of(LINES[:5], 5))
    with pytest.raises(EOFError):
        line_at(file, place)
