"""Write an environment as an installable package for another framework.

Covered: ``verifiers`` (0.4): a taskset, an environment and a harness, with pyproject and README; ``lm-eval`` (0.4): a
task of single turns (``rstar2_env.adapters.lm_eval_task``); ``harbor`` (0.25): a folder for each problem
(``rstar2_env.adapters.harbor.export``). The package refers to the environment and its options, so it needs rstar2-env
at run time. Not covered: environments in a user's file, which an installed package cannot import; move such a file into
a package first.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rstar2_env.adapters import lm_eval_task
from rstar2_env.adapters.base.exported import Exported
from rstar2_env.adapters.harbor import export as harbor_tasks
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.files.outputs import begin_folder, check_folder
from rstar2_env.core.options.declare import Count, checked
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.core.options.user_code import user_code_name
from rstar2_env.core.secret import redacted
from rstar2_env.env.named import find_env
from rstar2_env.env.options import env_options
from rstar2_env.wrappers.make import make_env

_VERIFIERS_PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = {distribution}
version = "0.1.0"
description = {summary}
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["rstar2-env[verifiers]"]

[tool.setuptools]
py-modules = [{name}]
"""

_VERIFIERS_MODULE = '''\
"""{env} of rstar2-env for verifiers: a taskset, the environment that plays it, and the harness of its seat."""

from typing import Any

import verifiers.v1 as vf

from rstar2_env.adapters.verifiers import TextEnv, TextHarness, TextTask, TextTaskset, TextTasksetConfig

__all__ = ["{title}Env", "{title}Taskset", "TextHarness"]


class {title}Config(TextTasksetConfig):
    """Selects the problems (``first_seed``, ``tasks``), and configures the environment."""

    env: str = {env!r}
    options: dict[str, Any] = {options!r}
    wrappers: list[Any] = {wrappers!r}


class {title}Taskset(TextTaskset, vf.Taskset[TextTask, {title}Config]):
    """A task for every seed."""


class {title}Env(TextEnv):
    """Plays the turns in the environment."""
'''

_VERIFIERS_README = """\
# {distribution}

`{env}` of rstar2-env, for [verifiers](https://pypi.org/project/verifiers/) 0.4. Written by
`rstar2 export --env {env} --to verifiers`.

```bash
pip install .
vf-eval {distribution} -n 8 -r 4 -m MODEL --client.base-url http://127.0.0.1:8000/v1 --no-push --no-rich
```

`--no-push` keeps the results on your machine: without it, `vf-eval` uploads them. In Python:

```python
import verifiers.v1 as vf

env = vf.load_environment(vf.resolve_env_config({{"taskset": {{"id": "{distribution}", "tasks": 100}}}}))
```

In the taskset, `first_seed` and `tasks` choose the problems; `options` and `wrappers` configure the environment. The
reward is `environment_return`; the statuses of the tool calls are metrics (`status/ok`, `status/timeout`, ...), and
`trace.info["rstar2"]` holds the results of every turn. An episode whose environment was not available is recorded as a
`SandboxError`.

## The environment

{specification}
"""


def _verifiers(what: Exported) -> dict[str, str]:
    words = {**asdict(what), "title": what.title, "distribution": what.distribution}
    # JSON strings are valid TOML strings.
    quoted = {name: json.dumps(getattr(what, name)) for name in ("distribution", "summary", "name")}
    return {
        "pyproject.toml": _VERIFIERS_PYPROJECT.format(**quoted),
        f"{what.name}.py": _VERIFIERS_MODULE.format(**words),
        "README.md": _VERIFIERS_README.format(**words),
    }


TARGETS: Mapping[str, Callable[[Exported], dict[str, str]]] = MappingProxyType(
    {"verifiers": _verifiers, "lm-eval": lm_eval_task.files, "harbor": harbor_tasks.files}
)
"""Functions that make the files of a package, by framework name."""


@checked
def export_env(
    env: str,
    to: str,
    folder: str | Path,
    *,
    name: str = "",
    options: Mapping[str, Any] | None = None,
    wrappers: str | Sequence[PartSpec] = (),
    episodes: Count | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write an environment as a package of another framework.

    Args:
        env: A registered id, or a class in a module that is installed ("package.module:Name").
        to: The framework; see ``TARGETS``.
        folder: Output folder; it must be empty or not exist.
        overwrite: Replace an earlier export in the folder.
        name: Name of the package; by default derived from the name of the environment.
        options: Options of the environment.
        wrappers: Wrappers of the environment, innermost first, as for ``make_env``.
        episodes: Number of problems for ``lm-eval`` and ``harbor``; ``None``: all problems of a finite source.

    Returns:
        The written files.

    Raises:
        UnknownNameError: There is no such framework or environment.
        ConfigurationError: An option is invalid or not JSON-serializable, the environment is defined in a user's file,
            or the folder holds something other than an export.
    """
    if to not in TARGETS:
        raise UnknownNameError("export framework", to, TARGETS)
    own = user_code_name(env)
    if own is not None and own.file is not None:
        raise ConfigurationError(
            f"{env} is defined in a file, but an exported package can refer only to an installed module: "
            "put the file into an installed package, and write package.module:Name."
        )
    typed = env_options(find_env(env), options or {})
    made = make_env(env, wrappers=wrappers, **typed)
    specification = inspect.getdoc(type(made.unwrapped)) or ""
    made.close()
    try:
        written = redacted(json.loads(json.dumps([typed, [wrappers] if isinstance(wrappers, str) else list(wrappers)])))
    except TypeError as error:
        raise ConfigurationError(
            f"An option of the environment cannot be written as JSON: {error}. Pass it as text or as a number."
        ) from error
    what = Exported(env, written[0], written[1], _package_name(name or env), specification, episodes)
    target, texts = Path(folder), TARGETS[to](what)
    check_folder(target, "package", resume=None, overwrite=overwrite)
    begin_folder(target, "package", *texts)
    paths = []
    for file, text in texts.items():
        path = target / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _package_name(written: str) -> str:
    """Return the name of a package for an environment: ``rstar2_math_tool_v0`` for ``rstar2/MathTool-v0``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", written)
    name = re.sub(r"\W+", "_", words, flags=re.ASCII).strip("_").lower()
    if not name.isidentifier():
        raise ConfigurationError(
            f"The name {written!r} cannot be turned into the name of a Python package: pass a name that "
            "contains letters.",
            option="name",
        )
    return name
