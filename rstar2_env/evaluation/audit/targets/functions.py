"""Python functions as targets: ``module:function`` or ``FILE.py:function``.

The names of a function's parameters determine how it is called. A function with ``completions`` is a reward function of
TRL. Otherwise a parameter named in ``GOLDS`` takes the gold answer, and one named in ``ANSWERS`` the answer; if the
names do not match, the first two parameters take gold answer and answer. A parameter ``answer`` takes the gold answer
if another parameter is named in ``ANSWERS`` and none in ``GOLDS``. A coroutine function is awaited. Not covered:
functions with further parameters that have no default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.given_path import check_given
from rstar2_env.core.options.user_code import UserCodeName
from rstar2_env.evaluation.audit.targets.target import Target, asked

GOLDS = (
    "gold", "golds", "answers", "ground_truth", "ground_truths", "solution", "solutions", "target", "targets",
    "reference", "expected", "label", "labels", "gt", "truth", "correct_answer",
)  # fmt: skip
"""Names of parameters that take the gold answer."""
ANSWERS = (
    "answer", "pred", "preds", "prediction", "predicted", "response", "output", "solution_str", "completion", "text",
    "given", "submission", "candidate", "model_output", "guess", "student",
)  # fmt: skip
"""Names of parameters that take the answer to grade."""
QUESTIONS = ("question", "prompt", "problem", "query")
_COLUMNS = ("solution", "solutions", "answer", "answers", "ground_truth", "gold", "target", "label", "reference")
_DESCRIBE = """
import inspect

def _described():
    parameters = inspect.signature(_target).parameters.values()
    called = _target if inspect.isroutine(_target) else type(_target).__call__
    return {
        "names": [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)],
        "positional": [one.name for one in parameters if one.kind is one.POSITIONAL_ONLY],
        "needed": [one.name for one in parameters if one.default is one.empty
                   and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)],
        "any": any(one.kind is one.VAR_KEYWORD for one in parameters),
        "awaited": inspect.iscoroutinefunction(called),
        "version": _version(),
    }

def _version():
    from importlib import metadata
    package = (getattr(_target, "__module__", None) or "").partition(".")[0]
    for name in metadata.packages_distributions().get(package, ()):
        return {name: metadata.version(name)}
    return {}
"""


def function_target(code: UserCodeName) -> Target:
    """Return a target that grades with a Python function of the user.

    Args:
        code: Module or file, and name, of the function.

    Raises:
        ConfigurationError: The function cannot be imported, or its parameters do not fit a grader.
    """
    imported = import_lines(code)
    what = asked(code.written, imported + _DESCRIBE, "_described()")
    names = [*what["positional"], *what["names"]]
    call = "asyncio.run(_target({}))" if what["awaited"] else "_target({})"
    head = imported + ("import asyncio\n" if what["awaited"] else "")
    if "completions" in names:
        return Target(code.written, "a TRL reward function", head + _trl(code, what, call), versions=what["version"])
    arguments = _arguments(code, what, names)
    body = f'def grade(gold, answer, question=""):\n    return {call.format(arguments)}\n'
    return Target(code.written, "a Python function", f"{head}\n\n{body}", versions=what["version"])


def import_lines(code: UserCodeName) -> str:
    """Return Python source that imports the user's object as ``_target``."""
    first, *rest = code.name.split(".")
    if not first.isidentifier():
        raise ConfigurationError(
            f"{code.written} names a file but no function: add the function to audit, as in grader.py:grade."
        )
    folder, module = str(Path.cwd()), code.module
    if code.file is not None:
        path = Path(code.file).absolute()
        check_given(Path(code.file), "give a file and a function in it, as in ./grader.py:grade", kind="file")
        folder, module = str(path.parent), path.stem
        if not module.isidentifier():
            raise ConfigurationError(
                f"{code.file} cannot be imported, because its name is not the name of a Python module: "
                "rename the file (letters, digits and _)."
            )
    lines = f"import sys\n\nsys.path.insert(0, {folder!r})\nfrom {module} import {first}"
    target = ".".join([first, *rest])
    return f"{lines}\n\n_target = {target}\n" if re.fullmatch(r"[\w.]+", target) else lines


def _arguments(code: UserCodeName, what: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return Python source for the arguments of a call: gold answer, answer and question, each for its parameter.

    Args:
        code: The function.
        what: Names of its parameters without a default (``needed``), and of its positional-only ones (``positional``).
        names: Names of its parameters.

    Raises:
        ConfigurationError: The parameters do not fit.
    """
    gold = next((name for name in names if name in GOLDS), None)
    if gold is None and "answer" in names and any(name in ANSWERS for name in names if name != "answer"):
        gold = "answer"  # another parameter takes the answer
    answer = next((name for name in names if name in ANSWERS and name != gold), None)
    question = next((name for name in names if name in QUESTIONS), None)
    if gold is None or answer is None:
        if len(names) < 2:
            raise ConfigurationError(
                f"{code.written} has the parameters ({', '.join(names)}): expected a function of (gold, answer), or "
                "one with a parameter `completions`, as TRL calls reward functions."
            )
        gold, answer = names[:2]
    taken = {gold: "gold", answer: "answer", **({question: "question"} if question else {})}
    if missing := [name for name in what["needed"] if name not in taken]:
        raise ConfigurationError(
            f"{code.written} also needs {', '.join(missing)}: expected a function of (gold, answer) and optionally "
            f"question. Write a function with these parameters that calls {code.written}, and audit that function."
        )
    return ", ".join(value if name in what["positional"] else f"{name}={value}" for name, value in taken.items())


def _trl(code: UserCodeName, what: Mapping[str, Any], call: str) -> str:
    """Return Python source whose function ``grade`` calls a TRL reward function with one completion (a conversation).

    Every data-set column among the function's parameters holds the gold answer.
    """
    names = what["names"]
    columns = [name for name in names if name in _COLUMNS] or (list(_COLUMNS) if what["any"] else [])
    known = {
        "completions": '[[{"role": "assistant", "content": answer}]]',
        "prompts": '[[{"role": "user", "content": question}]]',
        "prompt": '[[{"role": "user", "content": question}]]',
        "completion_ids": "[list(answer.encode())]",
        **dict.fromkeys(columns, "[gold]"),
    }
    if missing := [name for name in what["needed"] if name not in known]:
        raise ConfigurationError(
            f"{code.written} needs the columns {', '.join(missing)}, which an audit does not provide; it "
            f"provides {', '.join(_COLUMNS)}. Write a reward function with only these parameters that "
            f"calls {code.written}, and audit that function."
        )
    given = {name: value for name, value in known.items() if name in names or what["any"]}
    arguments = ", ".join(f"{name}={value}" for name, value in given.items())
    return f'\n\ndef grade(gold, answer, question=""):\n    (score,) = {call.format(arguments)}\n    return score\n'
