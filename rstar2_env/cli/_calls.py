"""Finds the subcommand of an ``rstar2`` command line and its form, and replaces names of earlier versions.

Some flags select a form of a subcommand. Each form is a separate command: ``rstar2 export --env ID`` does not share its
module, options and help with ``rstar2 export RUN``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FORMS: dict[str, dict[tuple[str, ...], str]] = {
    "export": {("--env",): "export_env", ("--to",): "export_episodes"},
    "serve": {("--env",): "serve", ("--mcp",): "serve_mcp"},
    "traces": {("--from",): "import_episodes"},
    "validate": {("--tokens",): "check_tokens"},
    "verify": {("--run", "--episode"): "replay", ("--run",): "reverify"},
}
"""For each subcommand that has several forms (separate commands): the flags that select a form, and the form's module.
The values of the flags become the first arguments of the form's command: ``--env ID`` becomes the argument ``ID``."""

FORM_EXAMPLES = {
    "export_env": "rstar2 export --env rstar2/MathTool-v0 --to verifiers --out math-tool",
    "export_episodes": "rstar2 export --to atif runs/demo/eval-grpo_roc --out trajectories",
    "import_episodes": "rstar2 traces --from atif trajectories --out traces.jsonl",
    "serve_mcp": "rstar2 serve --mcp rstar2/MathTool-v0",
    "check_tokens": "rstar2 validate --tokens runs/demo/grpo_roc",
    "replay": "rstar2 verify --run runs/demo/eval-grpo_roc --episode 12",
    "reverify": "rstar2 verify --run runs/demo/eval-grpo_roc --verifier numeric:tolerance=0.01",
}
"""Example command line for each command in ``FORMS``, keyed by the command's module."""

RENAMED: dict[str, tuple[str, str]] = {
    **{kind: (f"list {kind}", "list") for kind in ("trainers", "parts", "agents", "envs", "wrappers")},
    "show": ("view --text", "view"),
    "replay": ("verify --run RUN --episode EPISODE", "replay"),
    "reverify": ("verify --run RUN", "reverify"),
    "export-env": ("export --env ID", "export_env"),
    "serve-env": ("serve --env ID", "serve"),
    "check-tokens": ("validate --tokens RUN|MODEL", "check_tokens"),
}
"""New name and module of each subcommand that was renamed in the last version; the old name is still accepted."""

RENAMED_OPTIONS: dict[str, dict[str, str]] = {
    "eval": {"--n": "--samples"},
    "compare": {"--png": "--report"},
    "traces": {"--episode-budget": "--max-total-episodes", "--token-budget": "--max-total-tokens"},
    "audit": {"--deadline": "--grade-timeout", "--html": "--report"},
    "doctor": {"--minutes": "--timeout"},
    "validate": {"--html": "--report"},
    "view": {"--export": "--report"},
    "launch": {"--wait-s": "--timeout"},
    "serve": {"--idle": "--timeout"},
    "sandbox run": {"--wall": "--timeout"},
    "sandbox serve": {"--max-wall": "--max-timeout", "--judge-wall": "--judge-timeout", "--drain": "--drain-timeout"},
}
"""New name of each option that was renamed in the last version, keyed by subcommand and then by the old name. The old
names are still accepted."""

_SWITCHES_OF_SHOW = ("--text", "--json", "--pager", "--no-pager")

_IN_MINUTES = ("--minutes",)
"""Old names of options that took minutes; their new names take seconds."""


