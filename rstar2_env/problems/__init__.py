"""Problems and their sources: files, data sets, records in memory, procedural families, and mixtures of these.

``load_problems`` is the entry point. A source returns problems by index, by id, or at random with the caller's
generator.
"""

from __future__ import annotations

from rstar2_env.problems.catalog import NAMED_SETS, NamedSet
from rstar2_env.problems.families import FAMILIES, ProblemFamily
from rstar2_env.problems.files.stream import LazySource
from rstar2_env.problems.load import ProblemSpec, load_problems
from rstar2_env.problems.mixture import MixtureSource
from rstar2_env.problems.problem import Problem
from rstar2_env.problems.procedural import SPLITS, Draft, ProceduralSource, source_name, split_of
from rstar2_env.problems.records import as_problem
from rstar2_env.problems.source import FiniteSource, FixedSource, ProblemSource, UnknownProblemError, choices, choose

__all__ = [
    "FAMILIES",
    "NAMED_SETS",
    "SPLITS",
    "Draft",
    "FiniteSource",
    "FixedSource",
    "LazySource",
    "MixtureSource",
    "NamedSet",
    "Problem",
    "ProblemFamily",
    "ProblemSource",
    "ProblemSpec",
    "ProceduralSource",
    "UnknownProblemError",
    "as_problem",
    "choices",
    "choose",
    "load_problems",
    "source_name",
    "split_of",
]
