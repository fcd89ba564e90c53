"""``walk``: the interactive program for browsing runs in a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import Answers
from rstar2_env.view.following import Follower
from rstar2_env.view.library import Library, no_runs
from rstar2_env.view.terminal.walk.runs import OverviewScreen, RunsScreen
from rstar2_env.view.terminal.walk.screen import RunScreen

_LOOK_S = 0.5
"""Seconds between two queries for changed runs."""


class Walk(App[None], inherit_bindings=False):
    """The interactive program that shows a follower's runs; the caller must start and close the follower.

    Args:
        follower: Keeps the indexes of the runs up to date.
    """

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "screen.back", "Back", key_display="esc"),
        Binding("question_mark", "screen.keys", "Keys", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
    ]
    CSS = """
    #head { height: 1; padding: 0 1; background: $panel; }
    #filters { height: 1; display: none; }
    ModalScreen { align: center middle; background: $background 40%; }
    .window { border: round $accent; background: $surface; padding: 0 1; width: 76; max-width: 100%; height: auto;
              max-height: 80%; }
    .window.bottom { dock: bottom; width: 100%; }
    .window Input { border: none; height: 1; padding: 0; background: $boost; }
    .window OptionList { border: none; height: auto; max-height: 14; background: $surface; }
    #usage { color: $text-muted; }
    #wrong { color: $text-error; height: auto; }
    """

    def __init__(self, follower: Follower) -> None:
        super().__init__()
        self._follower = follower
        self.answers = Answers(follower)
        self._seen = ""

    def on_mount(self) -> None:
        """Show the list of runs; if there is only one run, show its overview."""
        self._seen = self._follower.changes("")[0]
        self.push_screen(RunsScreen(self.answers))
        names = [run.name for run in self._follower.library.runs]
        if len(names) == 1:
            self.push_screen(OverviewScreen(self.answers, names[0]))
        self.set_interval(_LOOK_S, self._look)

    def _look(self) -> None:
        """Update the visible screen after changes; other screens update when they become visible."""
        self._seen, changed, listed = self._follower.changes(self._seen)
        screens = self.screen_stack  # empty while the program ends
        screen = screens[-1] if screens else None
        if isinstance(screen, RunScreen) and (
            listed or (changed if not screen.run_name else screen.run_name in changed)
        ):
            screen.update_content()


def walk(roots: Iterable[str | os.PathLike[str]], cache: Path | None = None) -> None:
    """Run the interactive program in this terminal until the user quits.

    Args:
        roots: Run folders, folders that contain runs, and single files of evaluations.
        cache: Folder of indexes [default: in the user's cache folder].

    Raises:
        ConfigurationError: There are no runs.
    """
    with closing(Library(roots, cache)) as library:
        if not library.runs:
            raise ConfigurationError(no_runs(library.roots))
        with closing(Follower(library)) as follower:
            follower.start()
            Walk(follower).run()