@dataclass(frozen=True, slots=True)
class TypedCall:
    """A parsed call of ``rstar2``: which command to run, with which arguments.

    Attributes:
        name: The subcommand; empty if there is none.
        module: Module of the subcommand in ``rstar2_env.cli``.
        arguments: All arguments for the module's command.
        notes: A note for each old name that was replaced.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_call(arguments: Sequence[str]) -> TypedCall:
    """Parse a command line: find the command to run, and replace old names with the new ones.

    Some flags select a form of a subcommand. Each form is a separate command: ``export --env`` runs ``export_env``.
    """
    at = next((place for place, word in enumerate(arguments) if not word.startswith("-")), None)
    if at is None:
        return TypedCall("", "", tuple(arguments))
    typed, words, notes = arguments[at], list(arguments[at + 1 :]), []
    if typed in RENAMED:
        new, module = RENAMED[typed]
        name, *more = new.split()
        notes.append(_note(f"`rstar2 {typed}`", f"`rstar2 {new}`"))
        if name not in FORMS:
            words = [*more, *words]
        for flags, form in FORMS.get(name, {}).items():
            words = _with_values_in_place(words, flags) if form == module else words
        if typed == "show":
            words = _with_episode(words)
    else:
        name, module = typed, typed.replace("-", "_")
        for flags, form in FORMS.get(name, {}).items():
            taken = _with_values_first(words, flags)
            if taken is not None:
                module, words = form, taken
                break
    words = _with_new_options(name, words, notes)
    return TypedCall(name, module, (*arguments[:at], name, *words), tuple(notes))


def _with_values_first(words: Sequence[str], flags: Sequence[str]) -> list[str] | None:
    """Return the arguments with the flags' values in front and the flags removed; ``None`` if a flag is missing."""
    end = words.index("--") if "--" in words else len(words)
    own, values = list(words[:end]), []
    for flag in flags:
        value = _taken(own, flag)
        if value is None:
            return None
        values += value
    return [*values, *own, *words[end:]]


def _with_values_in_place(words: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Return the arguments with the flags' values as positional arguments, in the order of ``flags``.

    If a flag is missing, its value was typed without the flag, among the other arguments. Therefore the other arguments
    are inserted at the position of the first missing flag.
    """
    end = words.index("--") if "--" in words else len(words)
    own = list(words[:end])
    values = [_taken(own, flag) for flag in flags]
    known = next((place for place, value in enumerate(values) if value is None), len(values))
    first, last = ([each for value in part for each in value or ()] for part in (values[:known], values[known:]))
    return [*first, *own, *last, *words[end:]]


def _taken(words: list[str], flag: str) -> list[str] | None:
    """Remove a flag and its value; return ``[value]``, ``[]`` without a value, or ``None`` if the flag is missing."""
    at = next((place for place, word in enumerate(words) if word.partition("=")[0] == flag), None)
    if at is None:
        return None
    word = words.pop(at)
    if "=" in word:
        return [word.partition("=")[2]]
    return [words.pop(at)] if words[at:] and not words[at].startswith("-") else []


def _with_episode(words: Sequence[str]) -> list[str]:
    """Put ``--episode`` before each argument of ``rstar2 show`` that is a number and not an option's value."""
    found: list[str] = []
    for word in words:
        before = found[-1] if found else ""
        is_value = before.startswith("-") and "=" not in before and before not in _SWITCHES_OF_SHOW
        found += ["--episode", word] if word.isdecimal() and not is_value else [word]
    return found


def _with_new_options(name: str, words: Sequence[str], notes: list[str]) -> list[str]:
    command = next((each for each in (f"{name} {words[0]}" if words else "", name) if each in RENAMED_OPTIONS), name)
    renamed = RENAMED_OPTIONS.get(command, {})
    end = words.index("--") if "--" in words else len(words)
    found: list[str] = []
    previous = ""
    for word in words[:end]:
        flag, equals, value = word.partition("=")
        if flag in renamed:
            notes.append(_note(f"{flag} of `rstar2 {command}`", renamed[flag]))
        if flag in renamed and flag in _IN_MINUTES:
            value = _seconds(value)
        elif previous in renamed and previous in _IN_MINUTES:
            flag = _seconds(flag)
        found.append(renamed.get(flag, flag) + equals + value)
        previous = word
    return [*found, *words[end:]]


def _seconds(minutes: str) -> str:
    try:
        return f"{60 * float(minutes):g}"
    except ValueError:  # the command will report the wrong value
        return minutes


def _note(old: str, new: str) -> str:
    return f"Note: {old} is now {new}. The next version removes the old name."
