"""Reads which module of the package imports which, and says where that breaks the rules of the house.

The modules are found as setuptools finds them, through ``packages`` of pyproject.toml and the links in ``rstar2_env``,
since three of the folders are not where their names say. Covered: every ``import`` statement, in functions and behind
``if TYPE_CHECKING`` too. Not covered: modules that are loaded by a name in a string, which is how registries find
plugins.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

PACKAGE = "rstar2_env"

FLOORS = (
    ("core",),
    ("verification", "sandbox", "search", "models"),
    ("problems", "tools"),
    ("worlds", "dialects", "rewards"),
    ("env",),
    ("wrappers", "testing"),
    ("rollout",),
    ("evaluation",),
    ("diagnosis",),
    ("traces", "doctor", "view"),
    ("adapters",),
    ("cli",),
)
"""The packages of the ground floor, lowest first: each imports from those below it, and from no other of its own."""

PLUGINS = ("agents", "envs_registry", "trainers")
"""They import from the ground floor, and never one another; the ground floor finds them by name."""

ALONE = f"{PACKAGE}.sandbox.inside"
"""Its programs run as fresh interpreters beside untrusted code, on the standard library alone."""

TRL = f"{PACKAGE}.trainers.backends.trl"
"""The one package that imports TRL."""

MANY_LINES = 500
"""A file with more lines gets a warning, not a failure: no idea is split to fit a number."""


@dataclass(frozen=True)
class Module:
    """One file of the package; ``tree`` is its syntax."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Import:
    """One module imports another, of this package or not."""

    importer: str
    imported: str
    place: str

    def __str__(self) -> str:
        return f"{self.place}: {self.importer} imports {self.imported}"


