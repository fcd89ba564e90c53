"""Write the problems of an environment as task folders of Harbor, graded by the environment, with reference solutions.

``rstar2 export --env ID --to harbor`` writes a folder for each problem. Harbor's agent writes its reply to
``/app/answer.txt``; ``tests/grade.py`` plays this text as the only turn of an episode, so the environment's own grader
gives the rewards ``reward``, ``correct`` and ``no_answer``. Not covered: the environment's tools, further turns and
statuses of calls, since Harbor's agents have their own tools.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rstar2_env.adapters.base.single_turn import grade_single_turn, reference_turn, single_turn_docs
from rstar2_env.core.version import __version__

if TYPE_CHECKING:
    from rstar2_env.adapters.base.exported import Exported

_TOML = """\
schema_version = "1.4"

[task]
name = {name}
description = {summary}

[metadata]
environment = {env}
problem = {id}

[agent]
timeout_sec = 900.0

[verifier]
timeout_sec = 300.0

[environment]
build_timeout_sec = 1200.0
"""
_INSTRUCTION = """\
{text}

Write your reply, with the final answer in the form described above, into the file /app/answer.txt.
"""
_DOCKERFILE = f"""\
FROM python:3.12-slim
RUN pip install --no-cache-dir rstar2-env=={__version__}
WORKDIR /app
"""
_TEST = """\
#!/bin/bash
python3 /tests/grade.py
"""
_GRADE = '''\
"""Grades a problem of {env} of rstar2-env; written by `rstar2 export --env {env} --to harbor`."""

from rstar2_env.adapters.harbor.export import grade_answer

grade_answer("/tests/problem.json", "/app/answer.txt", "/logs/verifier/reward.json")
'''
_SOLVE = """\
#!/bin/bash
cat > /app/answer.txt << '{mark}'
{text}
{mark}
"""
_README = """\
# {distribution}

{count} tasks for Harbor 0.25, from `{env}` of rstar2-env. Written by `rstar2 export --env {env} --to harbor`.

```bash
harbor run -p . -a oracle
```

The reward is that of the environment for the text in `/app/answer.txt`, as the only turn of an episode. Left out: the
tools of the environment (agents of Harbor bring their own), statuses of calls, injected faults, further turns and the
seeds of the model. An episode whose grader was not available writes no reward, which Harbor records as an error.
Harbor runs the tests in the container of the agent. {solved} of the tasks have a reference solution.
"""


def files(what: Exported) -> dict[str, str]:
    """Return the files of all tasks, with a folder for each task: the text of each file, by its path.

    Raises:
        ConfigurationError: An episode continues after an answer, or ``episodes`` is missing although the source of
            problems is unlimited.
    """
    docs = single_turn_docs(what, "Harbor")
    made: dict[str, str] = {}
    solved = 0
    for number, doc in enumerate(docs):
        folder = f"{what.distribution}-{number:0{len(str(len(docs) - 1))}d}"
        text = "\n\n".join(part for part in (doc["system"], doc["prompt"]) if part)
        words = {"name": f"rstar2/{folder}", "summary": what.summary, "env": what.env, "id": doc["id"]}
        made |= {
            # JSON strings are valid TOML strings.
            f"{folder}/task.toml": _TOML.format(**{name: json.dumps(value) for name, value in words.items()}),
            f"{folder}/instruction.md": _INSTRUCTION.format(text=text),
            f"{folder}/environment/Dockerfile": _DOCKERFILE,
            f"{folder}/tests/test.sh": _TEST,
            f"{folder}/tests/grade.py": _GRADE.format(env=what.env),
            f"{folder}/tests/problem.json": json.dumps(doc, default=str) + "\n",
        }
        if (turn := reference_turn(doc)) is not None:
            solved += 1
            mark = "END"
            while mark in turn:
                mark += "_"
            made[f"{folder}/solution/solve.sh"] = _SOLVE.format(mark=mark, text=turn)
    readme = _README.format(distribution=what.distribution, env=what.env, count=len(docs), solved=solved)
    return {"README.md": readme, **made}


def grade_answer(problem: str | Path, answer: str | Path, rewards: str | Path) -> None:
    """Grade a reply, and write its rewards as JSON; if the grader was not available, do not write the file.

    Args:
        problem: File of the problem, ``tests/problem.json``.
        answer: File with the reply; a missing file is an empty reply.
        rewards: File to write.
    """
    doc: dict[str, Any] = json.loads(Path(problem).read_text(encoding="utf-8"))
    file = Path(answer)
    turn = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    if metrics := grade_single_turn(doc, turn):
        Path(rewards).write_text(json.dumps(metrics) + "\n", encoding="utf-8")
    else:
        print("The grader was not available, so no reward is written.")
