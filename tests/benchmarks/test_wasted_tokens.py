"""``benchmarks/wasted_tokens.py``: of a step of which most groups were rejected, nearly all that is computed trains."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest


def test_at_most_a_quarter_is_computed_beside_what_trains(benchmark_named: Callable[[str], ModuleType]) -> None:
    pytest.importorskip("trl", reason="needs the extra 'train'")
    figures = benchmark_named("wasted_tokens").main(["--scale", "128"])
    assert figures["one process"] <= 1.25
    assert figures["8 processes"] <= 1.25
    assert figures["TRL's layout"] > 6
