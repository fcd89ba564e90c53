"""The games: right rules, right intermediate answers, every move named, an oracle at 1.0 and a stated baseline."""

from itertools import product

import gymnasium as gym
import numpy as np
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.envs_registry._board import MINE, THEIRS, Board, BoardMatch
from rstar2_env.envs_registry._game import Tally, read_intermediates, write_intermediate
from rstar2_env.envs_registry.negotiate import Negotiate
from rstar2_env.errors import ConfigurationError
from rstar2_env.testing import StubTool, check_text_env

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


def test_a_turn_with_a_call_runs_it_and_makes_no_move():
    env = make("TicTacToe", tools=[StubTool("seen")])
    env.reset(seed=1)
    before = env.unwrapped.match.board
    call = env.unwrapped.dialect.format_call("stub", {})
    text, *_, info = env.step(call + say(env, 5))
    assert "seen" in text
    assert info["tool_calls"][0]["status"] == "ok"
    assert env.unwrapped.match.board == before


def test_intermediates_are_read_leniently_and_the_last_one_counts():
    turn = "[Intermediate Thinking Results 1: 3]\n[Intermediate Thinking Results 1: 05, 7]"
    assert read_intermediates(turn + "[Intermediate Thinking Results 2: None]") == {1: {"5", "7"}, 2: set()}
    for items in (frozenset(), frozenset({"1", "9"})):
        assert read_intermediates(write_intermediate(4, items)) == {4: items}


def test_the_tally_counts_hits_misses_and_claims():
    tally = Tally()
    tally.add({1: frozenset("12"), 2: frozenset()}, [frozenset("23"), frozenset(), frozenset("4")])
    assert tally.record() == {"tp": 1, "fp": 1, "fn": 2, "tn": 1, "missing": 1, "f1": pytest.approx(2 / 5)}
    assert Tally().f1 == 0.0
    assert Tally(tn=2).f1 == 1.0


WINS = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def complete(board, mark):
    return any(all(board[cell] == mark for cell in line) for line in WINS)


def test_winning_moves_agree_with_a_second_solver_on_all_5478_positions_of_tic_tac_toe():
    rules = Board(3, 3, 3, drop=False)
    seen, todo = set(), [("." * 9, MINE)]
    while todo:
        board, mark = todo.pop()
        if board in seen:
            continue
        seen.add(board)
        over = complete(board, MINE) or complete(board, THEIRS)
        free = [cell for cell in range(9) if board[cell] == "."]
        if not over:
            for who in (MINE, THEIRS):
                wins = [cell + 1 for cell in free if complete(board[:cell] + who + board[cell + 1 :], who)]
                assert rules.winning(board, who) == wins
            after = THEIRS if mark == MINE else MINE
            todo += [(board[:cell] + mark + board[cell + 1 :], after) for cell in free]
    assert len(seen) == 5478


def test_winning_moves_of_connect_four_agree_with_a_search_of_the_whole_board():
    rules = Board(6, 7, 4, drop=True)
    rng = np.random.default_rng(1)

    def four(board, mark):
        grid = np.array(list(board)).reshape(6, 7) == mark
        return any(
            all(0 <= r + n * d < 6 and 0 <= c + n * e < 7 and grid[r + n * d, c + n * e] for n in range(4))
            for r, c, (d, e) in product(range(6), range(7), ((0, 1), (1, 0), (1, 1), (1, -1)))
        )

    for _ in range(12):
        board, mark, over = rules.empty, MINE, False
        while not over and rules.moves(board):
            for who in (MINE, THEIRS):
                expected = [move for move in rules.moves(board) if four(rules.place(board, move, who)[0], who)]
                assert rules.winning(board, who) == expected
            board, over = rules.place(board, int(rng.choice(rules.moves(board))), mark)
            mark = THEIRS if mark == MINE else MINE


def test_a_mark_falls_to_the_lowest_free_cell():
    rules = Board(6, 7, 4, drop=True)
    board, _ = rules.place(rules.empty, 3, MINE)
    board, _ = rules.place(board, 3, THEIRS)
    assert board[5 * 7 + 2] == MINE
    assert board[4 * 7 + 2] == THEIRS


def test_a_strong_opponent_wins_and_blocks_where_it_can():
    match = BoardMatch(Board(3, 3, 3, drop=False), 1, 1.0, board="XX.OO....")
    assert match.reply("XX.OO....") == 6
    assert match.reply("XX.O.....") == 3


def test_pools_are_as_they_should_be_and_the_opponent_concedes():
    for seed in range(100):
        match = Negotiate().start(seed)
        assert 8 <= sum(match.counts) <= 12
        for values in (match.mine, match.theirs):
            assert sum(a * b for a, b in zip(match.counts, values, strict=True)) == 30
        assert list(match.demands) == sorted(match.demands, reverse=True)
        assert match.demands[-1] < match.demands[0]


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
    with pytest.raises(ConfigurationError, match="no match of tictactoe"):
        make("TicTacToe").reset(options={"problem": {"question": "1 + 1?", "answer": "2"}})
