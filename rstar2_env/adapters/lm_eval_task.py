"""lm-evaluation-harness (``lm-eval`` 0.4): an environment's problems as a task, graded by the environment.

``rstar2 export --env ID --to lm-eval`` writes the environment's prompts, the task's YAML, and a ``grade.py`` whose
``process_results`` plays the model's text as the only turn of an episode. Covered: the reward, whether the answer is
right, and whether there is an answer; episodes that do not measure the model are left out of every mean. Not covered:
tools and further turns, since the harness has neither. The system message does not offer tools, and a turn that calls
one anyway ends the episode as ``turns``. The statuses of tool calls are not reported. Environments whose episodes
continue after a turn without a call are rejected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rstar2_env.adapters.base.single_turn import METRICS, grade_single_turn, single_turn_docs

if TYPE_CHECKING:
    from rstar2_env.adapters.base.exported import Exported

_LONGEST = 2048

_YAML = """\
task: {name}
custom_dataset: !function grade.dataset
output_type: generate_until
test_split: test
description: "{{{{system}}}}"
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{gold}}}}"
process_results: !function grade.process_results
generation_kwargs:
  until: []
  max_gen_toks: {longest}
  do_sample: false
metric_list:
{metrics}
metadata:
  version: 1.0
"""
_METRIC = """\
  - metric: {name}
    aggregation: mean
    higher_is_better: {better}
"""
_GRADE = '''\
"""Grades {env} of rstar2-env; written by `rstar2 export --env {env} --to lm-eval`."""

from pathlib import Path

from datasets import Dataset

from rstar2_env.adapters.lm_eval_task import process_results

__all__ = ["dataset", "process_results"]


def dataset(**_):
    """The problems, as the environment asks them."""
    return {{"test": Dataset.from_json(str(Path(__file__).with_name("{name}.jsonl")))}}
'''


def files(what: Exported) -> dict[str, str]:
    """Return the files of the harness's task: the text of each file, by file name.

    Raises:
        ConfigurationError: An episode continues after an answer, or ``episodes`` is missing although the source of
            problems is unlimited.
    """
    name = what.name
    docs = single_turn_docs(what, "lm-evaluation-harness")
    metrics = "".join(_METRIC.format(name=one, better=str(one != "no_answer").lower()) for one in METRICS)
    return {
        f"{name}.yaml": _YAML.format(name=name, longest=_LONGEST, metrics=metrics.rstrip("\n")),
        f"{name}.jsonl": "".join(json.dumps(doc, default=str) + "\n" for doc in docs),
        "grade.py": _GRADE.format(env=what.env, name=name),
    }


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Grade the model's text for one problem; the harness calls this.

    Args:
        doc: A record of the file of problems.
        results: List with the model's text as its first element.

    Returns:
        The metrics of ``grade_single_turn``; {} excludes the problem from every mean.
    """
    return grade_single_turn(doc, str(results[0]))
