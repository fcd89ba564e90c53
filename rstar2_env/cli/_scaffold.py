"""Makes the files of a new environment, agent or part from ``templates``, optionally as a Python package.

Every template has a module and its test. In both, ``my_name`` stands for the name of the new code, and ``MyName``
for the name of its class.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.full_disk import naming_full_disk

_TEST = "--- test ---\n"
_OURS = ("rstar2", "rstar2_env")
"""Names that new code must not have: the namespace of this package's environments, and the package itself."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class NewKind:
    """One kind of code that ``rstar2 new`` writes.

    Attributes:
        noun: Name of the kind in sentences, with its article.
        use: Command or code that uses the new code; ``{code}`` stands for the file or for the name of an installed
            package.
        use_file: Command or code that uses the file without installing it; empty if ``use`` works for the file too.
        registry: Registry of the kind, as ``module:NAME``; empty if the kind has no registry.
        extra: Extra of rstar2-env that the code needs; empty for none.
    """

    noun: str
    use: str
    registry: str = ""
    extra: str = ""
    use_file: str = ""


_TRAIN = "rstar2 train grpo --model MODEL --problems FILE --set {slot}={{code}} --out run"


def _slot(name: str, noun: str) -> NewKind:
    return NewKind(noun, _TRAIN.format(slot=name), f"rstar2_env.trainers:{name.upper()}S", "train")


KINDS: Mapping[str, NewKind] = {
    "env": NewKind("an environment", "rstar2 validate {code}"),
    "agent": NewKind("an agent", "rstar2 eval rstar2/MathTool-v0 --agent {code} -n 20", "rstar2_env.agents:AGENTS"),
    "tool": NewKind("a tool", "from {name} import TOOL"),
    "wrapper": NewKind(
        "a wrapper",
        "rstar2 eval rstar2/MathTool-v0 --agent oracle -n 20 --wrap {code}",
        "rstar2_env.wrappers.registry:WRAPPERS",
    ),
    "problems": NewKind(
        "a family of problems",
        "rstar2 eval rstar2/MathTool-v0 --agent oracle -n 20 --problems {code}",
        "rstar2_env.problems.families:FAMILIES",
        use_file='import {name}; make_env("rstar2/MathTool-v0", problems="{name}")',
    ),
    "verifier": NewKind(
        "a verifier",
        "rstar2 eval rstar2/MathTool-v0 --agent oracle -n 20 --set env.verifier={code}",
        "rstar2_env.verification.named:VERIFIERS",
    ),
    "reward": NewKind(
        "a reward component",
        "rstar2 eval rstar2/MathTool-v0 --agent oracle -n 20 --score {code}",
        "rstar2_env.rewards.base:REWARDS",
    ),
    "rollout": _slot("rollout", "a rollout"),
    "sampler": _slot("sampler", "a sampler"),
    "selector": _slot("selector", "a selector"),
    "advantage": _slot("advantage", "an advantage"),
    "loss": NewKind("a term of the loss", _TRAIN.format(slot="loss"), "rstar2_env.trainers:LOSSES", "train"),
    "aggregation": _slot("aggregation", "an aggregation"),
    "correction": _slot("correction", "a correction"),
    "hook": _slot("hook", "a hook"),
    "trainer": NewKind(
        "a trainer",
        "rstar2 train {code} --model MODEL --problems FILE --out run",
        "rstar2_env.trainers:TRAINERS",
        "train",
    ),
}
"""Kinds of code that ``rstar2 new`` writes, keyed by name; each kind has a template."""

_GROUPS = {"env": "envs", "problems": "problems", "loss": "losses"}


