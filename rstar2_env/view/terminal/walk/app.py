"""``walk``: the program in the terminal, from its start to ``q``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import Answers
from rstar2_env.view.export.write import no_runs
from rstar2_env.view.following import Follower
from rstar2_env.view.library import Library
from rstar2_env.view.terminal.walk.runs import OverviewScreen, RunsScreen
from rstar2_env.view.terminal.walk.screen import RunScreen

_LOOK_S = 0.5
"""Seconds between two looks at what the follower found."""


class Walk(App[None], inherit_bindings=False):
    """Walks the runs that a follower follows; the caller starts and ends it.

    Args:
        follower: The follower.
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
    #asked { height: 1; display: none; }
    ModalScreen { align: center middle; background: $background 40%; }
    .window { border: round $accent; background: $surface; padding: 0 1; width: 76; max-width: 100%; height: auto;
              max-height: 80%; }
    .window.bottom { dock: bottom; width: 100%; }
    .window Input { border: none; height: 1; padding: 0; background: $boost; }
    .window OptionList { border: none; height: auto; max-height: 14; background: $surface; }
    #helped { color: $text-muted; }
    #wrong { color: $text-error; height: auto; }
    """

    def __init__(self, follower: Follower) -> None:
        super().__init__()
        self._follower = follower
        self.answers = Answers(follower)
        self._seen = ""

    def on_mount(self) -> None:
        """Show the runs, and the overview of the only one."""
        self._seen = self._follower.changes("")[0]
        self.push_screen(RunsScreen(self.answers))
        names = [run.name for run in self._follower.library.runs]
        if len(names) == 1:
            self.push_screen(OverviewScreen(self.answers, names[0]))
        self.set_interval(_LOOK_S, self._look)

    def _look(self) -> None:
        """Have the screen that is seen show what changed; the others do when they are seen again."""
        self._seen, changed, listed = self._follower.changes(self._seen)
        screen = self.screen
        if isinstance(screen, RunScreen) and (
            listed or (changed if not screen.run_name else screen.run_name in changed)
        ):
            screen.look()


def walk(roots: Iterable[str | os.PathLike[str]], cache: Path | None = None) -> None:
    """Walk runs in this terminal, until the user ends it.

    Args:
        roots: Folders of runs, or with runs below them, and single files of evaluations.
        cache: Folder of indexes; by default the user's.

    Raises:
        ConfigurationError: There is no run.
    """
    library = Library(roots, cache)
    try:
        if not library.runs:
            raise ConfigurationError(no_runs(library.roots))
        follower = Follower(library)
        follower.start()
        try:
            Walk(follower).run()
        finally:
            follower.close()
    finally:
        library.close()
