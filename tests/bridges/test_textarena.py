"""TextArena, both ways, against the real package."""

from __future__ import annotations

import random
import re

import pytest
import textarena as ta
from bridged import SCRIPTS, SUMS, direct
from page_blocks import fenced
from places import DOCS

from rstar2_env.adapters.textarena import TextArenaEnv, register
from rstar2_env.core.errors import Rstar2Error
from rstar2_env.testing import check_text_env

NUMBER, BOARD = "GuessTheNumber-v0", "TicTacToe-v0"


class Player:
    """Plays a random free cell, drawn from Python's global random state as TextArena itself draws."""

    def __call__(self, shown):
        free = re.findall(r"'\[(\d)\]'", shown.rpartition("Available Moves")[2])
        return f"[{random.choice(free or ['0'])}]"


def raw(game, players, seed, turns, opponent=None):
    """A game that TextArena alone plays, seat 0 by ``turns``: what seat 0 is shown, the rewards, the reasons."""
    kept = random.getstate()
    random.seed(seed)
    env = ta.make(f"{game}-raw")
    env.reset(num_players=players, seed=seed)
    shown, history, left = [], "", list(turns)
    while True:
        seat, told = env.get_observation()
        if seat:
            history += "\n".join(message for _, message, _ in told)
            done, _ = env.step(opponent(history))
        else:
            shown.append([message for sender, message, _ in told if sender != 0])
            done, _ = env.step(left.pop(0))
        if done:
            rewards, info = env.close()
            random.setstate(kept)
            return shown, rewards, info


@pytest.mark.parametrize("turns", [("I say [10]", "[3]", "[15]", "[1]", "[2]"), ("none", "none")])
def test_a_game_of_one_player_is_the_one_that_textarena_plays(turns):
    turns = (*turns, *(f"[{n}]" for n in range(4, 21)))
    shown, rewards, info = raw(NUMBER, 1, 11, turns)
    env = TextArenaEnv(game=NUMBER)
    text, told = env.reset(options={"problem_id": f"textarena/{NUMBER}/11"})
    texts, total = [text], 0.0
    for turn in turns:
        text, reward, terminated, truncated, told = env.step(turn)
        total += reward
        if terminated or truncated:
            break
        texts.append(text)
    assert [re.sub(r"^\[GAME\] ", "", one, flags=re.M) for one in texts] == ["\n".join(one) for one in shown]
    assert (total, told["end"], terminated) == (rewards[0], "answered", True)
    assert told["reason"] == info[0]["reason"]
    assert told["invalid_move"] is info[0]["invalid_move"]


@pytest.mark.parametrize("seed", range(3))
def test_a_game_of_two_players_is_the_one_that_textarena_plays(seed):
    turns = [f"[{n}]" for n in (4, 0, 8, 2, 6, 1, 3, 5, 7)] * 2
    shown, rewards, info = raw(BOARD, 2, seed, turns, Player())
    env = TextArenaEnv(game=BOARD, players=2, opponent=Player)
    text, _ = env.reset(options={"problem_id": f"textarena/{BOARD}/{seed}"})
    texts, over = [text], False
    for turn in turns:
        text, reward, over, _, told = env.step(turn)
        if over:
            break
        texts.append(text)
    plain = [re.sub(r"^\[(GAME|Player 1)\] ", "", one, flags=re.M) for one in texts]
    assert plain == ["\n".join(one) for one in shown]
    assert over
    assert told["rewards"] == {str(seat): value for seat, value in rewards.items()}
    assert (reward, told["reason"]) == (rewards[0], info[0]["reason"])


def test_a_move_that_cannot_be_played_is_told_apart():
    env = TextArenaEnv(game=NUMBER)
    env.reset(options={"problem_id": f"textarena/{NUMBER}/11"})
    assert [env.step(turn)[4]["invalid_move"] for turn in ("[1]", "I do not know.", "[2]")] == [False, True, False]


def test_theirs_keeps_our_contract_with_its_global_random_state():
    assert len(check_text_env(lambda: TextArenaEnv(game=NUMBER), actions=["[3]"])) == 10
    two = check_text_env(lambda: TextArenaEnv(game=BOARD, players=2, opponent=Player), actions=["[3]"])
    assert "global_random_state" in two


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"game": "GuessTheNumbr-v0"}, "Did you mean 'GuessTheNumber-v0'"),
        ({"game": BOARD, "players": 2}, "needs an opponent"),
        ({"game": BOARD, "players": 2, "seat": 2, "opponent": Player}, "from 0 to 1"),
        ({"game": BOARD, "players": 2, "opponent": "nobody"}, "module:Name"),
    ],
)
def test_wrong_options_are_told(options, said):
    with pytest.raises(Rstar2Error, match=said):
        TextArenaEnv(**options)


register("Rstar2Sums-v0", SUMS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_episode_of_ours_is_a_game_of_textarena(name):
    env = ta.make("Rstar2Sums-v0")
    env.reset(num_players=1, seed=4)
    texts, infos, done = [], [], False
    for turn in SCRIPTS[name]:
        texts.append([message for sender, message, _ in env.get_observation()[1] if sender == ta.GAME_ID])
        done, info = env.step(turn)
        infos.append(info)
    rewards, told = env.close()
    (first, asked), *steps = direct(SUMS, 4, SCRIPTS[name])
    assert done
    assert texts[0] == [asked["system"], first]
    assert texts[1:] == [[step[0]] for step in steps[:-1]]
    assert rewards == {0: sum(step[1] for step in steps)}
    assert told[0]["reason"] == steps[-1][4]["end"]
    for info, step in zip(infos, steps, strict=True):
        assert info == {**step[4], "terminated": step[2], "truncated": step[3]}


def test_textarena_cuts_role_tags_out_of_what_is_shown_and_not_out_of_what_is_played():
    env = ta.make("Rstar2Sums-v0")
    env.reset(num_players=1, seed=4)
    env.get_observation()
    env.step(f"[Player] {SCRIPTS['right'][0]}")
    mine = [message for sender, message, _ in env.get_observation()[1] if sender == 0]
    assert mine == [f" {SCRIPTS['right'][0]}"]
    assert env._env.unwrapped.turns == (f"[Player] {SCRIPTS['right'][0]}",)


def test_the_page_on_bridges_shows_what_works():
    (block,) = [block for block in fenced(DOCS / "bridge-environments.md") if "Rstar2TicTacToe-v0" in block.text]
    exec(block.text, {})
    env = ta.make("Rstar2TicTacToe-v0")
    env.reset(num_players=1, seed=1)
    assert env.get_observation()[1]
    env.close()


def test_a_game_of_ours_is_for_one_player():
    with pytest.raises(Rstar2Error, match="one player"):
        ta.make("Rstar2Sums-v0").reset(num_players=2)
