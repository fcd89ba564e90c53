"""The value of an expression at a point, exact if it is rational, otherwise a ball that contains it.

Covered: arithmetic, powers and roots, elementary functions, factorials and binomials, finite sums and products, small
determinants, over the reals (odd roots of negative numbers are real) or the complex numbers (principal values). Not
covered: integrals, limits, infinite sums, unknown functions: ``UnsupportedError``.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from flint import acb, arb, ctx

from rstar2_env.verification.read.nodes import Apply, Big, Const, Node, Num, Sym
from rstar2_env.verification.values import functions
from rstar2_env.verification.values.ball import (
    TooLargeError,
    UndefinedError,
    UnsupportedError,
    Value,
    to_complex,
)
from rstar2_env.verification.values.operations import HANDLERS, Operands

MAX_TERMS = 400
"""Longest finite sum or product that is added up."""

MAX_STEPS = 60_000
"""Most nodes that one evaluation visits, sums unrolled."""


class Evaluator(Operands):
    """Evaluates trees at one point.

    Args:
        point: Values of the variables.
        prec: Bits of precision of balls.
        over_complex: Work over the complex numbers.
        degrees: Read a degree mark as a factor of pi/180; ``False`` ignores it.
        decimal_log: Read ``log`` without a base as the decimal logarithm rather than the natural one.
    """

    def __init__(
        self,
        point: Mapping[str, Fraction],
        prec: int,
        *,
        over_complex: bool = False,
        degrees: bool = True,
        decimal_log: bool = False,
    ) -> None:
        super().__init__(over_complex=over_complex)
        self.prec = prec
        self.degrees = degrees
        self.decimal_log = decimal_log
        self._point = dict(point)
        self._steps = 0

    def value(self, node: Node) -> Value:
        """Evaluate a tree.

        Raises:
            UndefinedError: There is no value at this point.
            VagueError: Deciding needs more precision.
            TooLargeError: An intermediate value is too large to compute with.
            UnsupportedError: The tree contains something without a value.
        """
        ctx.prec = self.prec  # the context is the process's, and another evaluator may have set it
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise TooLargeError
        match node:
            case Num(value=value):
                return value
            case Sym(name=name):
                if name in self._point:
                    return self._point[name]
                raise UnsupportedError(name)
            case Const(name=name):
                return self._constant(name)
            case Apply(op=op, args=args):
                return self._apply(op, args)
            case Big():
                return self._big(node)
            case _:
                raise UnsupportedError(type(node).__name__)

    def _constant(self, name: str) -> Value:
        if name == "pi":
            return arb.pi()
        if name == "e":
            return arb.const_e()
        if name == "i":
            if not self.over_complex:
                raise UndefinedError
            return acb(0, 1)
        raise UnsupportedError(name)

    def _apply(self, op: str, args: tuple[Node, ...]) -> Value:
        handler = HANDLERS.get(op)
        if handler is not None:
            return handler(self, args)
        if op in functions.REAL:
            return self._function(op, args)
        raise UnsupportedError(op)

    def _function(self, op: str, args: tuple[Node, ...]) -> Value:
        if len(args) != 1:
            raise UnsupportedError(op)
        argument = self.value(args[0])
        if isinstance(argument, acb):
            return functions.over_complex(op, argument)
        try:
            return functions.REAL[op](argument)
        except UndefinedError:
            if not self.over_complex:
                raise
            return functions.over_complex(op, to_complex(argument))

    def _big(self, node: Big) -> Value:
        if node.kind not in ("sum", "prod") or node.lower is None or node.upper is None or not node.variable:
            raise UnsupportedError(node.kind)
        low, high = self.value(node.lower), self.value(node.upper)
        if not isinstance(low, Fraction) or not isinstance(high, Fraction):
            raise UnsupportedError(node.kind)
        if low.denominator != 1 or high.denominator != 1:
            raise UndefinedError
        if high - low > MAX_TERMS:
            raise TooLargeError
        saved = self._point.get(node.variable)
        total: Value = Fraction(0 if node.kind == "sum" else 1)
        try:
            for index in range(low.numerator, high.numerator + 1):
                self._point[node.variable] = Fraction(index)
                term = self.value(node.body)
                total = self.add(total, term) if node.kind == "sum" else self.multiply(total, term)
        finally:
            self._point.pop(node.variable, None)
            if saved is not None:
                self._point[node.variable] = saved
        return total
