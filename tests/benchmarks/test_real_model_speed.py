"""``benchmarks/real_model_speed.py`` on a tiny model: both sides train on the same tokens, in turns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def speed(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    pytest.importorskip("trl", reason="needs the extra 'train'")
    return benchmark_named("real_model_speed")


@pytest.mark.proof
@pytest.mark.parametrize("part", ["sft", "train"])
def test_both_sides_train_on_the_same_tokens(speed: ModuleType, part: str, tiny_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    size = ["--steps", "2", "--rows", "8", "--prompt", "12", "--own", "16", "--threads", "1"]
    found = speed.main(["--model", str(tiny_model), "--part", part, "--json", str(file), *size])[part]
    ours, plain = found["ours"], found["plain"]
    assert ours["tokens_s"] * ours["seconds"] == pytest.approx(plain["tokens_s"] * plain["seconds"])
    assert len(found["ratios"]) == 2
    assert found["ratio"] == pytest.approx(sum(found["ratios"]) / 2)
    assert 0.1 < ours["peak_gib"] < 8
    assert ours["threads"] == plain["threads"] == 1
    assert json.loads(file.read_text("utf-8"))[part]["ratio"] == found["ratio"]


def test_a_side_that_fails_says_why(speed: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="A side ended early"):
        speed.main(["--model", str(tmp_path / "absent"), "--part", "train"])
