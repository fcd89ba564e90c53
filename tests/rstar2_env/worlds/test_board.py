"""Boards: moves, wins by a second solver, and an opponent that looks."""

from itertools import product

import numpy as np

from rstar2_env.worlds.board import MINE, THEIRS, Board, BoardMatch

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
