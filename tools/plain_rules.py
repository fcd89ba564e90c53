"""Mechanical causes of odd English, which ``tools/plain_words.py`` looks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

DOCSTRING = "\1"
"""Stands in the masked text for the opening quotes of a docstring."""


@dataclass(frozen=True)
class Rule:
    """One mechanical cause of odd English.

    Attributes:
        name: Identifier of the rule.
        pattern: Regular expression over prose; a space matches any whitespace, line breaks included.
        suggestion: Replacements to consider.
        bad: An example that the rule finds.
        good: The same example in plain English, which the rule leaves alone.
    """

    name: str
    pattern: str
    suggestion: str
    bad: str
    good: str

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern, in which a space matches any whitespace."""
        return re.compile(self.pattern.replace(" ", r"[ \n]+"), re.MULTILINE)


_WHAT = r"What (?!if\b)(?:[a-z]+|`)"
_START = rf"(?:{DOCSTRING}|^\s+\*{{0,2}}\w+(?:, \w+)*: )"

# plain: off (the examples)
RULES = (
    Rule(
        "what-clause",
        rf"{_START}{_WHAT}",
        "name the thing or start with a verb: 'Describe ...', 'Options of ...', 'Result of ...'",
        '"""What is to be said of a part."""',
        '"""Describe a part."""',
    ),
    Rule(
        "who-clause",
        rf"{_START}(?:Who|Whose) (?!if\b)[a-z]+",
        "name the role: 'Player', 'Owner of ...', 'Process that ...'",
        '"""Who plays the episodes of a step."""',
        '"""The process that plays the episodes of a step."""',
    ),
    Rule(
        "of-first",
        rf"{_START}Of (?:a|an|the|all|each|every|what|those|several|two|many|its|this|these|some)\b",
        "put the head first: 'Number of ...', 'Share of ...'",
        '"""Of an episode, how many tokens it has."""',
        '"""Number of tokens of an episode."""',
    ),
    Rule(
        "those-of",
        rf"{_START}(?:Those|That) (?:of|that|which|with|in) ?",
        "repeat the noun: 'The options of ...', 'Metrics of ...'",
        '"""Those of ``ppo_clip``, and the mean weight."""',
        '"""The metrics of ``ppo_clip``, and the mean weight."""',
    ),
    Rule(
        "what-came-of",
        r"\bwhat (?:came|comes|becomes|became) of\b",
        "result of, outcome of",
        "It prints what came of each run.",
        "It prints the result of each run.",
    ),
    Rule(
        "what-is-to-be",
        r"\b[Ww]hat is to be\b",
        "name the thing: 'the text to copy', 'the question'",
        "Copy what is to be changed.",
        "Copy the text to change.",
    ),
    Rule(
        "that-which",
        r"\bthat which\b",
        "the one that, the policy that",
        "The ratio holds the policy to that which drew the tokens.",
        "The ratio keeps the policy close to the one that sampled the tokens.",
    ),
    Rule(
        "of-whose",
        r"\b(?:of|by|with|from|to) whose\b",
        "two clauses, or 'the X of the Y that'",
        "A run with the state of whose optimizer training begins.",
        "A run whose optimizer state training starts from.",
    ),
    Rule(
        "of-which-those",
        r"\b(?:by|up to|of|to|from|on|in|with|for) which those\b",
        "a sentence of its own, with the noun repeated",
        "Updates by which those that sample may be older.",
        "Number of updates by which the sampling policy may lag.",
    ),
    Rule(
        "whoever",
        r"\b(?:[Ww]hoever|[Ww]homever|[Ww]hosoever)\b",
        "the caller, the client, any process that, if",
        "The log is for whoever reads it later.",
        "The log is for later readers.",
    ),
    Rule(
        "nobody",
        r"\b(?:[Nn]obody|[Ss]omebody)\b",
        "no caller, no process, unknown, another user",
        "``None`` if nobody knows the answer.",
        "``None`` if the answer is unknown.",
    ),
    Rule(
        "told-of",
        r"\b(?:is|are|was|were|be|been|being|not) (?:told|heard|said) (?:of|by|about)\b",
        "receives, is notified of, is reported, described",
        "The hook is told of each update.",
        "The hook is notified of each update.",
    ),
    Rule(
        "tells-of",
        r"\b(?:tell|tells|told|hear|hears|heard) of\b",
        "reports, receives",
        "The kernel does not tell of waiting.",
        "The kernel does not report waiting time.",
    ),
    Rule(
        "knows-of",
        r"\b(?:know|knows|known|knew)(?: nothing)? of\b",
        "has, records, is aware of, does not depend on",
        "The loss knows nothing of processes.",
        "The loss does not depend on processes.",
    ),
    Rule("anew", r"\banew\b", "again, from scratch, new", "The run begins anew.", "The run starts from scratch."),
    Rule(
        "beside",
        r"\b[Bb]eside\b",
        "next to, alongside, in addition to, while ... runs",
        "A test that runs beside others.",
        "A test that runs in parallel with others.",
    ),
    Rule(
        "besides-first",
        r"\bBesides\b",
        "In addition, ... also",
        "Besides, it writes a log.",
        "It also writes a log.",
    ),
    Rule(
        "counted-apart",
        r"\b(?:counted|named|listed|told|tell|held|reported|counts|keeps|shown|set) apart\b",
        "separately, distinguish",
        "Injected faults are counted apart.",
        "Injected faults are counted separately.",
    ),
    Rule(
        "goes-over",
        r"\b(?:go|goes|going|went) over (?:it|them|that|those|the file|the one|what|everything|all)\b",
        "overrides",
        "An option goes over the file.",
        "An option overrides the file.",
    ),
    Rule(
        "goes-on",
        r"\b(?:go|goes|gone|going|went) on(?: (?:with|from|where|as|at|after|in|until|when|if)\b|(?=[.,;:)]))",
        "continues, resumes",
        "The run goes on from its last checkpoint.",
        "The run resumes from its last checkpoint.",
    ),
    Rule(
        "comes-to",
        r"\b(?:come|comes|came|coming) to (?:be|what|nothing|that|it)\b|\bwhat (?:\w+ ){1,2}(?:comes|came) to\b",
        "is, becomes, yields, result",
        "It writes what a run came to.",
        "It writes the result of a run.",
    ),
    Rule(
        "gives-way",
        r"\b(?:give|gives|gave|given|giving) way\b",
        "is deprioritized, is replaced by, yields",
        "A program that gave way to others.",
        "A program that was deprioritized.",
    ),
    Rule(
        "left-off",
        r"\b(?:left|leave|leaves|leaving) off\b",
        "carried over, interrupted, omitted",
        "A group that was left off is played in the next step.",
        "A group that was carried over is played in the next step.",
    ),
    Rule(
        "takes-up",
        r"\b(?:take|takes|took|taken|taking) up (?!to\b|space|room|memory|time|most|half|all)",
        "resumes, starts from, continues",
        "A resumed run takes up its last state.",
        "A resumed run starts from its last state.",
    ),
    Rule(
        "stands",
        r"\b(?:stand|stands|stood) (?:in|at|there|between|where|on)\b|\bas (?:it|they) (?:stand|stands|stood)\b",
        "is in, appears in; as is, unchanged, verbatim",
        "The answer stands in the last line, and is graded as it stands.",
        "The answer is in the last line and is graded verbatim.",
    ),
    Rule(
        "is-there",
        r"\b(?:that|which|it|one|none|they|those|is|are) (?:is|are|was|were|not) there(?=[.,;:)]| already\b| and\b)",
        "exists, is available, is present",
        "An answer that is there already.",
        "An answer that already exists.",
    ),
    Rule(
        "is-no",
        r"(?<![Tt]here\s)(?<!`)\b(?:is|are|was|were) no (?!longer|more|less|fewer|better|worse|different|later|earlier|"
        r"larger|smaller|slower|faster|older|newer|such|need|way|matter|doubt|one|use|point|place|reason|room)[a-z]+"
        r"(?=[.,;:)]| (?:of|that|but|and|in|for)\b)",
        "is not a ...",
        "A timeout is no failure of the policy.",
        "A timeout is not a failure of the policy.",
    ),
    Rule(
        "has-not",
        r"\b(?:has|have|had) not (?:the|a|an|any|its|their)\b",
        "does not have, lacks",
        "It has not the newest weights.",
        "It does not have the newest weights.",
    ),
    Rule(
        "verb-not",
        r"\b(?:needs|knows|wants|makes|takes|finds|says|holds|fits) not\b(?! only)",
        "does not need, does not know",
        "The loss needs not the reference.",
        "The loss does not need the reference.",
    ),
    Rule(
        "none-where",
        r"(?:``(?:None|True|False|0|0\.0|-1|\"\"|\(\)|\[\])``|\b[Ee]mpty|\b[Nn]othing|\b[Nn]one) where\b",
        "if, when",
        "``None`` where the answer is unknown.",
        "``None`` if the answer is unknown.",
    ),
    Rule(
        "as-far-as",
        r"\bas far as (?!possible\b|Python|the eye)",
        "if known, to the extent that, up to",
        "Peak memory, as far as it is known.",
        "Peak memory, if known.",
    ),
    Rule(
        "at-the-most",
        r"\bat the (?:least|most)(?=[.,;:)])",
        "at least, at most",
        "It waits for 4 s, at the most.",
        "It waits for at most 4 s.",
    ),
    Rule(
        "made-of",
        r"\b(?:is|are|was|were|be|been|[a-z]+,) made of\b",
        "built from, derived from, consists of",
        "The page is made of the run's files.",
        "The page is built from the run's files.",
    ),
    Rule(
        "archaic",
        r"\b(?:upon|thereof|whereof|wherein|hitherto|whence|whither|mend|mends|mended|mending|oftener|likewise)\b",
        "on, of it, in which, so far, from which, fix, more often, also",
        "A failing test is mended first.",
        "A failing test is fixed first.",
    ),
    Rule(
        "hand-over",
        r"\b[Hh]and(?:s|ed|ing)?[- ]overs?(?: of)? (?:the )?weights\b|\b[Hh]and-overs?\b",
        "weight sync, syncs weights",
        "The engine waits for the next hand-over.",
        "The engine waits for the next weight sync.",
    ),
    Rule(
        "same-of",
        r"\bof the same with\b|\bthe same of\b",
        "repeat the noun",
        "The rewards, and the same of each component.",
        "The rewards, and the reward of each component.",
    ),
)
# plain: on
