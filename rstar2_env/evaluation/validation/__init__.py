"""Check whether an environment is fit to train on: check each of its problems, or perform checks of four levels.

    validate("rstar2/MathTool-v0", problems="train.jsonl")    # four checks of every problem: ``Validation``
    validate("rstar2/MathTool-v0", level=4)                   # levels 1 to 4 of OpenEnv's RFC 008: ``Report``

Covered: see ``problems`` and ``levels``, and docs/validation.md. Not covered: the results of a particular model.
"""

from __future__ import annotations

from rstar2_env.evaluation.validation.api import validate
from rstar2_env.evaluation.validation.bench import Bounds
from rstar2_env.evaluation.validation.levels import Report
from rstar2_env.evaluation.validation.problems import CHECKED, UNREADABLE, FailedCheck, Validation

__all__ = ["CHECKED", "UNREADABLE", "Bounds", "FailedCheck", "Report", "Validation", "validate"]
