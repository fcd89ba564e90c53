"""``rstar2 help``: print the help of a command, a page of the documents, or a section of a page."""

from __future__ import annotations

from typing import Annotated

import typer

from rstar2_env.cli._printing import say


def help_command(
    topic: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC",
            help="Topic: a command (eval, list envs), a page (training), or a section of a page "
            "(troubleshooting#options) [default: list the topics].",
        ),
    ] = None,
) -> None:
    """Print the help of a command, a page of the documents, or one section of a page.

    Error messages name the section that explains them. If a command and a page have the same name, add `.md` for the
    page.
    """
    import textwrap

    from rich.console import Console
    from rich.markdown import Markdown

    from rstar2_env.cli import COMMANDS, build
    from rstar2_env.cli._calls import RENAMED
    from rstar2_env.cli._tables import print_list
    from rstar2_env.core.command.documents import error_sections, pages, read_topic

    words = [word for word in topic or () if word]
    if not words:
        print_list({name: line for name, (line, _) in COMMANDS.items()})
        say("\nrstar2 help COMMAND describes a command. rstar2 help PAGE prints one of these pages:\n")
        print_list(pages())
        say("\nrstar2 help SECTION prints one of these sections about errors:\n")
        say(textwrap.fill(", ".join(sorted(error_sections())), width=80, break_on_hyphens=False))
    elif words[0] in COMMANDS or words[0] in RENAMED:
        # A command without an example of its own is a group of commands.
        known = 1 if words[0] in RENAMED or COMMANDS[words[0]][1] else 2
        if extra := words[known:]:
            outer, name = " ".join(words[:known]), " ".join(extra)
            raise typer.BadParameter(f"The command {outer!r} has no subcommand {name!r}: omit {name!r}.")
        build(words)(args=[*words, "--help"], prog_name="rstar2")
    else:
        text = read_topic(" ".join(words), others=COMMANDS)
        console = Console()
        if console.is_terminal:
            console.print(Markdown(text))
        else:
            say(text)
