"""Claims about the progress of long work: when it is shown, where, and what it says."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from rstar2_env.core.errors import ServiceError
from rstar2_env.core.net.chat_endpoint import ChatEndpoint
from rstar2_env.core.progress import activities, duration, progress, progress_line, say, screens, waiting
from rstar2_env.core.progress.screens import ProgressLines
from rstar2_env.core.progress.text import ActivityRow


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show everything without the waits of seconds."""
    monkeypatch.setattr(activities, "TICK_S", 0.01)
    monkeypatch.setattr(activities, "FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(screens, "FIRST_LINE_S", 0.05)


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        ((120, 1319, 120, 5.0), "playing: 120/1319 (9 %), 24.0/s, 50 s left"),
        ((120, None, 120, 5.0), "playing: 120, 24.0/s"),
        ((700, 1000, 8, 5.0), "playing: 700/1000 (70 %), 1.6/s, 3 min left"),
        ((1, 1000, 1, 60.0), "playing: 1/1000 (0 %), 1.0/min, 16 h 39 min left"),
        ((0, 8, 0, 7.0), "playing: 0/8 (0 %), 7 s so far"),
        ((0, None, 0, 7.0), "playing: 7 s so far"),
    ],
)
def test_a_line_has_done_total_rate_and_time_left(figures: tuple[int, int | None, int, float], line: str) -> None:
    assert progress_line("playing", *figures) == line


def test_durations_are_short() -> None:
    assert [duration(seconds) for seconds in (12.4, 480.0, 60_000.0)] == ["12 s", "8 min", "16 h 40 min"]


def test_the_first_line_comes_within_five_seconds_and_the_next_within_thirty(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(screens.time, "monotonic", lambda: now[0])
    lines, printed = ProgressLines(), []
    for second in range(200):
        now[0] = float(second)
        lines.draw([ActivityRow("training", 0.0, now[0], 1, 9, 1), ActivityRow("playing", 0.0, now[0], 3, 8, 3)])
        if capsys.readouterr().err:
            printed.append(second)
    assert printed[0] == 2
    assert max(later - earlier for earlier, later in itertools.pairwise(printed)) == 30
    assert len(printed) < 12


def test_an_activity_that_begins_late_has_its_line_within_five_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(screens.time, "monotonic", lambda: now[0])
    lines = ProgressLines()
    for second in range(100):
        now[0] = float(second)
        lines.draw([ActivityRow("training", 0.0, now[0], 1, 9, 1)])
    capsys.readouterr()
    now[0] = 105.0
    lines.draw([ActivityRow("training", 0.0, now[0], 1, 9, 1), ActivityRow("loading", 100.0, 5.0)])
    assert "loading: 5 s so far" in capsys.readouterr().err


def test_work_that_reports_nothing_is_shown_too(at_once: None, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("training", total=3, show=True), progress("loading"):
        time.sleep(0.3)
    assert re.search(r"^training: 0/3 \(0 %\), 0 s so far \| loading: 0 s so far$", capsys.readouterr().err, re.M)


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("playing", show=True) as report:
        report(1, 1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("show", [None, False])
def test_library_code_shows_nothing_on_its_own(
    show: bool | None, at_once: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("playing", show=show) as report, progress("loading"), waiting("a server"):
        report(1, 9)
        time.sleep(0.15)
    assert capsys.readouterr().err == ""


def test_items_of_an_earlier_run_do_not_count_for_the_rate(at_once: None, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("training", total=1000, done=500, show=True) as report:
        time.sleep(0.1)
        report(501, 1000)
        time.sleep(0.3)
    rates = [float(rate) for rate in re.findall(r"501/1000 \(50 %\), ([\d.]+)/s", capsys.readouterr().err)]
    assert rates
    assert max(rates) <= 10


def test_waits_for_one_server_are_one_text(at_once: None, capsys: pytest.CaptureFixture[str]) -> None:
    def wait() -> None:
        with waiting("http://x") as report:
            report("connection refused; attempt 2 of 7")
            time.sleep(0.3)

    with progress("playing", show=True):
        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    shown = capsys.readouterr().err
    assert "playing | waiting for http://x: 0 s so far, 3 requests, connection refused; attempt 2 of 7" in shown


def test_retries_of_an_endpoint_that_refuses_are_shown_while_they_go_on(
    at_once: None, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint = ChatEndpoint("http://127.0.0.1:9/v1", retries=2)
    with progress("playing", show=True), pytest.raises(ServiceError):
        endpoint.complete([{"role": "user", "content": "?"}], model="m")
    assert re.search(r"waiting for http://127.0.0.1:9/v1\S*: .*attempt [23] of 3", capsys.readouterr().err)


def test_a_message_is_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    say("before")
    with progress("training", show=True):
        say("within")
    assert capsys.readouterr().err == "before\nwithin\n"


def test_a_notebook_has_one_output_that_is_replaced(tmp_path: object) -> None:
    """In a subprocess, with a stand-in for the shell of a notebook."""
    program = """
        import sys, time, types
        shown, updates = [], []
        class Handle:
            def update(self, content, raw): updates.append(content["text/plain"])
        def display(content, raw, display_id):
            shown.append(content); return Handle()
        ipython, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
        inner.display = display
        sys.modules |= {"IPython": ipython, "IPython.display": inner}
        from rstar2_env.core.progress import activities, progress, say
        activities.TICK_S = 0.01
        with progress("training", total=4, show=True) as report:
            report(2, 4, "loss 0.5")
            say("step 2 <loss>")
            with progress("playing"):
                time.sleep(0.2)
        assert len(shown) == 1, shown
        assert any("playing" in text and "█" * 12 + "░" * 12 in text for text in updates), updates
        last = updates[-1].splitlines()
        assert last[0] == "step 2 <loss>" and last[1].startswith("training: 2/4 (50 %)"), last
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
