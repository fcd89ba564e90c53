"""Every ``rstar2 …`` in the documents is a command that there is, with options that it takes.

Not covered: the values of options.
"""

from __future__ import annotations

import functools
import re
import shlex
from typing import Any

import pytest
import typer
from page_blocks import NOTEBOOKS, PAGES, Block, cells, fenced, inline
from typer.main import get_command

from rstar2_env.cli import COMMANDS, build
from rstar2_env.cli._calls import FORMS, read_call

SHELL = {"", "sh", "bash", "console", "shell"}
SHOWN = {"text", "output", "ini", "json"}
"""Languages of blocks whose commands stand behind a ``$``."""
_CALL = re.compile(r"^(?:[$!#] ?|# [\w.]+: |[A-Z_]+=\S+ |[^|`]*&& )*((?:rstar2|rocm) .+)$")
"""``rocm`` is what docs/rocm.md calls ``rstar2`` in a container."""
_OPEN = re.compile(r"…|\.\.\.")
_ENDS = re.compile(r"[|;&>]+")
_USAGE_ERROR: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
"""click's, or that of the click inside typer: it depends on typer's version."""
_PLACEHOLDERS = {"COMMAND"}
"""Words that stand for any subcommand."""


def calls() -> list[tuple[Block, str]]:
    """Every call of ``rstar2`` in the documents, with the block in which it stands."""
    found = []
    for path in PAGES:
        found += [(block, line) for block in fenced(path) for line in _lines(block)]
        found += [(block, block.text) for block in inline(path) if re.match(r"rstar2 [a-zA-Z-]", block.text)]
    for path in NOTEBOOKS:
        found += [(block, line) for block in cells(path) for line in _lines(block)]
    return found


def _lines(block: Block) -> list[str]:
    lines = [line.strip() for line in re.sub(r"\\\n\s*", " ", block.text).splitlines()]
    lines = [line for line in lines if block.language not in SHOWN or line.startswith("$")]
    return [match[1] for line in lines if (match := _CALL.match(line))]


@functools.cache
def _command(*words: str) -> Any:
    return get_command(build(words)).commands[read_call(words).name]  # type: ignore[attr-defined]


def mistake(line: str, *, whole: bool) -> str:
    """What is wrong with a call; an empty text where nothing is.

    Args:
        line: The call.
        whole: Whether it is to be typed as it stands, so that nothing that is required may be missing.
    """
    whole = whole and not _OPEN.search(line)
    lexer = shlex.shlex(line.replace("[", "").replace("]", ""), posix=True, punctuation_chars="|;&>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    commands: list[list[str]] = [[]]
    for word in lexer:
        if _ENDS.fullmatch(word):
            commands.append([])
        elif not _OPEN.fullmatch(word):
            commands[-1].append(word)
    ours = [words[1:] for words in commands if words and words[0] in ("rstar2", "rocm")]
    return next(filter(None, (_mistake(words, whole=whole) for words in ours)), "")


def _mistake(words: list[str], *, whole: bool) -> str:
    if not words or words[0] in _PLACEHOLDERS or words[0] in ("--help", "--version"):
        return ""
    call = read_call(words)
    name, *words = call.arguments
    if call.notes:
        return " ".join(call.notes)
    if name not in COMMANDS:
        return f"there is no subcommand {name!r}"
    command = _command(*_selecting(name, call.module))
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"{name} has no {words[0]!r}"
        command = command.commands[words.pop(0)]
    if hasattr(command, "commands"):
        return "" if not words or words == ["--help"] else f"{name} {' '.join(words)} names none of its subcommands"
    context = command.context_class(command, info_name=name, **command.context_settings)
    if not whole and words and words[-1].startswith("-"):
        words.append("VALUE")  # of an option that prose names without one
    try:
        given, rest, _ = command.make_parser(context).parse_args(list(words))
    except _USAGE_ERROR as error:
        return str(error)
    rest = [word for word in rest if whole or word != "VALUE"]
    if rest and not context.allow_extra_args:
        return f"it does not take {rest}"
    required = [one for one in command.params if one.required and given.get(one.name) in (None, (), [])]
    if whole and required and "help" not in given:
        return f"it lacks {', '.join(one.opts[0] for one in required)}"
    return ""


def _selecting(name: str, module: str) -> tuple[str, ...]:
    """The words that select a module."""
    flags = next((flags for flags, form in FORMS.get(name, {}).items() if form == module), ())
    return name, *flags


FOUND = calls()


@pytest.mark.parametrize("page", sorted({block.page for block, _ in FOUND}))
def test_every_command_of_a_page_is_one_of_the_program(page):
    wrong = {
        f"{block}: {line}": said
        for block, line in FOUND
        if block.page == page and (said := mistake(line, whole=block.language != "inline"))
    }
    assert wrong == {}


def test_every_block_has_a_language_that_tests_read():
    read = SHELL | SHOWN | {"python", "toml", "yaml"}
    assert [str(block) for path in PAGES for block in fenced(path) if block.language not in read] == []


def test_commands_are_found_in_every_kind_of_place():
    kinds = {block.language for block, _ in FOUND}
    assert {"", "sh", "inline", "python", "toml"} <= kinds
    assert len(FOUND) > 300
    assert {name for name in COMMANDS if not any(line.split()[1] == name for _, line in FOUND)} == set()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rstar2 evaluate x", "no subcommand"),
        ("rstar2 eval x --modle y", "--modle"),
        ("rstar2 eval x --model", "--model"),
        ("rstar2 verify --run RUN --episode 0 1", "does not take"),
        ("rstar2 verify --run --episode 0", "it lacks"),
        ("rstar2 replay RUN 0", "is now"),
        ("rstar2 sandbox sing", "has no 'sing'"),
        ("rstar2 view a b --port 0 | less --wrong", ""),
        ("rstar2 list envs > envs.txt && rstar2 evla x", "no subcommand"),
        ("rstar2 train … --steps 1", ""),
    ],
)
def test_a_mistake_is_seen(line, said):
    found = mistake(line, whole=True)
    assert said in found
    assert bool(said) == bool(found)