@dataclass(frozen=True, slots=True)
class NewFiles:
    """Files of a new part, not written yet.

    Attributes:
        folder: The folder to which all files will be written.
        files: Text of each file, keyed by the file's path in the folder.
        name: Name of the module, and of the new part in its registry.
        use: Command or code that uses the part.
        test: Command that runs the test.
    """

    folder: Path
    files: Mapping[str, str]
    name: str
    use: str
    test: str

    def write(self) -> None:
        """Write all files to disk.

        Raises:
            ConfigurationError: A file already exists (then no file is written), or the folder cannot be written to.
        """
        taken = [str(self.folder / path) for path in self.files if (self.folder / path).exists()]
        if taken:
            raise ConfigurationError(
                f"These files or folders exist already and are not overwritten: {', '.join(taken)}. Choose another "
                "name or another folder.",
                option="out",
            )
        try:
            for path, text in self.files.items():
                with naming_full_disk(self.folder / path):
                    (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (self.folder / path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(
                f"The folder {self.folder} cannot be written: {error.strerror or error}. Choose another folder."
            ) from error


def scaffold(kind: str, name: str, out: Path, *, package: bool) -> NewFiles:
    """Make the files of a new part, without writing them.

    Args:
        kind: A key of ``KINDS``.
        name: Name of the part: letters, digits, ``-`` and ``_``.
        out: Folder of the files; with ``package``, the parent folder of the distribution's folder.
        package: Whether to make a distribution, with metadata, entry point, test, CI workflow, and a README, which
            describes the environment if ``kind`` is ``env``.

    Raises:
        ConfigurationError: The name cannot be the name of a module, or is taken.
    """
    module, test = _template(kind).split(_TEST)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
    words = {"my_name": snake, "MyName": "".join(word.capitalize() for word in snake.split("_"))}
    made = KINDS[kind]
    _check_name(kind, name, snake)
    if not package:
        files = {f"{snake}.py": _filled(module, words), f"test_{snake}.py": _filled(test, words)}
        code = f"./{snake}.py" if out == Path() else str(out / f"{snake}.py")
        use = (made.use_file or made.use).format(code=code, name=snake)
        return NewFiles(out, files, snake, use, f"python -m pytest {out / f'test_{snake}.py'}")
    distribution = snake.replace("_", "-")
    code = f"{snake}/{words['MyName']}-v0" if kind == "env" else snake
    use = made.use.format(code=code, name=snake)
    words |= {
        "my-name": distribution,
        "A-NOUN": made.noun[0].upper() + made.noun[1:],
        "USE": use,
        "REQUIREMENT": f"rstar2-env[{made.extra}]" if made.extra else "rstar2-env",
        "SUMMARY": _filled(module, words).split('"""')[1].splitlines()[0].replace("``", ""),
        "ENTRY-POINT": ""
        if kind == "tool"
        else f'[project.entry-points."rstar2_env.{_GROUPS.get(kind, f"{kind}s")}"]\n{snake} = "{snake}"\n\n',
        "CARD": _card(_filled(module, words)) if kind == "env" else "",
        "VALIDATE": f"      - run: {use}\n" if kind == "env" else "",
    }
    files = {
        "pyproject.toml": _filled(_template("package.pyproject"), words),
        "README.md": _filled(_template("package.readme"), words),
        ".gitignore": "__pycache__/\n*.egg-info/\n/build/\n/dist/\n/.venv/\n",
        ".github/workflows/test.yml": _filled(_template("package.workflow"), words),
        f"src/{snake}/__init__.py": _filled(module, words),
        f"src/{snake}/py.typed": "",
        f"tests/test_{snake}.py": _filled(test, words),
    }
    folder = out / distribution
    test_command = f"cd {folder} && pip install -e '.[dev]' && python -m pytest"
    return NewFiles(folder, files, snake, use, test_command)


def _template(name: str) -> str:
    return resources.files("rstar2_env.cli").joinpath("templates", f"{name}.txt").read_text(encoding="utf-8")


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], text)


def _card(module: str) -> str:
    """Return a Markdown section on an environment: the first class docstring in the source text ``module``."""
    kinds = [node for node in ast.parse(module).body if isinstance(node, ast.ClassDef)]
    text = next(filter(None, (ast.get_docstring(kind) for kind in kinds)), "")
    return f"\n## The environment\n\n{re.sub('^## ', '### ', text, flags=re.MULTILINE)}\n"


def _check_name(kind: str, name: str, snake: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(snake):
        raise ConfigurationError(
            f"{name!r} cannot be the name of a Python module: begin with a letter from a to z, use "
            "only letters, digits, - and _, and avoid the keywords of Python.",
        )
    if snake in _OURS:
        raise ConfigurationError(f"The name {snake!r} belongs to rstar2-env itself: choose another name.")
    registry, _, attribute = KINDS[kind].registry.partition(":")
    if registry and snake in getattr(importlib.import_module(registry), attribute):
        raise ConfigurationError(f"The {kind} {snake!r} exists already: choose another name.")
    here = {str(Path(path or ".").resolve()) for path in ("", ".")}
    found = None if snake in sys.stdlib_module_names else importlib.util.find_spec(snake)
    own = found is not None and found.origin is not None and str(Path(found.origin).resolve().parent) in here
    if snake in sys.stdlib_module_names or (found is not None and not own):
        raise ConfigurationError(
            f"A Python module with the name {snake!r} is already installed, and the new module would hide "
            "it: choose another name.",
        )