@dataclass(frozen=True)
class House:
    """Every module below a folder with a pyproject.toml."""

    root: Path
    packages: Mapping[str, Path]
    modules: Mapping[str, Module] = field(repr=False)

    @classmethod
    def read(cls, root: Path) -> House:
        settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
        packages = {name: _folder(root, name) for name in settings["packages"]}
        modules = {}
        for name, folder in packages.items():
            for path in sorted(folder.glob("*.py")):
                module = name if path.name == "__init__.py" else f"{name}.{path.stem}"
                modules[module] = Module(module, path, ast.parse(path.read_text()))
        return cls(root, packages, modules)

    @cached_property
    def imports(self) -> list[Import]:
        """Every import of every module."""
        found = []
        for module in self.modules.values():
            where = module.path.relative_to(self.root.resolve())
            for node in ast.walk(module.tree):
                for target in self._targets(module, node):
                    found.append(Import(module.name, target, f"{where}:{node.lineno}"))
        return found

    @cached_property
    def inner(self) -> list[Import]:
        """The imports of one module of the package by another."""
        return [each for each in self.imports if each.imported in self.modules and each.imported != each.importer]

    def _targets(self, module: Module, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (self._nearest(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield whole if whole in self.modules else self._nearest(base)

    def _nearest(self, name: str) -> str:
        """The module that a dotted name leads to; a name of another distribution stays whole."""
        shorter = name
        while shorter and shorter not in self.modules:
            shorter = shorter.rpartition(".")[0]
        return shorter or name


def _folder(root: Path, package: str) -> Path:
    """The folder of a package: at the end of its link, or, in the small packages of tests, in the root."""
    linked = root.resolve().joinpath(*package.split("."))
    return linked.resolve() if linked.is_dir() else root.resolve().joinpath(*package.split(".")[1:])


def _room(module: str) -> str:
    """The package right below ``rstar2_env`` in which a module is; "" for ``rstar2_env`` itself."""
    return module.split(".")[1] if "." in module else ""


def upward(house: House) -> list[str]:
    """Imports within the ground floor that do not point downward, and packages of which nobody said where they are."""
    height = {room: number for number, floor in enumerate(FLOORS) for room in floor}
    rooms = {_room(name) for name in house.modules} - {"", *PLUGINS}
    broken = [f"{PACKAGE}.{room} is on no floor: give it a place in FLOORS" for room in sorted(rooms - set(height))]
    for each in house.inner:
        above, below = _room(each.importer), _room(each.imported)
        if above in height and below in height and above != below and height[below] >= height[above]:
            broken.append(f"{each}, which is no floor below it")
    return broken


def plugins_not_apart(house: House) -> list[str]:
    """Imports of a plugin by the ground floor or by another kind of plugin, and of the command line by a plugin."""
    broken = []
    for each in house.inner:
        importer, imported = _room(each.importer), _room(each.imported)
        if imported in PLUGINS and importer not in ("", imported):
            broken.append(f"{each}: find plugins by name, through their registry")
        if importer in PLUGINS and imported == "cli":
            broken.append(f"{each}: the command line stands above the plugins")
    return broken


def through_the_face(house: House) -> list[str]:
    """Imports of ``rstar2_env`` itself, which stands above everything, by a module inside it."""
    return [f"{each}: import the module that holds the name" for each in house.inner if each.imported == PACKAGE]


def not_alone(house: House) -> list[str]:
    """Imports of ``sandbox.inside`` that lead out of it and out of the standard library."""
    return [
        f"{each}: the programs in {ALONE} have the standard library alone"
        for each in house.imports
        if _within(each.importer, ALONE)
        and not _within(each.imported, ALONE)
        and each.imported.partition(".")[0] not in sys.stdlib_module_names
    ]


def trl_elsewhere(house: House) -> list[str]:
    """Imports of TRL outside of its backend."""
    return [
        f"{each}: only {TRL} may"
        for each in house.imports
        if each.imported.partition(".")[0] == "trl" and not _within(each.importer, TRL)
    ]


def circles(house: House) -> list[str]:
    """Modules that import one another in a circle, and folders of one folder that do."""
    between: dict[str, set[str]] = {name: set() for name in house.modules}
    folders: dict[str, set[str]] = {}
    for each in house.inner:
        between[each.importer].add(each.imported)
        here, there = _siblings(house, each)
        if here != there:
            folders.setdefault(here, set()).add(there)
    return [f"circle: {', '.join(names)}" for graph in (between, folders) for names in _strongly_connected(graph)]


def _siblings(house: House, each: Import) -> tuple[str, str]:
    """The two packages, children of one, that an import goes from and to; the same twice where there are none."""
    here, there = each.importer.split("."), each.imported.split(".")
    shared = next((n for n, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), None)
    if shared is None:
        return "", ""
    pair = ".".join(here[: shared + 1]), ".".join(there[: shared + 1])
    return pair if all(name in house.packages for name in pair) else ("", "")


def _strongly_connected(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Every group of nodes that reach one another, each in order, by what can be reached from each node."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        ahead = list(graph[start])
        while ahead:
            if (node := ahead.pop()) not in seen:
                seen.add(node)
                ahead.extend(graph.get(node, ()))
        reached[start] = seen
    groups = {tuple(sorted(b for b in reached if b in reached[a] and a in reached[b])) for a in reached}
    return [list(group) for group in sorted(groups) if group]


def hidden(house: House) -> list[str]:
    """Modules that cannot be reached as an attribute, since their package binds their name to something else."""
    broken = []
    for package in house.packages:
        module = house.modules.get(package)
        if module is None:
            continue
        for name, line in _bound(module.tree.body, package):
            if f"{package}.{name}" in house.modules:
                where = f"{module.path.relative_to(house.root)}:{line}"
                broken.append(f"{where}: {package} binds {name!r}, which hides the module {package}.{name}")
    return broken


def _bound(body: Iterable[ast.stmt], package: str) -> Iterator[tuple[str, int]]:
    """The names that statements bind at the top of a module, other than to a module of that package."""
    for node in body:
        if isinstance(node, ast.ImportFrom):
            of_package = node.module == package or (node.level == 1 and node.module is None)
            yield from ((alias.asname or alias.name, node.lineno) for alias in node.names if not of_package)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (
                (each.id, node.lineno) for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
            )
        elif isinstance(node, ast.If | ast.Try | ast.With):
            parts = [node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])]
            parts += [handler.body for handler in getattr(node, "handlers", [])]
            for part in parts:
                yield from _bound(part, package)


def loose(house: House) -> list[str]:
    """Modules right below ``rstar2_env``, and folders with modules that the distribution leaves out."""
    top = house.packages[PACKAGE]
    broken = [f"{path.name} lies loose in {PACKAGE}" for path in sorted(top.glob("*.py")) if path.name != "__init__.py"]
    known = set(house.packages.values())
    for folder in {top, *(house.packages[name] for name in house.packages if name.count(".") == 1)}:
        missing = {path.parent for path in folder.rglob("*.py")} - known
        broken += [f"{path.relative_to(house.root)} is not among the packages of pyproject.toml" for path in missing]
    return sorted(set(broken))


def long(house: House) -> list[str]:
    """Files with more than ``MANY_LINES`` lines, which tests warn about."""
    counted = {module.path: len(module.path.read_text().splitlines()) for module in house.modules.values()}
    return [
        f"{path.relative_to(house.root)} has {lines} lines, more than {MANY_LINES}"
        for path, lines in counted.items()
        if lines > MANY_LINES
    ]


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


RULES = (upward, plugins_not_apart, through_the_face, not_alone, trl_elsewhere, circles, hidden, loose)
