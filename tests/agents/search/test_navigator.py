"""Claims about the navigator: its rules, its network, and that it learns which block to choose."""

from __future__ import annotations

import numpy as np
import pytest
from scripted_model import ScriptedModel, answer, in_turn

from rstar2_env.agents import make
from rstar2_env.agents.search import _dueling
from rstar2_env.agents.search._navigator_training import Learning, learn
from rstar2_env.agents.search.navigator import BLOCKS, allowed, save_weights
from rstar2_env.core.errors import ConfigurationError

REASON, DECOMPOSE, DEBATE, REFINE, TERMINATE = range(5)


class TestRules:
    @pytest.mark.parametrize("block", range(5))
    def test_an_answer_and_the_last_step_terminate(self, block):
        assert allowed(block, step=2, steps=8, answered=True) == TERMINATE
        assert allowed(block, step=8, steps=8, answered=False) == TERMINATE

    @pytest.mark.parametrize(
        ("block", "step", "played"),
        [(REFINE, 0, REASON), (REFINE, 1, REFINE), (DEBATE, 0, DEBATE), (TERMINATE, 0, TERMINATE)],
    )
    def test_refine_is_not_for_the_first_step(self, block, step, played):
        assert allowed(block, step=step, steps=8, answered=False) == played

    def test_the_rules_hold_whatever_is_chosen(self):
        told = []
        agent = make("navigator", agent=ScriptedModel(in_turn("a line"), told), steps=3)
        agent.choose = lambda scores: REFINE
        agent.reset("?", {}, seed=0)
        assert agent.act("?", {}) == answer("a line")
        tasks = [text.rpartition("\n\n")[2].split()[0] for text in told]
        # Scores and a block, three times: reason, for refine is not allowed, and refine twice; then the answer.
        assert tasks == ["Judge", "Write", "Judge", "Rewrite", "Judge", "Rewrite", "Answer"]


class TestBlocks:
    def play(self, *replies, blocks, told=None):
        left = list(blocks)
        agent = make("navigator", agent=ScriptedModel(in_turn(*replies), told))
        agent.choose = lambda scores: left.pop(0)
        agent.reset("?", {}, seed=0)
        return agent.act("?", {})

    def test_debate_takes_the_better_of_two_steps(self):
        told = []
        replies = ("2222222", "one", "two", "B.", "2222222", "Answer: 5")
        assert self.play(*replies, blocks=[DEBATE, REASON], told=told) == answer(5)
        assert "1. two\n" in told[-1]

    def test_refine_replaces_the_last_step(self):
        told = []
        replies = ("2222222", "worse", "2222222", "better", "2222222", "Answer: 5")
        assert self.play(*replies, blocks=[REASON, REFINE, REASON], told=told) == answer(5)
        assert "1. better\n" in told[-1]
        assert "worse" not in told[-1]

    def test_decompose_adds_a_line_and_terminate_asks_for_the_answer(self):
        told = []
        assert self.play(
            "2222222", "first a, then b", "2222222", "5", blocks=[DECOMPOSE, TERMINATE], told=told
        ) == answer(5)
        assert "1. first a, then b\n" in told[-1]

    @pytest.mark.parametrize(
        ("reply", "scores"),
        [("3, 2, 1; 1 1; 2 3", (3, 2, 1, 1, 1, 2, 3)), ("31", (3, 1, 2, 2, 2, 2, 2)), ("0947", (2,) * 7)],
    )
    def test_scores_are_the_first_seven_digits_from_one_to_three(self, reply, scores):
        seen = []
        agent = make("navigator", agent=ScriptedModel(in_turn(reply)), steps=1)
        agent.choose = lambda found: seen.append(found) or REASON
        agent.reset("?", {}, seed=0)
        agent.act("?", {})
        assert seen == [scores]


class TestTheNetwork:
    def test_it_has_as_many_parameters_as_the_paper_says(self):
        assert sum(int(np.prod(shape)) for shape in _dueling.SHAPES.values()) == 2566

    def test_the_advantages_are_relative_to_their_mean(self):
        weights = {name: np.zeros(shape, np.float32) for name, shape in _dueling.SHAPES.items()}
        weights["value.2.bias"][:] = 2.0
        weights["advantage.2.bias"][:] = [5, 0, 0, 0, 0]
        assert _dueling.q_values(weights, np.full(7, 2)) == pytest.approx([6, 1, 1, 1, 1])

    def test_weights_come_back_from_their_file_and_choose_as_before(self, tmp_path):
        rng = np.random.default_rng(0)
        weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in _dueling.SHAPES.items()}
        save_weights(weights, tmp_path / "w.npz")
        found = _dueling.load(str(tmp_path / "w.npz"))
        scores = rng.integers(1, 4, size=(20, 7))
        assert np.array_equal(_dueling.q_values(found, scores), _dueling.q_values(weights, scores))

    def test_other_weights_are_refused(self, tmp_path):
        save_weights({"a": np.zeros(3)}, tmp_path / "w.npz")
        with pytest.raises(ConfigurationError, match="weights of a navigator"):
            make("navigator", agent="random_text", weights=str(tmp_path / "w.npz"))
        with pytest.raises(ConfigurationError, match="cannot be read"):
            make("navigator", agent="random_text", weights=str(tmp_path / "none.npz"))


class BlockWorld:
    """A Markov process of blocks: the work is right or wrong; each state has a block that helps, and none helps always.

    Of wrong work only refine makes right work; of right work reason gets on, by one of two steps, after which terminate
    earns 1. Everything else leads to wrong work.
    """

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.right, self.done = bool(self.rng.integers(2)), 0

    def scores(self):
        right = 3 if self.right else 1
        return (right, right, right, 3 - self.done, 2, 1 + self.done, right)

    def play(self, choose, steps=8):
        for step in range(steps):
            block = allowed(choose(self.scores()), step=step, steps=steps, answered=False)
            if block == TERMINATE:
                break
            if not self.right:
                self.right = block in (REFINE, DEBATE)
            elif block == REASON:
                self.done = min(2, self.done + 1)
            else:
                self.right = False
        return float(self.right and self.done == 2)


SHORT = Learning(episodes=400, gamma=0.95, lr=3e-3, updates=2, copy_every=50, least_random=0.05)


def success(choose, episodes=200):
    return sum(BlockWorld(10_000 + seed).play(choose) for seed in range(episodes)) / episodes


def test_the_learned_policy_beats_the_best_fixed_block():
    weights = learn(lambda choose, seed: BlockWorld(seed).play(choose), SHORT, seed=0)
    assert {name: value.shape for name, value in weights.items()} == dict(_dueling.SHAPES)
    learned = success(lambda scores: int(np.argmax(_dueling.q_values(weights, np.asarray(scores)))))
    fixed = max(success(lambda scores, block=block: block) for block in range(5))
    assert fixed <= 0.6
    assert learned >= 0.95
    assert BLOCKS[int(np.argmax(_dueling.q_values(weights, np.asarray((3, 3, 3, 1, 2, 3, 3)))))] == "terminate"
