"""Check that a part neither uses nor changes the global random states."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from rstar2_env.testing.harness import require


@contextmanager
def untouched(case: str = "") -> Iterator[None]:
    """Require that the block leaves the states of ``random`` and ``numpy.random`` unchanged.

    A draw changes the state, so this finds both code that seeds it and code that uses it.

    Args:
        case: The situation, for the message.
    """
    before = random.getstate(), pickle.dumps(np.random.get_state())
    yield
    told = f"{case}, " if case else ""
    advice = "draw from the given generator, or from an own generator with a seed"
    require(random.getstate() == before[0], f"{told}it uses the global state of random; {advice}")
    require(
        pickle.dumps(np.random.get_state()) == before[1], f"{told}it uses the global state of numpy.random; {advice}"
    )
