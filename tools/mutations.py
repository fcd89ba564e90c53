"""The mutants of a Python module: single changes to its formulas, found in its syntax tree.

Covered: swapped operators, comparisons, boundaries, constants, signs, ``and`` and ``or``, minimum and maximum, mean and
sum, removed terms, removed bounds of a clamp, removed calls such as ``detach``, dimensions, bounds of slices, removed
statements. Not covered: texts, messages of exceptions, annotations, registries, ``zip(strict=...)``: they are not part
of a formula. ``mutate.py`` runs the tests on the mutants.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Step = tuple[str, int | None]

_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_COMMUTATIVE = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("amin", "amax"),
    ("argmin", "argmax"),
    ("any", "all"),
    ("floor", "ceil"),
)
_NAMES = dict(_PAIRS) | {new: old for old, new in _PAIRS}
_METHODS = _NAMES | {"mean": "sum", "sum": "mean"}
_BOUNDED = ("clamp", "clip")
_OF_ONE = {"abs", "sqrt", "square", "exp", "log", "round", "sorted", "reversed", "tanh", "centred", "bounded_exp"}
_OF_ITSELF = {*_BOUNDED, "abs", "detach", "masked_fill", "sqrt", "square", "exp", "log", "copy", "expm1"}
_OF_TWO = {"min", "max", "minimum", "maximum"}
_NO_FORMULA = {"Registry", "Shape", "field", "TypeVar", "getattr", "hasattr", "make_inner", "super"}
_NO_KEYWORDS = {"strict", "dtype", "repr", "option"}


@dataclass(frozen=True)
class Mutant:
    """One change to a module.

    Attributes:
        file: The module, relative to the root of the tree.
        line: First line of the change.
        end: Last line of the change.
        scope: Qualified name of the outermost function or method with the change; of the class if the change is at the
            level of a class, empty at the level of the module.
        in_function: Whether the change is in the body of a function.
        old: The changed expression or statement.
        new: The replacement.
        number: Number of the change among those of the module with the same scope, ``old`` and ``new``, from 0.
        path: Position of the changed node in the tree.
        node: The new node; ``None`` deletes the node from its list.
    """

    file: str
    line: int
    end: int
    scope: str
    in_function: bool
    old: str
    new: str
    number: int
    path: tuple[Step, ...]
    node: ast.AST | None

    @property
    def id(self) -> str:
        """Name of the mutant, which does not change if other lines of the module change."""
        number = f" #{self.number + 1}" if self.number else ""
        return f"{self.file}::{self.scope}: {self.old} -> {self.new}{number}"


def mutants_of(source: str, file: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its lines.

    Args:
        source: Text of the module.
        file: Its path, for the names of the mutants.
    """
    tree = ast.parse(source)
    same: Counter[tuple[str, str, str]] = Counter()
    found = []
    for path, scope, in_function in _places(tree):
        node = _at(tree, path)
        for new in _changes(node, tree, path):
            shown = _shown(tree, path, node)
            old_text, new_text = _text(_at(tree, shown)), _text(_replaced(_at(tree, shown), path[len(shown) :], new))
            if old_text == new_text:
                continue
            key = (scope, old_text, new_text)
            first = node if hasattr(node, "lineno") else _at(tree, shown)
            line, end = getattr(first, "lineno", 1), getattr(first, "end_lineno", 1)
            if isinstance(node, (ast.If, ast.While)):
                end = node.test.end_lineno
            found.append(Mutant(file, line, end, scope, in_function, old_text, new_text, same[key], path, new))
            same[key] += 1
    return sorted(found, key=lambda mutant: mutant.line)


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """Return the syntax tree of a module with the change of a mutant; line numbers stay."""
    tree = _replaced(ast.parse(source), mutant.path, mutant.node)
    assert isinstance(tree, ast.Module)
    return ast.fix_missing_locations(tree)


