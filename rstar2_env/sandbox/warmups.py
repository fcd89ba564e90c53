"""Warm-up programs for preloaded modules: a parent process runs them once, to finish lazy imports and fill caches.

Much of numpy and sympy is imported or computed on first use: a first ``solve`` takes 40 ms, a second one 2 ms.
"""

from __future__ import annotations

WARMUPS = {
    "numpy": """
import numpy
numpy.linalg.solve([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0])
numpy.polyfit([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], 1)
numpy.fft.fft([1.0, 2.0])
str(numpy.arange(3.0))
""",
    "sympy": """
import sympy
x, y = sympy.symbols("x y")
n = sympy.Symbol("n", integer=True, positive=True)
sympy.solve(x**2 - 5 * x + 6, x)
sympy.solve([x + y - 3, x - y - 1], [x, y])
sympy.solveset(x**2 - 1, x)
sympy.simplify((x**2 - 1) / (x - 1))
sympy.simplify(sympy.sin(x) ** 2 + sympy.cos(x) ** 2)
sympy.factor(x**3 - 1)
sympy.expand((x + 1) ** 5)
sympy.diff(x * sympy.sin(x), x)
sympy.integrate(x**2, x)
sympy.limit(sympy.sin(x) / x, x, 0)
sympy.series(sympy.exp(x), x, 0, 3)
sympy.summation(n, (n, 1, 10))
sympy.Matrix([[1, 2], [3, 4]]).inv()
sympy.nsimplify(sympy.sympify("0.5 + sqrt(8)"))
sympy.N(sympy.pi, 20)
sympy.latex(x / 2)
sympy.factorint(360), sympy.isprime(97), sympy.gcd(12, 18), sympy.binomial(5, 2), sympy.Rational(1, 3)
str(sympy.Eq(x, sympy.sqrt(2)))
""",
}
"""Source of each warm-up program, by the name of the preloaded module."""
