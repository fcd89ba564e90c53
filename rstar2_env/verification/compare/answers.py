"""Compares two parsed answers: first their structures, such as lists and sets, then the expressions in them.

Covered: lists, sets, tuples, matrices, intervals, equations, inequalities, labels, plus-minus signs, quantities, words.
Answers are trees. The result ``None`` means that numerical evaluation cannot decide; the module ``symbolic`` then
tries. Not covered: whether an answer of equal value still leaves work to do (see ``conduct``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from rstar2_env.verification.compare import relations, structure
from rstar2_env.verification.compare.conditions import remarks_agree
from rstar2_env.verification.compare.equality import Rules, all_of, place, same_expression
from rstar2_env.verification.compare.quantities import ASKS_RESIDUE, same_in_base, same_quantity, same_ratio, same_words
from rstar2_env.verification.compare.structure import Item
from rstar2_env.verification.read.nodes import (
    Apply,
    BracketGroup,
    Builder,
    Const,
    Matrix,
    Node,
    Num,
    Quantity,
    Relation,
    Sym,
    Words,
    is_braced,
    key,
    rename,
    symbols,
    walk,
    whole,
)
from rstar2_env.verification.read.normal import as_quantity, is_parametric, role
from rstar2_env.verification.values.evaluate import is_infinite

MAX_ITEMS = 200
"""Maximum length of lists whose items are compared by value, in any order; in longer lists, the items must have
equal canonical texts."""


def same_answer(gold: Node, answer: Node, rules: Rules) -> bool | None:
    """Return whether two answers are equal, if necessary after a renaming of parameters, such as k in ``k pi``.

    Args:
        gold: The gold answer.
        answer: The answer to grade.
        rules: The rules of the comparison.

    Returns:
        ``None`` when evaluation cannot decide.

    Raises:
        TooLargeError: A value is too large to compute with.
    """
    comparer = Comparer(rules)
    result = comparer.answers(gold, answer)
    if result or any(comparer.answers(gold, renamed) for renamed in renamings(gold, answer, rules)):
        return True
    return result


@dataclass(frozen=True, slots=True)
class Comparer:
    """Compares parsed answers under one set of rules. A result ``None`` means that evaluation cannot decide."""

    rules: Rules

    def answers(self, gold: Node, answer: Node) -> bool | None:
        """Compare two whole answers, with their labels and conditions."""
        if gold == answer or key(gold) == key(answer):
            return True
        if not remarks_agree(gold, answer, self.rules):
            return False
        gold, answer = (_as_set_of_numbers(structure.without_condition(node)) for node in (gold, answer))
        if (as_sets := self._sets(gold, answer)) is not None:
            return as_sets
        if isinstance(answer, BracketGroup) and answer.close == "or" and structure.as_sequence(gold) is not None:
            return False  # "2 or 5" is not the point (2, 5)
        golds, answers = (structure.group_by_labels(structure.items_of(node)) for node in (gold, answer))
        signs = any(structure.has_signs(item.value) and not is_braced(item.value) for item in (*golds, *answers))
        if len(golds) == len(answers) == 1 and not signs:
            result = self._item(golds[0], answers[0])
            if result is not False:
                return result
        return self._lists(_expand(golds), _expand(answers))

    def _lists(self, gold: list[Item], answer: list[Item]) -> bool | None:
        """Compare lists of items. An answer without brackets is read as a tuple or set, like the gold answer."""
        if len(gold) == 1 and not is_braced(gold[0].value):
            sequence = structure.as_sequence(gold[0].value)
            if sequence is not None and len(answer) == len(sequence) > 1 and not _is_half_open(gold[0].value):
                return self._ordered(sequence, [item.value for item in structure.by_label(gold[0].label, answer)])
            if len(answer) != 1:
                return False
            if is_braced(answer[0].value) and len(inner := _elements(answer)) == 1:
                return self.values(gold[0].value, inner[0].value)
            return self._item(gold[0], answer[0])
        gold_elements, answer_elements = _elements(gold), _elements(answer)
        if len(answer) == 1 and not is_braced(answer[0].value):
            sequence = structure.as_sequence(answer[0].value)
            if sequence is not None and not is_braced(gold[0].value) and len(sequence) == len(gold_elements) > 1:
                return self._ordered([item.value for item in gold_elements], sequence)
        if (labelled := self._labelled(gold_elements, answer_elements)) is not None:
            return labelled
        if structure.distinct_labels(gold_elements) and not is_braced(gold[0].value):
            return self._ordered([item.value for item in gold_elements], [item.value for item in answer_elements])
        return self._unordered([item.value for item in gold_elements], [item.value for item in answer_elements])

    def _labelled(self, gold: list[Item], answer: list[Item]) -> bool | None:
        """Compare the values with equal labels; ``None`` unless both have the same labels, none of them twice."""
        one, other = ({key(item.label): item.value for item in items if item.label} for items in (gold, answer))
        if not (structure.distinct_labels(gold) and structure.distinct_labels(answer)) or one.keys() != other.keys():
            return None
        return self._ordered(list(one.values()), [other[name] for name in one])

    def _item(self, gold: Item, answer: Item) -> bool | None:
        """Compare two single values with their labels."""
        one, other = gold.value, answer.value
        if self._untrue(other):
            return False
        if gold.label is None and answer.label is None and not symbols(one):
            other = structure.sum_of_labels(other) or other
        if gold.label is not None and answer.label is not None and key(gold.label) != key(answer.label):
            if structure.subscripts_differ(gold.label, answer.label) or _is_function_of(gold.label, answer.label):
                return False
            if (renamed := structure.align_arguments(gold.label, answer.label)) is not None:
                other = rename(other, renamed)
            elif {gold.label, answer.label} <= structure.AXES:
                # y = 2 and x = 2 are different lines; y = x + 1 and x = y - 1 are the same line.
                return self._equation(Relation(("=",), (gold.label, one)), Relation(("=",), (answer.label, other)))
        result = self.values(one, other)
        if result is False and gold.label is not None and isinstance(other, Relation):
            return self._equation(Relation(("=",), (gold.label, one)), other)
        if result is False and gold.label is not None and answer.label is None and not structure.is_applied(gold.label):
            return relations.solves(Relation(("=",), (gold.label, one)), other)
        if result is False and answer.label is not None and isinstance(one, Relation):
            return self._equation(one, Relation(("=",), (answer.label, other)))
        return result

    def _untrue(self, node: Node) -> bool:
        """Whether an answer states a false equality of numbers, such as ``2 + 2 = 24``, which does not count as 24."""
        if not isinstance(node, Relation) or set(node.ops) != {"="} or symbols(node):
            return False
        if any(isinstance(side, Words) for side in node.sides):
            return True  # such as "True == 1"
        return any(self.values(one, other) is self.values(other, one) is False for one, other in pairwise(node.sides))

    def _equation(self, gold: Relation, answer: Relation) -> bool | None:
        return relations.same_equation(gold, answer, self.rules, self._ordered)

    def values(self, gold: Node, answer: Node) -> bool | None:
        """Compare two values, such as items of two lists."""
        if gold == answer or key(gold) == key(answer):
            return True
        gold, answer = structure.without_condition(gold), structure.without_condition(answer)
        if isinstance(gold, Relation) and gold.ops[-1:] == ("~",) and self.values(gold.sides[-1], answer):
            return True  # gold "cos 3 ~ -0.99", answer "-0.99"
        gold, _ = structure.exact_side(gold)
        rounded = isinstance(answer, Relation) and "~" in answer.ops
        answer, others = structure.exact_side(answer)
        if any(key(side) == key(answer) or (rounded and _is_other_integer(side, answer)) for side in others):
            return False  # such as "1 = 1" or "7 ~ 8"
        gold, answer = as_quantity(gold, answer), as_quantity(answer, gold, bare=isinstance(gold, Num))
        if isinstance(gold, Quantity) or isinstance(answer, Quantity):
            return same_quantity(gold, answer, self.rules, self.values)
        if (special := same_in_base(gold, answer)) is not None:
            return special
        if (special := same_ratio(gold, answer, self.values)) is not None:
            return special
        if isinstance(gold, Words) or isinstance(answer, Words):
            return same_words(gold, answer, self.rules)
        if (special := self._sets(gold, answer)) is not None:
            return special
        if is_infinite(gold) or is_infinite(answer):
            return key(gold) == key(answer)
        if isinstance(gold, Relation) and isinstance(answer, Relation):
            return self._equation(gold, answer)
        if isinstance(gold, Relation) or isinstance(answer, Relation):
            return isinstance(gold, Relation) and gold.ops == ("=",) and relations.solves(gold, answer)
        if isinstance(gold, Apply) and gold.op == "pmod":
            return self._congruent(gold, answer)
        if isinstance(answer, Apply) and answer.op == "pmod" and whole(gold) in range(whole(answer.args[1]) or 0):
            # "3 (mod 7)" equals 3 if the question asks for a residue; "17 (mod 7)" does not, since 17 is not reduced.
            return bool(ASKS_RESIDUE.search(self.rules.question or "")) and self.values(gold, answer.args[0])
        if isinstance(gold, BracketGroup | Matrix | Builder) or isinstance(answer, BracketGroup | Matrix | Builder):
            return self._structures(gold, answer)
        result = same_expression(gold, answer, self.rules)
        if result is None:
            return self._componentwise(gold, answer)
        if result is False:
            return self._up_to_constant(gold, answer)
        return result

    def _congruent(self, gold: Apply, answer: Node) -> bool:
        """Whether an answer equals a gold residue: ``5 (mod 3)``, ``5`` and ``3 k + 2`` all equal ``2 (mod 3)``."""
        rest, modulus = gold.args
        if isinstance(answer, Apply) and answer.op == "pmod":
            if same_expression(modulus, answer.args[1], self.rules) is not True:
                return False
            answer = answer.args[0]
        elif len(names := symbols(answer)) == 1 and not symbols(gold):
            if (steps := relations.linear_steps(answer, min(names))) is None:
                return False
            width = Apply("add", (steps[1], Apply("neg", (steps[0],))))
            if same_expression(Apply("abs", (width,)), modulus, Rules()) is not True:
                return False
            answer = steps[0]
        return self.values(Apply("mod", (rest, modulus)), Apply("mod", (answer, modulus))) is True

    def _structures(self, gold: Node, answer: Node) -> bool | None:
        if is_braced(gold) or is_braced(answer):
            one, other = _elements([Item(None, gold)]), _elements([Item(None, answer)])
            if len(one) != 1 and not (is_braced(gold) and is_braced(answer)):
                return False
            return self._unordered([item.value for item in one], [item.value for item in other])
        if isinstance(gold, Matrix) and isinstance(answer, Matrix):
            if [len(row) for row in gold.rows] == [len(row) for row in answer.rows]:
                pairs = zip(gold.rows, answer.rows, strict=True)
                return all_of([self._ordered(one, other) for one, other in pairs])
            if self.rules.strict:
                return False
        one_sequence, other_sequence = structure.as_sequence(gold), structure.as_sequence(answer)
        if one_sequence is None or other_sequence is None:
            return self._componentwise(gold, answer)
        if isinstance(gold, BracketGroup) and isinstance(answer, BracketGroup) and not _brackets_agree(gold, answer):
            return False
        return self._ordered(one_sequence, other_sequence)

    def _componentwise(self, gold: Node, answer: Node) -> bool | None:
        """Compare, entry by entry, vectors and matrices written as sums and multiples: ``c (1, 2) + (3, 4)``."""
        one, other = structure.components(gold), structure.components(answer)
        if one is None and other is None:
            return None
        if one and other and _has_grid(gold) != _has_grid(answer):
            return False
        one = one or structure.along_axes(gold, len(other or ()))
        other = other or structure.along_axes(answer, len(one or ()))
        return one is not None and other is not None and self._ordered(one, other)

    def _up_to_constant(self, gold: Node, answer: Node) -> bool:
        """Return whether two antiderivatives, each with a constant of integration, differ by a constant."""
        one, other = _without_constant(gold), _without_constant(answer)
        if one is None or other is None:
            return False
        difference = Apply("add", (one, Apply("neg", (other,))))
        names = sorted(symbols(difference))
        moved = rename(difference, {name: f"{name}\0" for name in names})
        return same_expression(difference, moved, Rules()) is True

    def _ordered(self, gold: Sequence[Node], answer: Sequence[Node]) -> bool | None:
        return len(gold) == len(answer) and all_of(map(self.values, gold, answer))

    def _unordered(self, gold: list[Node], answer: list[Node]) -> bool | None:
        """Compare lists in any order; if the gold list has several elements, repeated answer elements count once."""
        if max(len(gold), len(answer)) > MAX_ITEMS:
            return sorted(map(key, gold)) == sorted(map(key, answer))
        if len(answer) > len(gold) > 1:
            answer = self._distinct(answer)
        if len(gold) != len(answer):
            return False
        found = list(answer)
        places = [place(node) for node in found]
        unknown = False
        for one in gold:
            # Try the nearest value first, so that in equal lists of any length the first attempt matches.
            here = place(one)
            order = sorted(range(len(found)), key=lambda at: abs(places[at] - here))
            for at in order:
                result = self.values(one, found[at])
                if result:
                    del found[at], places[at]
                    break
                unknown = unknown or result is None
            else:
                if not unknown:
                    return False
        return None if unknown and found else True

    def _distinct(self, nodes: list[Node]) -> list[Node]:
        kept: list[Node] = []
        for node in {key(node): node for node in nodes}.values():
            if not any(self.values(other, node) for other in kept):
                kept.append(node)
        return kept

    def _sets(self, gold: Node, answer: Node) -> bool | None:
        """Compare two answers as sets of real numbers; return ``None`` unless one of them can only be read as a set."""
        one, other = relations.read_set(gold), relations.read_set(answer)
        if one is None and other is None:
            return None
        one, other = one or relations.read_set(gold, as_set=True), other or relations.read_set(answer, as_set=True)
        if one is None or other is None:
            return False if isinstance(gold, Num) or isinstance(answer, Num) else None  # a number is not a set
        if one.variable is not None and other.variable is not None and one.variable != other.variable:
            return None if _is_comparison(gold) and _is_comparison(answer) else False
        return relations.same_set(one, other, self.values)


def _as_set_of_numbers(node: Node) -> Node:
    """Return ``Z`` for an answer that only states ``n in Z``; return other nodes unchanged."""
    match node:
        case Relation(ops=("in",), sides=(Sym(), Const(name="Z" | "N" | "Q") as numbers)):
            return numbers
    return node


def _is_comparison(node: Node) -> bool:
    """Whether a node compares only variables, such as ``A > B``, which means the same as ``B < A``."""
    return isinstance(node, Relation) and all(isinstance(side, Sym) for side in node.sides)


def _is_half_open(node: Node) -> bool:
    """Whether a node is an interval with one open and one closed end; a list without brackets never equals it."""
    return isinstance(node, BracketGroup) and (node.open, node.close) in (("(", "]"), ("[", ")"))


def _expand(items: list[Item]) -> list[Item]:
    return [Item(item.label, value) for item in items for value in structure.expand_signs(item.value)]


def _is_other_integer(one: Node, other: Node) -> bool:
    return isinstance(one, Num) and isinstance(other, Num) and one.decimals is other.decimals is None and one != other


def _is_function_of(one: Node, other: Node) -> bool:
    """Whether one of two labels is a variable and the other a function of it, as in ``x = 4`` and ``|x| = 4``."""
    if isinstance(other, Sym):
        one, other = other, one
    if not isinstance(one, Sym) or not isinstance(other, Apply) or other.op in ("mul", "sub"):
        return False
    return one.name in symbols(other)


def _has_grid(node: Node) -> bool:
    """Whether a node contains a matrix with several rows and columns, which never equals a tuple of its entries."""
    return any(isinstance(part, Matrix) and len(part.rows) > 1 < len(part.rows[0]) for part in walk(node))


def _elements(items: list[Item]) -> list[Item]:
    """Return the items; if the only item is a set, the elements of this set."""
    if len(items) == 1 and isinstance(items[0].value, BracketGroup) and is_braced(items[0].value):
        return _expand([Item(None, element) for element in items[0].value.items])
    return items


def _brackets_agree(gold: BracketGroup, answer: BracketGroup) -> bool:
    """Whether gold and answer have the same brackets; always true unless they may be intervals such as ``(1, 2]``."""
    if len(gold.items) != 2 or isinstance(gold.items[0], BracketGroup) or "<" in (gold.open, answer.open):
        return True
    return gold.open == answer.open and gold.close == answer.close


def _without_constant(node: Node) -> Node | None:
    """Return a sum without its constant of integration ``+ C``; ``None`` if there is no such constant.

    Only ``C`` next to variables in lower case is such a constant: ``a + c`` and ``A + C`` are sums of variables.
    """
    if not isinstance(node, Apply) or node.op != "add":
        return None
    constants = [term for term in node.args if isinstance(term, Sym) and term.name in ("C", "C_1", "C_0")]
    if len(constants) != 1:
        return None
    rest = tuple(term for term in node.args if term is not constants[0])
    inner = rest[0] if len(rest) == 1 else Apply("add", rest)
    names = symbols(inner)
    return inner if names and constants[0].name not in names and all(name[0].islower() for name in names) else None


def renamings(gold: Node, answer: Node, rules: Rules) -> list[Node]:
    """Return copies of an answer with its parameters renamed to those of the gold answer, in each allowed way.

    Args:
        gold: The gold answer.
        answer: The answer.
        rules: The rules of the comparison; the lenient rules allow every variable to be renamed, the strict ones
            only parameters: ``n`` in ``n pi``, constants of integration, letters in tuples.
    """
    if rules.strict and any(
        isinstance(item.value, Sym) for item in structure.items_of(structure.without_condition(answer))
    ):
        return []  # a single variable is the answer itself, not a parameter that may be renamed
    one, other = _value_symbols(gold), _value_symbols(answer)
    only_gold, only_answer = sorted(one - other), sorted(other - one)
    found: list[Node] = []
    if only_gold and len(only_gold) == len(only_answer) <= 3:
        parametric = not rules.strict or is_parametric(gold, answer)
        for order in permutations(only_gold):
            names = dict(zip(only_answer, order, strict=True))
            if parametric or all(role(to, gold) == role(name, answer) is not None for name, to in names.items()):
                found.append(rename(answer, names))
    elif len(one) > 1 and not only_gold and not only_answer:
        shared = sorted(name for name in one if role(name, gold) == "constant" == role(name, answer))
        if 2 <= len(shared) <= 3:
            others = list(permutations(shared))[1:]
            found = [rename(answer, dict(zip(shared, order, strict=True))) for order in others]
    return found


def _value_symbols(node: Node) -> frozenset[str]:
    """Return the variables in the values of an answer, without those in its labels."""
    return frozenset[str]().union(
        *(symbols(item.value) for item in structure.items_of(structure.without_condition(node)))
    )
