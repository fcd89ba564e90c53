"""``rstar2 view --text`` on a real terminal: it walks where it can, and prints where it cannot or is asked to."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hostile_run import TEXTS, write_hostile
from run_sample import write_run

PATIENCE_S = 120
COMMAND = (
    "import sys\nfrom rstar2_env.cli import main\ntry:\n    main()\nfinally:\n"
    "    print('textual was loaded' if 'textual.app' in sys.modules else 'nothing was loaded', file=sys.stderr)"
)
ESCAPES = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|[=>78]|\]22;\w+\x07)")
"""What a program that draws tells a terminal, the form of the pointer too: no title, no clipboard, no link."""


class Terminal:
    """A command on a terminal of 80 columns and 24 lines.

    Attributes:
        shown: All that it wrote.
    """

    def __init__(self, words, more) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "view", *map(str, words)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment, "TERM": "xterm-256color", "PAGER": "cat", **more},
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = b""

    def read(self) -> bytes:
        """What it writes next; empty where it has closed the terminal."""
        assert select.select([self._ours], [], [], PATIENCE_S)[0], self.shown
        try:
            more = os.read(self._ours, 1 << 16)
        except OSError:
            return b""
        self.shown += more
        return more

    def until(self, *seen: str) -> None:
        """Read until it has drawn all of these since the last time."""
        at = getattr(self, "_at", 0)
        while not all(one.encode() in ESCAPES.sub(b"", self.shown[at:]) for one in seen):
            assert self.read(), self.shown
        self._at = len(self.shown)

    def press(self, keys: str, *seen: str) -> None:
        """Press keys, and wait for what is drawn."""
        os.write(self._ours, keys.encode())
        self.until(*seen)

    def end(self) -> int:
        """Read to its end; returns its exit status."""
        while self.read():
            pass
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """End it, if it goes on."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@contextmanager
def terminal(*words, **more) -> Iterator[Terminal]:
    one = Terminal(words, more)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RSTAR2_VIEW_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def run(tmp_path):
    write_run(tmp_path / "run", steps=2)
    return tmp_path / "run"


@pytest.mark.slow
def test_one_walks_to_an_episode_and_leaves_the_terminal_as_it_was(run):
    pytest.importorskip("textual", reason="textual is in the extra 'view'")
    with terminal("--text", run) as shown:
        shown.until("training episodes", "Episodes")
        shown.press("\r", "24 episodes", "train-2-0")
        shown.press("\x1b[F\r", "eval-0-2", "24 of 24")
        shown.press("q")
        assert shown.end() == 0
        assert b"textual was loaded" in shown.shown
        assert b"\x1b[?1049h" in shown.shown, "the other screen was taken"
        assert b"\x1b[?1049l" in shown.shown, "and given back"
        assert b"Traceback" not in shown.shown


@pytest.mark.slow
def test_nothing_that_a_model_wrote_reaches_the_terminal_as_a_command(tmp_path):
    pytest.importorskip("textual", reason="textual is in the extra 'view'")
    folder = write_hostile(tmp_path).folder
    at = list(TEXTS).index("escapes")
    with terminal("--text", folder) as shown:
        shown.until("Note:", "Episodes")
        shown.press("\r", "77 episodes")
        shown.press("f", "Filter")
        shown.press("step=1&kept=1\r", f"{len(TEXTS)} episodes")
        shown.press("\x1b[B" * at + "\r", f"{at + 1} of {len(TEXTS)}", r"\x1b[2J\x1b[31mred")
        for _ in range(3):
            shown.press("n", "of ")
        shown.press("q")
        assert shown.end() == 0
        text = ESCAPES.sub(b"", shown.shown)
        assert b"\x1b" not in text
        assert not {*text.decode()} & {
            chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\r\n"
        }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (["--no-pager"], "figures by step"),
        (["--episodes", "3"], "3 of 24 episodes"),
        (["--filter", "kept=0"], "6 of 6 episodes"),
        (["--sort", "-step"], "24 of 24 episodes"),
        (["--episode", "train-1-0"], "step 1 group 0 member 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_asks_for_one_thing_prints_it(run, words, seen):
    with terminal("--text", run, *words) as shown:
        assert shown.end() == 0
        assert seen.encode() in ESCAPES.sub(b"", shown.shown)
        assert b"nothing was loaded" in shown.shown
        assert b"\x1b[?1049h" not in shown.shown


@pytest.mark.slow
def test_without_textual_it_prints_and_says_what_to_install(run, tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "textual.py").write_text("raise ImportError('hidden')")
    with terminal("--text", run, PYTHONPATH=str(tmp_path / "hidden")) as shown:
        assert shown.end() == 0
        text = " ".join(ESCAPES.sub(b"", shown.shown).decode().split())
        assert "The interactive view needs the extra 'view': pip install 'rstar2-env[view]'." in text
        assert "figures by step" in text


@pytest.mark.slow
def test_a_terminal_that_cannot_move_its_cursor_is_printed_to(run):
    with terminal("--text", run, TERM="dumb") as shown:
        assert shown.end() == 0
        assert b"figures by step" in shown.shown
        assert b"nothing was loaded" in shown.shown


@pytest.mark.parametrize("words", [["--help"], ["view", "--help"], ["view", "--text", "RUN"]], ids=" ".join)
def test_textual_is_not_loaded_where_there_is_no_terminal(run, words):
    command = [sys.executable, "-c", COMMAND, *(str(run) if word == "RUN" else word for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr.splitlines()[-1] == "nothing was loaded"
