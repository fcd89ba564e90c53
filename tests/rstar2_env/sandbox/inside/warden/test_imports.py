"""Preloaded modules that a program names, found in bounded time."""

from __future__ import annotations

import time

import pytest

from rstar2_env.sandbox.inside.warden.imports import Imports

NAMES = ("numpy", "sympy", "scipy.stats")


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("print(1)", ()),
        ("", ()),
        ("import numpy", ("numpy",)),
        ("import math, numpy as np", ("numpy",)),
        ("from sympy import *\nimport numpy", ("numpy", "sympy")),
        ("def f():\n    from numpy.linalg import inv", ("numpy",)),
        ("x = 1; import sympy", ("sympy",)),
        ("if x:\n    import scipy", ("scipy.stats",)),
        ("exec('import numpy')", ("numpy",)),
        ("__import__('sympy').pi", ("sympy",)),
        ("# import numpy", ()),
        ("x = 1  # numpy would do", ()),
        ("import numpyro, mynumpy", ()),
        ("tensor.numpy()", ()),
        ("import torch\r\nimport numpy\r\n", ("numpy",)),
        ("é = 1; import numpy", ("numpy",)),
    ],
)
def test_a_module_counts_where_a_program_names_it(source: str, named: tuple[str, ...]) -> None:
    assert Imports(NAMES).named([source.encode()]) == named


def test_any_of_the_texts_may_name_it() -> None:
    assert Imports(NAMES).named([b"import helper", b"import sympy"]) == ("sympy",)


def test_nothing_is_named_where_nothing_is_preloaded() -> None:
    assert Imports(()).named([b"import numpy"]) == ()


@pytest.mark.parametrize("unit", [b"numpy.", b"x\n", b"# numpy\n", b"a.numpy ", b"(", b"\0", b" " * 50 + b"numpy_"])
def test_no_text_takes_long(unit: bytes) -> None:
    text = unit * ((64 << 20) // len(unit))
    began = time.process_time()
    Imports(NAMES).named([text, text])
    assert time.process_time() - began < 2.0  # of its own CPU; a quarter of a MiB is looked at


def test_only_so_much_of_all_texts_together_is_looked_at() -> None:
    last = b"\nimport numpy "
    filler = b"#" * ((1 << 18) - len(last))
    assert Imports(NAMES).named([filler + last]) == ("numpy",)
    assert Imports(NAMES).named([filler, last]) == ("numpy",)
    assert Imports(NAMES).named([filler + b"#" * len(last), last]) == ()
    assert Imports(NAMES).named([b"#" * len(last) + filler + last]) == ()
