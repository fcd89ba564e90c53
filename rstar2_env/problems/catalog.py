r"""Named data sets: for each, its repository on the Hugging Face Hub, its columns and its licence.

No data set is bundled: it is downloaded or read from a copy. ``NamedSet.doubts`` lists the facts that could not be
confirmed from the Hub's pages and from public code that loads the set. A licence is copied from the set's page and is
not legal advice. A benchmark only has the split ``test``, whatever that split's name on the Hub, so that no run trains
on a benchmark by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.core.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A data set on the Hugging Face Hub.

    Attributes:
        name: Name by which ``load_problems`` finds the data set.
        title: A short description.
        hub: ``owner/name`` on the Hub.
        splits: Name of each split in this package, mapped to its name on the Hub.
        columns: Each field of a problem, mapped to the column from which it is read.
        config: The configuration on the Hub, if there are several.
        options: Further options of ``load_problems``: conditions, ``unique``, ``keep``.
        licence: The licence that the set's page states.
        problems: Number of problems of each split, if it is known.
        doubts: Unconfirmed facts; empty if there are none.
    """

    name: str
    title: str
    hub: str
    splits: Mapping[str, str]
    columns: Mapping[str, str]
    config: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    licence: str = "not stated"
    problems: Mapping[str, int] = field(default_factory=dict)
    doubts: str = ""


_PROBLEM = {"question": "problem", "answer": "answer"}
_TEST = {"test": "test"}
_TEST_AS_TRAIN = {"test": "train"}

NAMED_SETS: Mapping[str, NamedSet] = {
    entry.name: entry
    for entry in (
        NamedSet(
            "dapo-math-17k",
            "DAPO-Math-17k, English, each problem once (the original repeats each about a hundred times)",
            "open-r1/DAPO-Math-17k-Processed",
            {"train": "train"},
            {"question": "prompt", "answer": "solution"},
            config="en",
            options={"keep": ["data_source", "ability"]},
            licence="apache-2.0 (of BytedTsinghua-SIA/DAPO-Math-17k, from which it is made)",
            problems={"train": 14116},
            doubts="The page of the processed set states no licence of its own.",
        ),
        NamedSet(
            "openmathreasoning",
            "OpenMathReasoning: AoPS problems with an extracted answer, each once",
            "nvidia/OpenMathReasoning",
            {"train": "cot"},
            {"question": "problem", "answer": "expected_answer"},
            options={
                "keep": ["problem_type", "problem_source", "pass_rate_72b_tir"],
                "where": ["problem_type == has_answer_extracted"],
                "unique": True,
            },
            licence="cc-by-4.0",
            doubts="49 GB to download, since each problem comes with many solutions; the column pass_rate_72b_tir is "
            "in later revisions only.",
        ),
        NamedSet(
            "deepscaler",
            "DeepScaleR preview: AIME and AMC before 2023, Omni-MATH, STILL",
            "agentica-org/DeepScaleR-Preview-Dataset",
            {"train": "train"},
            _PROBLEM,
            options={"skip_incomplete": True},
            licence="mit",
            problems={"train": 40315},
            doubts="Users of the hub report a few wrong answers, and six rows without one.",
        ),
        NamedSet(
            "gsm8k",
            "GSM8K: grade school word problems",
            "openai/gsm8k",
            {"train": "train", "test": "test"},
            {"question": "question", "answer": "answer|after:####", "solution": "answer|before:####"},
            config="main",
            licence="mit",
            problems={"train": 7473, "test": 1319},
        ),
        NamedSet(
            "math-500",
            "MATH-500: the 500 problems of MATH that 'Let's Verify Step by Step' tested on",
            "HuggingFaceH4/MATH-500",
            _TEST,
            {**_PROBLEM, "id": "unique_id"},
            problems={"test": 500},
            licence="not confirmed (MATH itself is mit)",
            doubts="The licence could not be confirmed: the set's own page was not seen.",
        ),
        NamedSet(
            "aime24",
            "AIME 2024, I and II",
            "HuggingFaceH4/aime_2024",
            _TEST_AS_TRAIN,
            _PROBLEM,
            problems={"test": 30},
            doubts="The licence is not stated on the page.",
        ),
        NamedSet(
            "aime25",
            "AIME 2025, I and II",
            "math-ai/aime25",
            _TEST,
            _PROBLEM,
            problems={"test": 30},
            doubts="The licence is not stated on the page.",
        ),
        NamedSet(
            "amc23",
            "AMC 12 of 2023, the problems with a whole number as answer",
            "math-ai/amc23",
            _TEST,
            {"question": "question", "answer": "answer"},
            problems={"test": 40},
            licence="not confirmed",
            doubts="The licence could not be confirmed: the set's own page was not seen.",
        ),
        NamedSet(
            "hmmt25",
            "HMMT February 2025",
            "MathArena/hmmt_feb_2025",
            _TEST_AS_TRAIN,
            {**_PROBLEM, "id": "problem_idx"},
            licence="cc-by-nc-sa-4.0",
            problems={"test": 30},
        ),
        NamedSet(
            "minerva",
            "Minerva's OCWCourses: university science and mathematics",
            "math-ai/minervamath",
            _TEST,
            {"question": "question", "answer": "answer"},
            problems={"test": 272},
            licence="not confirmed",
            doubts="The licence could not be confirmed: the set's own page was not seen.",
        ),
        NamedSet(
            "olympiadbench",
            "OlympiadBench: open-ended, text-only, mathematics, English, competitions; one answer each",
            "Hothan/OlympiadBench",
            _TEST_AS_TRAIN,
            {"question": "question", "answer": "final_answer.0"},
            config="OE_TO_maths_en_COMP",
            options={
                "keep": ["subfield", "answer_type", "unit", "is_multiple_answer", "error"],
                "where": ["is_multiple_answer == false"],
            },
            licence="apache-2.0",
            problems={"test": 581},
            doubts="Of the 674 rows, those with several answers are left out; the count of 581 is a third party's.",
        ),
    )
}
"""Every named data set."""


def named_set(name: str) -> NamedSet:
    """Return the data set with this name.

    Raises:
        UnknownNameError: There is no such data set; the message suggests the closest name.
    """
    if name not in NAMED_SETS:
        raise UnknownNameError("set of problems", name, NAMED_SETS)
    return NAMED_SETS[name]
