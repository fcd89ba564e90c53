"""No two modules of the package bind a public class or a public type alias of the same name."""

import ast
from collections import defaultdict
from pathlib import Path

from architecture import House

ROOT = Path(__file__).parents[1]

ALLOWED = {
    "TextEnv": (
        "rstar2_env.adapters.verifiers",
        "rstar2_env.env.turn_result",
        "the alias that checks and wrappers share, and the class that verifiers loads by this name, next to TextTask",
    ),
}
"""Names that two modules bind: the two modules, and the reason."""


def bound_types(tree: ast.Module) -> set[str]:
    """Return the public names of classes and type aliases at the top of a module."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if ast.unparse(node.annotation).endswith("TypeAlias"):
                names.add(node.target.id)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
            names.update(each.id for each in node.targets if isinstance(each, ast.Name) and _is_camel(each.id))
    return {name for name in names if not name.startswith("_")}


def _is_camel(name: str) -> bool:
    return name[0].isupper() and not name.isupper()


def doubles(house: House) -> dict[str, list[str]]:
    """Return the modules of each name that several modules bind."""
    modules = defaultdict(list)
    for module in house.modules.values():
        for name in bound_types(module.tree):
            modules[name].append(module.name)
    return {name: sorted(found) for name, found in modules.items() if len(found) > 1}


def test_every_class_name_is_bound_once():
    allowed = {name: [first, second] for name, (first, second, _) in ALLOWED.items()}
    found = doubles(House.read(ROOT))
    wrong = {name: modules for name, modules in found.items() if modules != allowed.get(name)}
    assert not wrong, f"rename all but one: {wrong}"
    assert set(allowed) == set(found), "an entry of ALLOWED is not needed any more"


def test_the_rule_finds_classes_and_aliases(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.setuptools]\npackages = ["rstar2_env", "rstar2_env.trainers"]\n')
    files = {
        "rstar2_env/__init__.py": "",
        "rstar2_env/plan.py": "class Plan: ...\nclass _Own: ...\nTask = Callable[[], int]\nMADE = BY_NAME['a']\n",
        "trainers/__init__.py": "from rstar2_env.plan import Plan\n",
        "trainers/work.py": "Plan: TypeAlias = 'list[int]'\nclass _Own: ...\nclass Task: ...\nMADE = BY_NAME['b']\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    assert doubles(House.read(tmp_path)) == {
        "Plan": ["rstar2_env.plan", "rstar2_env.trainers.work"],
        "Task": ["rstar2_env.plan", "rstar2_env.trainers.work"],
    }
