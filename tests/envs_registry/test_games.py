"""The games: right rules, right intermediate answers, every move named, an oracle at 1.0 and a stated baseline."""

import gymnasium as gym
import numpy as np
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing import StubTool, check_text_env
from rstar2_env.worlds.board import Board, BoardMatch

GAMES = ["TicTacToe", "Connect4", "Negotiate"]
each_game = pytest.mark.parametrize("name", GAMES)


def make(name, **options):
    return gym.make(f"rstar2/{name}-v0", **options)


def say(env, move):
    return env.unwrapped.dialect.format_answer(str(move))


def play(env, turn, seed):
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    while True:
        step = env.step(turn(env, rng))
        if step[2] or step[3]:
            return step


def oracle(env, rng):
    return env.unwrapped.oracle_turn()


def legal(env, rng):
    """Any legal move, and no intermediate answer."""
    match = env.unwrapped.match
    if isinstance(match, BoardMatch):
        return say(env, rng.choice(match.rules.moves(match.board)))
    return say(env, ", ".join(str(int(rng.integers(count + 1))) for count in match.counts))


@each_game
def test_it_keeps_the_contract(name):
    check_text_env(f"rstar2/{name}-v0", seeds=(0, 1))


@each_game
def test_a_player_who_knows_the_opponent_earns_everything(name):
    env = make(name)
    for seed in range(40):
        _, reward, terminated, _, info = play(env, oracle, seed)
        assert (reward, terminated, info["end"], info["correct"]) == (1.0, True, "answered", True)
        assert info["reward_components"] == {"outcome": 0.8, "intermediate": pytest.approx(0.2)}


@each_game
def test_the_stated_baseline_is_what_random_legal_moves_earn(name):
    env = make(name)
    mean = np.mean([play(env, legal, seed)[1] for seed in range(120)])
    assert mean == pytest.approx(env.unwrapped.random_baseline, abs=0.1)


@each_game
def test_the_same_match_comes_again_by_its_id_and_splits_do_not_meet(name):
    env, other = make(name), make(name, split="test")
    first, info = env.reset(seed=3)
    again, _ = env.reset(seed=9, options={"problem_id": info["problem_id"]})
    assert again == first
    keys = [{env.unwrapped.problems[i].meta["game"] for i in range(60)} for env in (env, other)]
    assert not keys[0] & keys[1]


@each_game
def test_moves_that_cannot_be_played_are_named_and_lose_in_the_end(name):
    env = make(name)
    env.reset(seed=1)
    illegal = "99" if name != "Negotiate" else "99, 0, 0"
    for turn, status, left in ((say(env, illegal), "illegal", 2), ("hm", "unparsable", 1)):
        text, reward, terminated, truncated, info = env.step(turn)
        assert info["move"]["status"] == status
        assert f"mistakes left before you lose: {left}" in text
        assert (reward, terminated, truncated) == (0.0, False, False)
    _, reward, terminated, _, info = env.step(say(env, "banana"))
    assert (reward, terminated, info["end"], info["illegal_moves"]) == (0.0, True, "no_answer", 3)
    assert info["move"] == {"text": "banana", "status": "unparsable"}


@each_game
def test_a_mistake_costs_no_move_and_the_game_can_still_be_won(name):
    env = make(name)
    env.reset(seed=1)
    env.step("hm")
    while True:
        _, reward, terminated, _, info = env.step(env.unwrapped.oracle_turn())
        if terminated:
            break
    assert (reward, info["illegal_moves"]) == (1.0, 1)


@each_game
def test_the_budget_of_turns_truncates(name):
    # The opponent's first demand is more than a greedy proposal leaves it; boards need three moves at least.
    env = make(name, max_turns=1)
    env.reset(seed=1)
    greedy = "99" if name != "Negotiate" else ", ".join(map(str, env.unwrapped.match.counts))
    _, reward, _, truncated, info = env.step(say(env, greedy))
    assert (reward, truncated, info["end"]) == (0.0, True, "turns")


def test_intermediate_answers_decide_their_share_of_the_reward():
    def silent(env, rng):
        return say(env, env.unwrapped.match.best())

    _, reward, *_, info = play(make("TicTacToe"), silent, 1)
    assert (reward, info["intermediate"]["f1"], info["correct"]) == (0.8, 0.0, True)
    assert info["intermediate"]["missing"] == 2 * info["turns"]
    assert play(make("TicTacToe", intermediate_weight=0.0), silent, 1)[1] == 1.0


@pytest.mark.parametrize(
    ("rules", "rows", "mine", "theirs"),
    [
        (Board(3, 3, 3, drop=False), ".OX XOX OX.", [9], []),
        (Board(6, 7, 4, drop=True), "...O... ...X... .O.OOX. .OXXXO. XXXOXO. XOXXOO.", [3], [3]),
    ],
    ids=["tictactoe", "connect4"],
)
def test_the_winning_moves_are_those_of_gamebots_checker(rules, rows, mine, theirs):
    """The positions in Visual-AI/GAMEBoT@ef9b98b, check_logic/, with the moves that its functions find, by hand."""
    board = rows.replace(" ", "")
    assert (rules.winning(board, "X"), rules.winning(board, "O")) == (mine, theirs)


def test_a_turn_with_a_call_runs_it_and_makes_no_move():
    env = make("TicTacToe", tools=[StubTool("seen")])
    env.reset(seed=1)
    before = env.unwrapped.match.board
    call = env.unwrapped.dialect.format_call("stub", {})
    text, *_, info = env.step(call + say(env, 5))
    assert "seen" in text
    assert info["tool_calls"][0]["status"] == "ok"
    assert env.unwrapped.match.board == before


def test_an_offer_may_be_accepted_and_silence_about_hidden_values_is_right():
    env = make("Negotiate", reveal=False)
    text, _ = env.reset(seed=1)
    assert "to the opponent:" not in text
    *_, info = env.step(say(env, "accept"))
    assert info["move"]["status"] == "illegal"
    text, *_ = env.step(say(env, ", ".join(map(str, env.unwrapped.match.counts))))
    assert "The opponent's offer" in text
    offered = env.unwrapped.match.offer
    value = sum(a * b for a, b in zip(env.unwrapped.match.mine, offered, strict=True))
    turn = f"[Intermediate Thinking Results 1: {value}]" + say(env, "accept")
    _, _, terminated, _, info = env.step(turn)
    assert terminated
    assert info["end"] == "answered"
    assert info["intermediate"]["tp"] == 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("TicTacToe", {"strength": 1.5}),
        ("TicTacToe", {"illegal_moves": 0}),
        ("Connect4", {"intermediate_weight": 2}),
        ("Negotiate", {"rounds": 0}),
        ("Negotiate", {"split": "everything"}),
    ],
)
def test_options_that_make_no_sense_are_refused(name, options):
    with pytest.raises(ConfigurationError):
        make(name, **options)


def test_a_problem_of_another_world_is_refused():
    with pytest.raises(ConfigurationError, match="does not describe a game of tictactoe"):
        make("TicTacToe").reset(options={"problem": {"question": "1 + 1?", "answer": "2"}})
