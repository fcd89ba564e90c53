"""One walks from the runs to an episode by keys, and sees what the printed form and the page say."""

from __future__ import annotations

import importlib
import pkgutil
import re
import shutil

import pytest
from made_runs import MadeRun, MadeTraining, write_training
from run_sample import write_run

pytest.importorskip("textual", reason="textual is in the extra 'view'")

from walked import walk

from rstar2_env.view.answers import Answers
from rstar2_env.view.following import Follower
from rstar2_env.view.library import Library
from rstar2_env.view.queries.filters import SORTS
from rstar2_env.view.terminal import walk as package
from rstar2_env.view.terminal.walk.screen import RunScreen


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of 36 episodes of training and 6 held out."""
    folder = tmp_path_factory.mktemp("walk") / "small"
    write_run(folder)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run with calls, statuses, verdicts and tokens."""
    folder = tmp_path_factory.mktemp("made") / "made"
    write_training(folder, steps=2, problems=8, eval_every=1, tokens=True)
    return folder


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def listed(run, cache, **asked):
    """The keys of the episodes that a question means, from the queries themselves."""
    library = Library([run], cache)
    try:
        follower = Follower(library)
        follower.read_all(600)
        rows = Answers(follower).episodes(library.runs[0].name, {"limit": "1000", **asked})["rows"]
        return [row["key"] for row in rows]
    finally:
        library.close()


def test_there_are_four_screens():
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    assert {screen.__name__ for screen in RunScreen.__subclasses__()} == {
        *("RunsScreen", "OverviewScreen", "EpisodesScreen", "EpisodeScreen"),
    }


def test_the_overview_of_the_only_run_comes_first_with_its_curves(run, cache):
    async def act(walker):
        await walker.until("36 training episodes")
        assert re.search("Success: held out .* ▁ +█ ", walker.whole)
        await walker.press("end", until="finished")

    walk(act, run, cache=cache)


def test_of_several_runs_one_is_chosen_and_the_next_shown(tmp_path, cache):
    for name, steps in (("a", 1), ("b", 2), ("c", 3)):
        write_run(tmp_path / "runs" / name, steps=steps)

    async def act(walker):
        await walker.until("runs   3")
        await walker.until("grpo_roc")
        assert "Back" not in walker.lines[-1], "there is no way back from the first screen"
        await walker.press("down", "enter", until="step 2 of 4")
        await walker.press("n", until="step 3 of 4")
        await walker.press("n", until="step 1 of 4")
        await walker.press("p", until="step 3 of 4")
        await walker.press("escape", until="runs   3")

    walk(act, tmp_path / "runs", cache=cache)


def test_the_table_is_filtered_by_the_filters_of_the_command_line(run, cache):
    wanted = listed(run, cache, split="train", kept="0")
    assert len(wanted) == 12

    async def act(walker):
        await walker.press("enter", until="42 episodes")
        await walker.press("f", until="Filter")
        await walker.type("split=train&kept=0")
        await walker.press("enter", until="12 episodes")
        assert walker.keys() == wanted
        assert "filter split=train&kept=0" in walker.text
        await walker.press("f", "ctrl+u", "enter", until="42 episodes")
        assert "filter" not in walker.text

    walk(act, run, cache=cache)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("step=x", "The filter: step must be a whole number, or a range such as 3-9, not 'x'."),
        ("kepd=1", "the unknown filter 'kepd'"),
        ("kept", "The filter must be NAME=VALUE&NAME=VALUE"),
        ("status=lost", "The status 'lost' does not exist"),
    ],
)
def test_a_wrong_filter_says_what_is_wrong_and_changes_nothing(run, cache, typed, told):
    async def act(walker):
        await walker.press("enter", until="42 episodes")
        await walker.press("f", until="Filter")
        await walker.type(typed)
        await walker.press("enter", until=told)
        assert typed in walker.text
        await walker.press("escape", until="Search")
        assert "42 episodes" in walker.text

    walk(act, run, cache=cache)


