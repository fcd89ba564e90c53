"""Every reward component once for each set of needs that it has, a problem that suits all, and a judge that answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chat_replies import said
from flaky_server import flaky

from rstar2_env.problems import Problem
from rstar2_env.rewards import REWARDS

_REQUIRED = {
    "cosine_length": {"longest": 100, "of": "text"},
    "overlong": {"limit": 100},
    "router": {"by": "problem", "routes": {"sums": "outcome"}},
}
_MORE: list[tuple[str, dict[str, Any]]] = [
    ("cosine_length", {"longest": 100}),
    ("exploration", {"how": "creativity"}),
    ("laser", {"mode": "d"}),
    ("router", {"by": "problem", "routes": {"sums": "rubric"}}),
    ("tool_hierarchy", {"score": "f1"}),
]
MADE: list[tuple[str, dict[str, Any]]] = [*((name, _REQUIRED.get(name, {})) for name in REWARDS), *_MORE]
"""Names and options."""

PROBLEM = Problem(
    "p",
    "Which?",
    "B",
    "sums",
    {
        "files": {"a.py": "a = 1\n"},
        "fixed": {"a.py": "a = 2\n"},
        "rubric": [{"criterion": "chooses", "points": 2}, {"criterion": "argues", "points": 1}],
    },
)


@contextmanager
def judge_server() -> Iterator[str]:
    """A judge behind an endpoint on loopback, as an option writes it; it finds everything right."""
    with flaky(lambda asked, number: (200, said("10 CORRECT YES"))) as server:
        yield f"(model:url={server.address}/v1,model=small,retries=0)"
