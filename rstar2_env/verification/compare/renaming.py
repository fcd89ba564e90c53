"""Renames the parameters of an answer (such as k in k pi) to those of the gold answer, in each allowed way."""

from __future__ import annotations

from itertools import permutations

from rstar2_env.verification.compare.equality import Rules
from rstar2_env.verification.compare.structure import items_of, without_condition
from rstar2_env.verification.read.nodes import Node, Sym, rename, symbols
from rstar2_env.verification.read.normal import is_parametric, role


def renamings(gold: Node, answer: Node, rules: Rules) -> list[Node]:
    """Return copies of an answer with its parameters renamed to those of the gold answer, in each allowed way.

    Args:
        gold: The gold answer.
        answer: The answer.
        rules: The rules of the comparison; the lenient rules allow every variable to be renamed, the strict ones
            only parameters: ``n`` in ``n pi``, constants of integration, letters in tuples.
    """
    if rules.strict and any(isinstance(item.value, Sym) for item in items_of(without_condition(answer))):
        return []  # a single variable is the answer itself, not a parameter that may be renamed
    one, other = _value_symbols(gold), _value_symbols(answer)
    only_gold, only_answer = sorted(one - other), sorted(other - one)
    parametric = not rules.strict or is_parametric(gold, answer)
    found: list[Node] = []
    if only_gold and len(only_gold) == len(only_answer) <= 3:
        for order in permutations(only_gold):
            names = dict(zip(only_answer, order, strict=True))
            if parametric or all(_same_role(to, gold, name, answer) for name, to in names.items()):
                found.append(rename(answer, names))
    elif not only_gold and not only_answer:
        shared = sorted(name for name in one if role(name, gold) == "constant" == role(name, answer))
        if 2 <= len(shared) <= 3:
            for order in list(permutations(shared))[1:]:
                found.append(rename(answer, dict(zip(shared, order, strict=True))))
    return found


def _same_role(name: str, gold: Node, other: str, answer: Node) -> bool:
    one = role(name, gold)
    return one is not None and one == role(other, answer)


def _value_symbols(node: Node) -> frozenset[str]:
    """Return the variables in the values of an answer, without those in its labels."""
    return frozenset[str]().union(*(symbols(item.value) for item in items_of(without_condition(node))))