def _places(tree: ast.Module) -> Iterator[tuple[tuple[Step, ...], str, bool]]:
    """Yield the position of each node that belongs to a formula, its scope, and whether it is in a function."""

    def visit(node: ast.AST, path: tuple[Step, ...], scope: str, inside: bool) -> Iterator[tuple]:
        if _is_skipped(node):
            return
        yield path, scope, inside
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "keywords") and not isinstance(
                node, ast.Call
            ):
                continue
            below, within = scope, inside
            if isinstance(node, ast.FunctionDef) and not inside and name == "body":
                below, within = f"{scope}.{node.name}".lstrip("."), True
            elif isinstance(node, ast.ClassDef) and not inside:
                below = f"{scope}.{node.name}".lstrip(".")
            for number, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    yield from visit(child, (*path, (name, number)), below, within)

    yield from visit(tree, (), "", False)


def _is_skipped(node: ast.AST) -> bool:
    if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom, ast.Assert, ast.Delete)):
        return True
    if isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _is_skipped(node.value)):
        return True
    if isinstance(node, ast.Call) and _name(node.func) in {*_NO_FORMULA, "register"} and node.args:
        return True
    if isinstance(node, ast.Call) and _name(node.func) in ("field", "super"):
        return True
    if isinstance(node, ast.keyword) and node.arg in _NO_KEYWORDS:
        return True
    if isinstance(node, ast.ClassDef) and any(_name(base) == "Protocol" for base in node.bases):
        return True
    if isinstance(node, ast.Subscript) and _name(node.value) in ("Literal", "Registry", "list", "tuple", "dict"):
        return True
    return isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING"


def _changes(node: ast.AST, tree: ast.Module, path: tuple[Step, ...]) -> Iterator[ast.AST | None]:
    """Yield what can replace a node; ``None`` deletes it."""
    change: Callable[..., Iterator[ast.AST | None]] | None = _BY_TYPE.get(type(node))
    if change is not None:
        yield from change(node)
    if isinstance(node, ast.Constant) and _is_negative(_at(tree, path[:-1])):
        return  # the minus sign belongs to the number
    if isinstance(node, (ast.Constant, ast.UnaryOp)) and _number(node) is not None:
        yield from map(_constant, _other_numbers(_number(node)))
    if path and isinstance(node, ast.comprehension) and node.ifs:
        for number in range(len(node.ifs)):
            fewer = copy.copy(node)
            fewer.ifs = node.ifs[:number] + node.ifs[number + 1 :]
            yield fewer


def _binary(node: ast.BinOp) -> Iterator[ast.AST]:
    if any(isinstance(one, ast.JoinedStr) or _is_text(one) for one in (node.left, node.right)):
        return
    if type(node.op) in _OPERATORS:
        yield ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
        yield node.left
    if isinstance(node.op, _COMMUTATIVE):
        yield node.right


def _comparison(node: ast.Compare) -> Iterator[ast.AST]:
    for number, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            yield ast.Compare(node.left, [*node.ops[:number], other(), *node.ops[number + 1 :]], node.comparators)


def _boolean(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for number in range(len(node.values)):
        rest = node.values[:number] + node.values[number + 1 :]
        yield ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]


