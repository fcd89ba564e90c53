"""Find the names that the guides import from this package, and where each is defined.

Covered: ``from rstar2_env.x import a`` in documents and tutorials, followed through re-exports without importing
anything, since some modules need packages that are not installed. Not covered: names in prose without an import.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = ("agents", "envs_registry", "trainers")
"""Packages below ``rstar2_env`` that have folders of their own in the repository."""
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

_INLINE = re.compile(r"`(from rstar2_env[\w.]* import \w+(?:, \w+)*)`")


@dataclass(frozen=True, order=True)
class Taught:
    """A name that a guide imports.

    Attributes:
        module: The module from which it is imported.
        name: Its name there.
        page: The guide, by its path in the site.
    """

    module: str
    name: str
    page: str


def taught() -> list[Taught]:
    """Return every name that a guide imports, sorted by its module."""
    return sorted({one for page, code in _blocks() for one in names(code, page)})


def names(code: str, page: str) -> Iterator[Taught]:
    """Return the names of this package that a block imports; if it imports a module, the names that it uses.

    Args:
        code: The block.
        page: Its guide.
    """
    try:
        tree = ast.parse(textwrap.dedent(code))
    except SyntaxError:  # signatures alone
        return
    for node in ast.walk(tree):
        if not (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rstar2_env"):
            continue
        for alias in node.names:
            module = str(node.module)
            if file_of(below := f"{module}.{alias.name}") is None:
                yield Taught(module, alias.name, page)
                continue
            used = {
                one.attr
                for one in ast.walk(tree)
                if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == alias.name
            }
            for name in used:
                yield Taught(below, name, page)


def defined(module: str, name: str) -> str:
    """Return the place where a name is defined, as module, dot and name; plain re-exports are followed.

    Raises:
        LookupError: The module does not define the name.
    """
    file = file_of(module)
    body = ast.parse(file.read_text("utf-8") if file else "").body
    # Below ``if TYPE_CHECKING`` stands what a package loads only when it is asked for.
    body = [*body, *(inner for node in body if isinstance(node, ast.If) for inner in node.body)]
    if any(name in _binds(node) for node in body):
        return f"{module}.{name}"
    for node in body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if name == (alias.asname or alias.name):
                return defined(_absolute(node, module, file), alias.name)
    raise LookupError(f"A guide imports {name} from {module}, which does not define it.")


def _binds(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _absolute(node: ast.ImportFrom, module: str, file: Path | None) -> str:
    if not node.level:
        return str(node.module)
    package = module.split(".")
    if file is None or file.name != "__init__.py":
        package = package[:-1]
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])


def file_of(module: str) -> Path | None:
    """Return the file of a module of this package."""
    parts = module.split(".")
    path = ROOT.joinpath(*(parts[1:] if len(parts) > 1 and parts[1] in _FOLDERS else parts))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _blocks() -> Iterator[tuple[str, str]]:
    docs = ROOT / "docs"
    for path in sorted(docs.rglob("*.md")):
        for code in _BLOCK.findall(path.read_text("utf-8")):
            yield path.relative_to(docs).as_posix(), code
        for code in _INLINE.findall(path.read_text("utf-8")):
            yield path.relative_to(docs).as_posix(), code
    for path in sorted(docs.rglob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                code = re.sub(r"^( *)[!%].*$", r"\1pass", "".join(cell["source"]), flags=re.MULTILINE)
                yield path.relative_to(docs).with_suffix(".md").as_posix(), code
