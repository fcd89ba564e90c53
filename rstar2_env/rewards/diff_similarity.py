"""``diff_similarity``: similarity of the policy's patch to the patch that solved the issue (SWE-RL, arXiv 2502.18449).

The score is -1 if there is no edit in the right format, or if an edit matches nothing or replaces a text with itself.
Otherwise it is the mean, over all files that either patch changes, of ``SequenceMatcher(None, own, gold,
autojunk=False).ratio()`` on the hunks of their unified diffs, with ``context`` lines around each change; a file that
only one patch changes counts as 0. The policy writes, for each file, its path after ``###`` and then

    <<<<<<< SEARCH
    the current lines
    =======
    the new lines
    >>>>>>> REPLACE

The searched lines must match from the start of a line, and every match is replaced, as in the authors' code. That code
also requires a ``<think>`` and a ``<solution>`` block, which this component does not.
``problem.meta["files"]`` maps each file's path to its text; the gold answer is a unified diff, or
``problem.meta["fixed"]`` maps the paths to the fixed texts.

The module parses the edits, applies them to the files, and compares the two patches.
"""

# This module is longer than most parts because it parses edits, applies them and compares the patches.

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.rewards.base import REWARDS, Need, RewardContext, problem_of
from rstar2_env.rewards.texts import last_turn

_FILE = re.compile(r"^#{2,}\s*`?([^\s`]+)`?\s*$", re.MULTILINE)
_EDIT = re.compile(r"^<{7} SEARCH\n(.*?)^={7}\n(.*?)^>{7} REPLACE\s*$", re.MULTILINE | re.DOTALL)
_HUNK = re.compile(r"^(@@ .*? @@).*$")
_GOLD_FILE = re.compile(r"^\+\+\+ (?:b/)?([^\t\n]+).*$", re.MULTILINE)


@dataclass(frozen=True)
class DiffSimilarity(CheckedOptions):
    """Similarity of the policy's patch to the gold patch; -1 for a patch without effect (SWE-RL, arXiv 2502.18449).

    Attributes:
        context: Number of unchanged lines around each change that are also compared.
        broken: Score if there is no edit, or an edit matches nothing or changes nothing.
    """

    context: int = option(3, least=0)
    broken: float = -1.0

    needs: ClassVar[frozenset[Need]] = frozenset({"problem"})

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return ``broken``, or a number from 0 to 1.

        Raises:
            ConfigurationError: The problem has no files.
        """
        problem = problem_of(ctx, "diff_similarity")
        files = problem.meta.get("files")
        if not isinstance(files, Mapping):
            raise ConfigurationError(
                "The reward component 'diff_similarity' needs the files of each problem as "
                f"meta['files'], a mapping of paths to texts, but the problem {problem.id!r} does not "
                "have them."
            )
        edited = edited_files(last_turn(episode), files)
        own = {path: self.changes(files[path], text) for path, text in edited.items()} if edited else {}
        if not any(own.values()):
            return self.broken
        fixed = problem.meta.get("fixed")
        if isinstance(fixed, Mapping):
            gold = {path: self.changes(str(files.get(path, "")), text) for path, text in fixed.items()}
        else:
            gold = _of_diff(problem.answer)
        paths = {path for path, changes in (*own.items(), *gold.items()) if changes}
        return sum(similarity(own.get(path, ""), gold.get(path, "")) for path in paths) / len(paths)

    def changes(self, before: str, after: str) -> str:
        """Return the hunks of the unified diff between two versions of a file."""
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=self.context)
        return "\n".join(list(lines)[2:])


def similarity(own: str, gold: str) -> float:
    """Return the ``SequenceMatcher`` ratio of two diffs, in [0, 1]; 0 if one is empty."""
    return difflib.SequenceMatcher(None, own, gold, autojunk=False).ratio() if own and gold else 0.0


def edited_files(text: str, files: Mapping[str, str]) -> dict[str, str] | None:
    """Return the new text of each edited file, keyed by path; ``None`` without an edit or if an edit fails."""
    heads = list(_FILE.finditer(text))
    found: dict[str, str] = {}
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        part = text[head.end() : end]
        for search, replace in _EDIT.findall(part):
            now = found.get(head[1], files.get(head[1]))
            # A line break before both the text and the searched lines makes every match begin at the start of a line.
            wanted, instead = (f"\n{lines.removesuffix(chr(10))}" for lines in (search, replace))
            if now is None or not search or search == replace or wanted not in f"\n{now}":
                return None
            found[head[1]] = f"\n{now}".replace(wanted, instead)[1:]
    return found or None


def _of_diff(diff: str) -> dict[str, str]:
    """Return each file's hunks in a unified diff, without the function names that may follow the line numbers."""
    heads = list(_GOLD_FILE.finditer(diff))
    ends = [*(head.start() for head in heads[1:]), len(diff)]
    found = {}
    for head, end in zip(heads, ends, strict=False):
        lines = diff[head.end() + 1 : end].splitlines()
        kept = [_HUNK.sub(r"\1", line) for line in lines if line[:1] in tuple("+- @") and not line.startswith("--- ")]
        found[head[1]] = "\n".join(kept)
    return found


REWARDS.register("diff_similarity", DiffSimilarity)
