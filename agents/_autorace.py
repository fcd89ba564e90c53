"""AutoRace: grades chains of thought by criteria that a model wrote. LLM Reasoners (arXiv 2404.05221), section 4.

``write_criteria`` shows a model wrong chains with reference solutions, asks for the errors of each, and then for
criteria that summarize the errors. ``AutoRace`` checks a chain against all criteria in one request; in the paper, a
chain is correct if it meets all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from rstar2_env.core.options.declare import Rule, checked
from rstar2_env.dialects import Dialect

from ._asked import Asked
from ._scorers import SCORERS

CRITERIA = (
    "Every step follows from the question or from steps before it.",
    "Every calculation is right.",
    "The answer is what the question asks for.",
)
"""General criteria for any chain; ``write_criteria`` returns criteria for a specific task."""
GRADE = (
    "{question}\n\nProposed solution:\n{chain}\n\nCriteria:\n{criteria}\n\nDoes the solution meet them? Write one line "
    "for each criterion: its number, and Yes or No."
)
ERRORS = (
    "{question}\n\nReference solution:\n{reference}\n\nA wrong solution:\n{chain}\n\nSay in one or two sentences which "
    "errors the wrong solution makes."
)
SUMMARY = (
    "These errors were found in solutions:\n{errors}\n\nWrite a numbered list of criteria that a right solution meets, "
    "one line each."
)
_LINE = re.compile(r"^\s*(\d+)\s*[.):]?\s*(.+?)\s*$", re.MULTILINE)


class AutoRace:
    """Asks the inner agent which criteria a chain of thought meets.

    Args:
        criteria: Criteria that a correct chain meets.
    """

    @checked
    def __init__(self, criteria: Annotated[Sequence[str], Rule(least=1)] = CRITERIA) -> None:
        self.criteria = tuple(criteria)

    def __call__(self, asked: Asked, question: str, chain: str) -> float:
        """Return the share of criteria that the chain meets; criteria missing from the reply count as not met."""
        listed = "\n".join(f"{number}. {text}" for number, text in enumerate(self.criteria, 1))
        reply = asked.ask(GRADE.format(question=question, chain=chain, criteria=listed))
        met = {int(number[:9]) for number, said in _LINE.findall(reply) if re.match(r"\W*yes\b", said, re.IGNORECASE)}
        return len(met & set(range(1, len(self.criteria) + 1))) / len(self.criteria)


def write_criteria(
    agent: Any, wrong: Sequence[tuple[str, str, str]], *, dialect: Dialect | str = "rstar2", seed: int = 0
) -> tuple[str, ...]:
    """Let a model derive grading criteria for ``AutoRace`` from wrong solutions.

    Args:
        agent: The agent that writes the criteria: its name, optionally with options, or your own agent.
        wrong: One tuple for each example problem: the question, a wrong chain of thought and a reference solution.
        dialect: The dialect of the agent.
        seed: Seed of the requests.

    Returns:
        The criteria that the model lists; if it lists none, the general criteria ``CRITERIA``.
    """
    asked = Asked(agent, dialect)
    asked.reset("", {}, seed=seed)
    errors = [
        asked.ask(ERRORS.format(question=question, chain=chain, reference=reference)).strip()
        for question, chain, reference in wrong
    ]
    reply = asked.ask(SUMMARY.format(errors="\n".join(f"- {error}" for error in errors)))
    return tuple(text for _, text in _LINE.findall(reply)) or CRITERIA


SCORERS.register("autorace", AutoRace)
