"""Check that a part neither uses nor changes the global random states."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rstar2_env.testing.harness import require

_ADVICE = "draw from the given generator, or from an own generator with a seed"


@contextmanager
def untouched(case: str = "", advice: str = _ADVICE) -> Iterator[None]:
    """Require that the ``with`` block leaves the states of ``random`` and ``numpy.random`` unchanged.

    A random draw changes the state, so this finds both code that seeds the state and code that draws from it.

    Args:
        case: Description of the case, for the error message.
        advice: Advice to the author of the part, for the error message.
    """
    before = random.getstate(), pickle.dumps(np.random.get_state())
    yield
    start = f"{case}, it" if case else "it"
    after = random.getstate(), pickle.dumps(np.random.get_state())
    for module, old, new in zip(("random", "numpy.random"), before, after, strict=True):
        require(old == new, f"{start} uses or changes the global state of {module}; {advice}")


def require_own_randomness(play: Callable[[], Any], advice: str) -> None:
    """Require that a function neither uses nor changes the global random states.

    The function is called twice, with the global states seeded differently; the states are restored afterwards.

    Args:
        play: The function; its two results must be equal.
        advice: Advice to the author of the part, for the error message.
    """
    results = []
    for seed in (1, 2):
        kept = random.getstate(), np.random.get_state()
        try:
            random.seed(seed)
            np.random.seed(seed)
            with untouched(advice=advice):
                results.append(play())
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])
    require(results[0] == results[1], f"its episodes depend on the global random states; {advice}")
