"""The same seed gives the same draws, for modules loaded before and modules imported later."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
before, seed = json.loads(sys.argv[1])
if before:
    import numpy.random, sympy.core.random
from rstar2_env.sandbox.inside.zygote.seeds import seed_everything, watch_imports
watch_imports()
import random
seed_everything(999)
random.gauss(0, 1)  # leaves a second draw for the next call
seed_everything(seed)
import random, numpy, sympy.core.random
draws = [random.gauss(0, 1) + random.random(), float(numpy.random.random()), sympy.core.random.random()]
left = [finder for finder in sys.meta_path if type(finder).__name__ == "AfterImport"]
print(json.dumps([draws, len(left)]))
"""


def draws(before: bool, seed: int) -> tuple[list[float], int]:
    """Draws of three generators, and the number of import hooks."""
    command = [sys.executable, "-c", PROGRAM, json.dumps([before, seed])]
    found, finders = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found, finders


@pytest.fixture(scope="module")
def seven() -> list[float]:
    """Draws of seed 7 in an interpreter without the modules."""
    return draws(False, 7)[0]


def test_what_is_imported_later_draws_what_it_would_have_drawn_if_loaded_before(seven: list[float]) -> None:
    assert draws(True, 7) == (seven, 0)


def test_another_seed_gives_other_draws_of_every_generator(seven: list[float]) -> None:
    other, finders = draws(False, 8)
    assert finders == 1, "both seeds use one hook"
    assert all(one != two for one, two in zip(seven, other, strict=True))


def test_generators_of_one_seed_do_not_draw_the_same(seven: list[float]) -> None:
    assert len(set(seven)) == 3