def test_the_name_of_a_filter_is_completed(run, cache):
    async def act(walker):
        await walker.press("enter", until="42 episodes")
        await walker.press("f", until="Filter")
        await walker.type("split=eval&min_rew")
        await walker.until("min_reward=")
        await walker.press("right")
        await walker.type("1")
        await walker.press("enter", until="No matching episodes.")
        assert "filter split=eval&min_reward=1" in walker.text

    walk(act, run, cache=cache)


def test_a_column_to_sort_by_is_chosen_and_reversed(run, cache):
    up, down = (listed(run, cache, sort=sign + "group")[:10] for sign in ("", "-"))
    assert up != listed(run, cache)[:10] != down

    async def act(walker):
        await walker.press("enter", until="42 episodes")
        await walker.press("s", until="Sort by")
        await walker.press(*["down"] * (1 + list(SORTS).index("group")), "enter", until="sort group")
        await walker.until(lambda: walker.keys()[:10] == up)
        await walker.press("r", until="sort -group")
        await walker.until(lambda: walker.keys()[:10] == down)

    walk(act, run, cache=cache)


def test_a_search_finds_words_and_goes_together_with_a_filter(run, cache):
    wanted = listed(run, cache, q='"group 1 member 2"', step="2-3")
    assert len(wanted) == 2

    async def act(walker):
        await walker.press("enter", until="42 episodes")
        await walker.press("slash", until="Search")
        await walker.type('"group 1 member 2"')
        await walker.press("enter", until="4 episodes")
        await walker.press("f", until="Filter")
        await walker.type("step=2-3")
        await walker.press("enter", until="2 episodes")
        assert walker.keys() == wanted
        await walker.press("slash", "ctrl+u")
        await walker.type("...")
        await walker.press("enter", until="at least one word")

    walk(act, run, cache=cache)


def test_next_and_previous_go_through_the_table_as_it_is_filtered_and_sorted(run, cache):
    wanted = listed(run, cache, kept="0", sort="-step")

    async def act(walker):
        await walker.press("enter", until="42 episodes")
        await walker.press("f", until="Filter")
        await walker.type("kept=0")
        await walker.press("enter", until="12 episodes")
        await walker.press("s", "down", "enter", until="sort step")
        await walker.press("r", until="sort -step")
        await walker.until(lambda: walker.keys() == wanted)
        await walker.press("enter", until=f"{wanted[0]}   1 of 12")
        assert "Previous" not in walker.lines[-1], "there is none before the first"
        for at in range(1, 12):
            await walker.press("n" if at % 2 else "right", until=f"{wanted[at]}   {at + 1} of 12")
        assert "Next" not in walker.lines[-1]
        await walker.press("n")
        assert wanted[-1] in walker.lines[0]
        await walker.press("p", until=f"{wanted[10]}   11 of 12")
        await walker.press("backspace", until="sort -step")
        await walker.until(lambda: walker.table.row(walker.table.cursor)["key"] == wanted[10])

    walk(act, run, cache=cache)


def test_an_episode_is_a_conversation_with_statuses_reward_answers_and_verdict(made, cache):
    async def act(walker):
        await walker.press("enter", until="episodes")
        await walker.press("f", until="Filter")
        await walker.type("split=train&status=exception&correct=0&end=answered")
        await walker.press("enter", until="filter split")
        await walker.until(lambda: bool(walker.keys()))
        await walker.press("enter", until="╭─ System")
        for part in (
            "╭─ Problem",
            "╭─ Policy · turn 1",
            "Thoughts:",
            "value = ",
            "python_code_with_standard_io: exception",
            "NameError",
        ):
            assert part in walker.whole
        for part in ("wrong", "Reward", "Answer", "Gold answer", "the answer is wrong (number)"):
            assert part in walker.whole
        await walker.press("tab")
        assert walker.lines[1].startswith("╭─ Problem"), "the next message is at the top"
        await walker.press("shift+tab", until=lambda: walker.lines[1].startswith("╭─ System"))
        await walker.press("end", until="dropped: ")

    walk(act, made, cache=cache)


