"""Watches the global random states, which no part may use or change."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from rstar2_env.testing.harness import require


@contextmanager
def untouched(case: str = "") -> Iterator[None]:
    """Require that what runs inside leaves the states of ``random`` and ``numpy.random`` as they are.

    Drawing from one changes it, so this finds both those who seed it and those who use it.

    Args:
        case: When it runs, for the message.
    """
    before = random.getstate(), pickle.dumps(np.random.get_state())
    yield
    told = f"{case}, " if case else ""
    advice = "draw from the generator that it is given, or from one of its own with a seed"
    require(random.getstate() == before[0], f"{told}it uses the global state of random; {advice}")
    require(
        pickle.dumps(np.random.get_state()) == before[1], f"{told}it uses the global state of numpy.random; {advice}"
    )