def _unary(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if _number(node) is None or isinstance(_number(node), float):
        yield node.operand


def _choice(node: ast.IfExp) -> Iterator[ast.AST]:
    yield node.body
    yield node.orelse


def _branch(node: ast.If | ast.While) -> Iterator[ast.AST]:
    if isinstance(node.test, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        return  # changed themselves
    other = copy.copy(node)
    other.test = ast.UnaryOp(ast.Not(), node.test)
    yield other


def _call(node: ast.Call) -> Iterator[ast.AST]:
    name, method = _name(node.func), isinstance(node.func, ast.Attribute)
    of_module = method and _name(node.func.value) in ("np", "math")
    others = _METHODS if method and not of_module else _NAMES
    if name in others:
        func = copy.copy(node.func)
        setattr(func, "attr" if method else "id", others[name])
        yield ast.Call(func, node.args, node.keywords)
    if name in _OF_ONE and (of_module or not method) and node.args:
        yield node.args[0]
    if name in _OF_ITSELF and method and not of_module:
        yield node.func.value
    if name in _OF_TWO and len(node.args) == 2:
        yield from node.args
    if name == "where":
        yield from node.args[1:] if of_module else (node.func.value, node.args[-1])
    if name in _BOUNDED:
        for number in range(len(node.args)) if len(node.args) > 1 else ():
            args = [*node.args[:number], ast.Constant(None), *node.args[number + 1 :]]
            yield ast.Call(node.func, args, node.keywords)
        if len(node.keywords) == 1:
            (keyword,) = node.keywords
            yield ast.Call(node.func, node.args, [ast.keyword(_NAMES[str(keyword.arg)], keyword.value)])


def _augmented(node: ast.AugAssign) -> Iterator[ast.AST | None]:
    if type(node.op) in _OPERATORS:
        yield ast.AugAssign(node.target, _OPERATORS[type(node.op)](), node.value)
    yield ast.Pass()


def _statement(node: ast.Expr) -> Iterator[ast.AST | None]:
    if isinstance(node.value, ast.Call):
        yield ast.Pass()


def _slice(node: ast.Slice) -> Iterator[ast.AST]:
    for name in ("lower", "upper", "step"):
        if getattr(node, name) is not None:
            other = copy.copy(node)
            setattr(other, name, None)
            yield other


_BY_TYPE: dict[type[ast.AST], Callable[..., Iterator[ast.AST | None]]] = {
    ast.BinOp: _binary,
    ast.Compare: _comparison,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.IfExp: _choice,
    ast.If: _branch,
    ast.While: _branch,
    ast.Call: _call,
    ast.AugAssign: _augmented,
    ast.Expr: _statement,
    ast.Slice: _slice,
}


def _other_numbers(number: float | bool) -> list[float | bool]:
    if isinstance(number, bool):
        return [not number]
    if isinstance(number, int):
        return [number + 1]
    return [2 * number] if number else [1.0]


def _constant(number: float | bool) -> ast.AST:
    if not isinstance(number, bool) and number < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-number))
    return ast.Constant(number)


def _number(node: ast.AST) -> float | bool | None:
    if _is_negative(node):
        return -node.operand.value
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (bool, int, float)) else None


def _is_negative(node: ast.AST) -> bool:
    """Return whether a node is a minus sign and a number."""
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and isinstance(node.operand.value, (int, float))
    )


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return getattr(node, "id", None) or getattr(node, "attr", "") if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _shown(tree: ast.Module, path: tuple[Step, ...], node: ast.AST) -> tuple[Step, ...]:
    """Return the position of the node that shows a change: numbers and slices are shown within their expression."""
    while isinstance(node, (ast.Constant, ast.Slice, ast.keyword, ast.comprehension, ast.Tuple)) or _is_negative(node):
        path = path[:-1]
        node = _at(tree, path)
    return path


def _at(node: ast.AST, path: tuple[Step, ...]) -> ast.AST:
    for name, number in path:
        node = getattr(node, name) if number is None else getattr(node, name)[number]
    return node


def _replaced(node: ast.AST, path: tuple[Step, ...], new: ast.AST | None) -> ast.AST:
    """Return a copy of a tree with another node at a position."""
    if not path:
        return node if new is None else new
    found = copy.copy(node)
    (name, number), rest = path[0], path[1:]
    value = getattr(node, name)
    if number is None:
        setattr(found, name, _replaced(value, rest, new))
    else:
        setattr(found, name, [*value[:number], _replaced(value[number], rest, new), *value[number + 1 :]])
    return found


def _text(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    return text.splitlines()[0] if isinstance(node, (ast.If, ast.While, ast.For, ast.FunctionDef)) else text