def test_tokens_are_shown_where_the_run_kept_them(made, cache):
    async def act(walker):
        await walker.press("enter", until="episodes")
        await walker.press("f", until="Filter")
        await walker.type("kept=1")
        await walker.press("enter", until="filter kept")
        await walker.until(lambda: bool(walker.keys()))
        await walker.press("enter", until="t Tokens")
        await walker.press("t", until="30 prompt tokens")
        assert "⟨" in walker.text
        await walker.press("t", until="╭─ System")

    walk(act, made, cache=cache)


def test_a_run_that_is_written_grows_and_the_cursor_stays_on_its_episode(tmp_path, cache):
    training = MadeTraining(tmp_path / "run", MadeRun(steps=3, problems=8, eval_every=0))
    training.step(1)

    async def act(walker):
        await walker.until("step 1 of 3")
        await walker.press("enter", until="r Reverse")
        await walker.press("r", until="sort -key")
        await walker.until(lambda: bool(walker.keys()))
        before = walker.table.total
        await walker.press("down", "down", until=lambda: walker.table.row(2) is not None)
        key = walker.table.row(walker.table.cursor)["key"]
        training.step(2)
        await walker.until(lambda: walker.table.total > before)
        await walker.until(lambda: (walker.table.row(walker.table.cursor) or {}).get("key") == key)
        assert walker.table.cursor == 2 + walker.table.total - before
        assert key in walker.text
        await walker.press("escape", until="step 2 of 3")
        training.step(3)
        training.end()
        await walker.until("finished  step 3 of 3")

    walk(act, tmp_path / "run", cache=cache)


def test_a_run_that_goes_away_is_told(tmp_path, cache):
    for name in ("a", "b"):
        write_run(tmp_path / "runs" / name, steps=1)

    async def act(walker):
        await walker.until("grpo_roc")
        await walker.press("enter", until="training episodes")
        await walker.press("enter", until="15 episodes")
        shutil.rmtree(tmp_path / "runs" / "a")
        await walker.press("enter", until=lambda: bool(re.search(r"runs › a › train-1-0   [A-Z\[]", walker.lines[0])))
        await walker.press("escape", "escape", "escape", until="runs   1")

    walk(act, tmp_path / "runs", cache=cache)


@pytest.mark.parametrize("size", [(80, 24), (60, 16), (140, 40)], ids=str)
def test_the_keys_stand_in_the_last_line_of_every_screen(made, cache, size):
    async def act(walker):
        await walker.until("training episodes")
        for keys, named, shown in (
            ((), "Episodes", "training"),
            (("enter",), "Search", "train-2-0"),
            (("enter",), "Next", ""),
        ):
            # A table takes no key before it has rows.
            await walker.press(
                *keys, until=lambda named=named, shown=shown: named in walker.lines[-1] and shown in walker.text
            )
            if size[0] >= 80:
                assert all(key in walker.lines[-1] for key in ("esc Back", "? Keys", "q Quit"))
            assert max(map(len, walker.lines)) <= size[0]
            assert len(walker.lines) <= size[1]
        await walker.press("question_mark", until="Next message")
        await walker.press("escape", until=lambda: "Next message" not in walker.text)

    walk(act, made, cache=cache, size=size)


def test_a_terminal_that_changes_its_size_is_filled(made, cache):
    async def act(walker):
        await walker.press("enter", "enter", until="╭─ System")
        await walker.pilot.resize_terminal(120, 30)
        await walker.until(lambda: max(len(line.rstrip()) for line in walker.lines) > 110)
        await walker.press("escape")
        await walker.pilot.resize_terminal(40, 10)
        await walker.until(lambda: "Episode" in walker.lines[1] and max(map(len, walker.lines)) <= 40)

    walk(act, made, cache=cache)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_a_key_ends_it_from_any_screen(run, cache, key):
    async def act(walker):
        await walker.press("enter", until="42 episodes")
        await walker.pilot.press(key)
        await walker.until(lambda: not walker.app.is_running)

    assert walk(act, run, cache=cache).return_code == 0


def test_a_look_at_the_runs_while_the_program_ends_finds_no_screen(run, cache):
    async def act(walker):
        await walker.press("enter", until="Episode")

    ended = walk(act, run, cache=cache)
    assert ended.screen_stack == []
    ended._look()
