"""Problems and where they come from: JSONL files, records in memory, and procedural families.

``load_problems`` is the way in. A source gives problems by index, by id, and at random from a generator of the caller.
"""

from __future__ import annotations

from rstar2_env.problems.families import Family, families
from rstar2_env.problems.load import ProblemSpec, load_problems
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.procedural import SPLITS, Draft, ProceduralSource, source_name, split_of
from rstar2_env.problems.records import as_problem
from rstar2_env.problems.source import FiniteSource, FixedSource, ProblemSource, UnknownProblemError, choose

__all__ = [
    "SPLITS",
    "Draft",
    "Family",
    "FiniteSource",
    "FixedSource",
    "Problem",
    "ProblemSource",
    "ProblemSpec",
    "ProceduralSource",
    "UnknownProblemError",
    "as_problem",
    "choose",
    "families",
    "load_problems",
    "source_name",
    "split_of",
]
