"""Claims about agents that search chains of thought: what they ask, what a step earns, and which answer they give."""

from __future__ import annotations

import json
from itertools import product

import pytest
from scripted_model import ScriptedModel, answer, in_turn, tokens_of
from toy_worlds import Blocks, WrittenTree

from rstar2_env.agents import make
from rstar2_env.agents._autorace import CRITERIA, AutoRace, write_criteria
from rstar2_env.agents.search._chain import PROMISE, RIGHT, STEP, ThoughtChain, promise
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.search import Beam, BudgetSpentError, TreeSearch

SUSSMAN = Blocks((("a", "c"), ("b",)), (("c", "b", "a"),))
NAMES = ["rap_mcts", "reasoner", "mcts_puct", "retrieval_mcts"]
QUESTION = "Which way?"


class Maze:
    """A model that knows a maze: from the question three ways, then two; only one of the ways ends well.

    It proposes the ways in turn, finds useful what ``useful`` says, and predicts an outcome that varies if it is
    ``unsure`` of the step.
    """

    def __init__(self, useful, unsure=()):
        self._useful, self._unsure, self._asked = useful, unsure, {}

    def __call__(self, text, seed):
        task = text.rpartition("\n\n")[2]
        number = self._asked[text] = self._asked.get(text, -1) + 1
        depth = text.count("\n1. ") + text.count("\n2. ")
        if task == STEP:
            ways = ["left", "right", "ahead"] if depth == 0 else ["on", "Answer: " + _path(text)]
            return ways[number % len(ways)]
        if "Write in one line what is known" in task:
            step = task.partition(": ")[2].splitlines()[0]
            return f"door {number}" if step in self._unsure else "a door"
        if "Is it useful" in task:
            step = task.partition(": ")[2].splitlines()[0]
            return "Yes" if self._useful(_path(text), step) else "No"
        if task == RIGHT:
            return "Yes"
        if task == PROMISE:
            return "10" if self._useful(_path(text), "") else "0"
        return "Answer: nothing"


class Rated(WrittenTree):
    """A tree with four branches to a node and a value model that knows the way to the best leaf; ends there."""

    def __init__(self, best):
        super().__init__({path: 0.0 for depth in (1, 2, 3) for path in product(range(4), repeat=depth)})
        self._best, self._there = best, False

    def step(self, state, action):
        if self._there:
            raise BudgetSpentError
        after = super().step(state, action)
        self._there = after == self._best
        return after

    def value(self, state):
        return float(state == self._best[: len(state)])


def _path(text):
    work = text.partition("Work so far:\n")[2].splitlines()
    return " ".join(line.split(". ")[1].split(" -> ")[0] for line in work if line[:1].isdigit())


def thought(name, reply, told=None, question=QUESTION, seed=1, **options):
    agent = make(name, agent=ScriptedModel(reply, told), **options)
    agent.reset(question, {}, seed=seed)
    return agent, agent.act(question, {})


class TestToys:
    def test_raps_search_solves_what_greedy_search_does_not(self):
        rap = make("rap_mcts", agent="random_text").search
        assert rap == TreeSearch(iterations=10, depth=5, weight=1.0, score="uct", backup="mean", leaf="play")
        assert rap(SUSSMAN, SUSSMAN).ended
        assert not Beam(width=1, depth=5)(SUSSMAN, SUSSMAN).ended

    @pytest.mark.parametrize("search", ["greedy", "beam", "dfs", "mcts"])
    def test_every_search_of_the_reasoner_finds_the_best_leaf_when_it_looks_everywhere(self, search):
        tree = WrittenTree({(0,): 0.4, (0, 0): 0.1, (0, 1): 0.3, (1,): 0.9, (1, 0): 0.0, (1, 1): 0.8})
        found = make("reasoner", agent="random_text", search=search, ends=0, least=-1.0, iterations=200).search
        assert found(tree, tree).state == (1, 1)

    def test_puct_needs_fewer_steps_than_chance_to_the_best_leaf(self):
        search = make("mcts_puct", agent="random_text", iterations=500, depth=3).search
        assert (search.score, search.discount, search.leaf) == ("puct", 0.96, "value")
        needed = []
        for best in product(range(4), repeat=3):
            tree = Rated(best)
            search(tree, tree)
            needed.append(tree.steps)
        # Of 64 leaves drawn without replacement the best is the 32.5th on average, each three steps from the root.
        assert sum(needed) / len(needed) < 32.5


class TestEverySearchAgent:
    @pytest.mark.parametrize("name", NAMES)
    def test_finds_the_way_that_its_model_judges_useful(self, name):
        model = Maze(
            lambda path, step: "right on" in f"{path} {step} right on" and not {"left", "ahead"} & {*path.split(), step}
        )
        agent, turn = thought(name, model, iterations=12, width=3)
        assert "right" in turn
        assert not {"left", "ahead"} & set(turn.replace("{", " ").split())
        assert agent.usage["completion_tokens"] > 0

    @pytest.mark.parametrize("name", NAMES)
    def test_ends_with_the_best_it_has_when_its_tokens_are_spent(self, name):
        agent, turn = thought(name, Maze(lambda path, step: True), iterations=1000, width=3, tokens=30)
        # What is asked last may run over, and so does the answer.
        assert 30 <= agent.usage["completion_tokens"] <= 30 + 2 * tokens_of("Answer: right on on")
        assert "boxed" in turn

    @pytest.mark.parametrize("name", NAMES)
    def test_counts_every_token_that_its_model_writes(self, name):
        written = []

        def reply(text, seed):
            written.append(maze(text, seed))
            return written[-1]

        maze = Maze(lambda path, step: True)
        agent, _ = thought(name, reply, iterations=4, width=3)
        assert agent.usage["completion_tokens"] == sum(map(tokens_of, written))
        assert agent.usage["requests"] == len(written)

    @pytest.mark.parametrize("name", NAMES)
    def test_asks_for_an_answer_when_none_was_found(self, name):
        told = []
        _, turn = thought(name, lambda text, seed: "\n".join(("hm", "7")), told, iterations=2, depth=2)
        assert turn == answer(7)
        assert "Answer the question now" in told[-1]

    @pytest.mark.parametrize("name", NAMES)
    def test_is_told_what_was_said_before_in_a_later_turn(self, name):
        told = []
        agent, _ = thought(name, lambda text, seed: "Answer: 5", told, iterations=1)
        agent.act("And now?", {})
        assert told[-1].startswith(f"{QUESTION}\n\n{answer(5)}\n\nAnd now?")


class TestRap:
    def test_a_step_earns_by_how_useful_and_how_sure_it_is(self):
        agent = make("rap_mcts", agent=ScriptedModel(Maze(lambda path, step: True, unsure={"left"})), votes=4)
        agent.reset(QUESTION, {}, seed=0)
        world = agent.world(QUESTION)
        start = world.init_state()
        for step, sure in (("left", 0.25), ("right", 1.0)):
            after = world.step(start, step)
            assert (after.sure, world.fast_reward(start, step)) == (sure, 1.0)
            assert world.reward(start, step, after) == pytest.approx(sure**0.5)

    def test_a_step_that_half_of_the_judges_find_useful_looks_worth_its_root(self):
        agent = make("rap_mcts", agent=ScriptedModel(in_turn("Yes", "No", "No, yes", "Yes. No.")), votes=4)
        agent.reset(QUESTION, {}, seed=0)
        world = agent.world(QUESTION)
        start = world.init_state()
        assert world.fast_reward(start, "left") == pytest.approx(0.5**0.5)
        assert world.reward(start, "left", ThoughtChain(QUESTION, ("left",), 0.5)) == pytest.approx(0.5)

    @pytest.mark.parametrize(("output", "given"), [("path", "A"), ("vote", "B")])
    def test_the_paths_may_vote(self, output, given):
        ways = {"": ["left", "right", "ahead"], "left": ["Answer: A"], "right": ["Answer: B"], "ahead": ["Answer: B"]}
        # Useful to three of four, two and two of four: B has more than A together, and less alone.
        useful = {"left": 3, "right": 2, "ahead": 2}

        def reply(text, seed):
            seen[text] = seen.get(text, -1) + 1
            task, path = text.rpartition("\n\n")[2], _path(text)
            if task == STEP:
                return ways[path][seen[text] % len(ways[path])]
            step = task.partition(": ")[2].splitlines()[0]
            return "Yes" if seen[text] < useful.get(path or step, 4) else "No"

        seen = {}
        assert thought("rap_mcts", reply, iterations=40, width=3, votes=4, output=output)[1] == answer(given)


class TestPuct:
    def test_a_right_step_costs_nothing_a_wrong_one_all_and_an_answer_earns_its_value(self):
        agent = make("mcts_puct", agent="random_text", value=ScriptedModel(in_turn("7")), votes=1)
        agent.reset(QUESTION, {}, seed=0)
        world = agent.world(QUESTION)
        start, after = ThoughtChain(QUESTION), ThoughtChain(QUESTION, ("left",))
        assert world.value(start) == 0.7
        assert world.reward(start, "Answer: 1", ThoughtChain(QUESTION, ("Answer: 1",), answer="1")) == 0.7
        for said, earned in (("Yes.", 0.0), ("No.", -1.0)):
            world.checked_by = agent.asked.with_agent(ScriptedModel(in_turn(said)), "rstar2")
            assert world.reward(start, "left", after) == earned

    @pytest.mark.parametrize(("said", "value"), [("7", 0.7), ("I give it 10/10.", 1.0), ("none", 0.0), ("99", 1.0)])
    def test_a_value_is_the_first_number_out_of_ten(self, said, value):
        assert promise(said) == value

    def test_value_and_process_models_of_their_own_count_too(self):
        value, process = ScriptedModel(in_turn("9 9")), ScriptedModel(in_turn("Yes yes yes"))
        agent, _ = thought("mcts_puct", Maze(lambda path, step: True), value=value, process=process, iterations=3)
        alone, _ = thought("mcts_puct", Maze(lambda path, step: True), value=value, process="none", iterations=3)
        assert agent.usage["completion_tokens"] > alone.usage["completion_tokens"] > 0


class TestAutoRace:
    def asked(self, reply, told=None):
        agent = make("best_of_k", agent=ScriptedModel(in_turn(reply), told))
        agent.reset(QUESTION, {}, seed=0)
        return agent._asked

    @pytest.mark.parametrize(
        ("reply", "grade"),
        [
            ("1. Yes\n2. yes\n3: Yes", 3),
            ("1. Yes\n2. No\n3. Yes", 2),
            ("1. Yes\n9. Yes\n1. Yes", 1),
            ("?", 0),
        ],
    )
    def test_a_chain_has_the_share_of_the_criteria_that_it_meets(self, reply, grade):
        assert AutoRace()(self.asked(reply), QUESTION, "left\nAnswer: 1") == pytest.approx(grade / 3)

    def test_criteria_are_written_from_the_errors_of_wrong_chains(self):
        told = []
        model = ScriptedModel(
            in_turn("It cannot add.", "It forgot b.", "1. It adds right.\n2. It forgets nothing."), told
        )
        wrong = [("q1", "c1", "r1"), ("q2", "c2", "r2")]
        assert write_criteria(model, wrong) == ("It adds right.", "It forgets nothing.")
        assert all(text in told[0] for text in ("q1", "c1", "r1"))
        assert "- It cannot add.\n- It forgot b." in told[2]

    def test_general_criteria_stand_in_where_a_model_lists_none(self):
        assert write_criteria(ScriptedModel(in_turn("I do not know.")), [("q", "c", "r")]) == CRITERIA

    def test_the_reasoner_gives_the_chain_that_is_graded_best(self):
        def reply(text, seed):
            if "Criteria:" in text:
                return "1. Yes" if "Answer: B" in text else "1. No"
            if text.endswith(STEP):
                seen[text] = seen.get(text, -1) + 1
                return ["Answer: A", "Answer: B"][seen[text] % 2]
            return "Yes" if "Answer: A" in text else "No"

        seen = {}
        assert thought("reasoner", reply)[1] == answer("A")
        seen = {}
        assert thought("reasoner", reply, grade=True, criteria=["It is B."])[1] == answer("B")

    def test_it_scores_for_best_of_k(self):
        replies = [answer(1), "1. No", answer(2), "1. Yes\n2. Yes\n3. Yes"]
        agent = make("best_of_k", agent=ScriptedModel(in_turn(*replies)), k=2, scorer="autorace")
        agent.reset(QUESTION, {}, seed=0)
        assert agent.act(QUESTION, {}) == answer(2)


SOLVED = [
    {"question": "Make 24 of 6 and 4", "template": "multiply them", "steps": ["6 * 4"]},
    {"question": "Which way in a maze?", "template": "ahead, always", "steps": ["ahead", "on"]},
]


class TestRetrieval:
    def test_without_a_file_every_request_is_that_of_rap(self):
        told = {}
        for name in ("rap_mcts", "retrieval_mcts"):
            told[name] = []
            thought(name, Maze(lambda path, step: "right" in path + step), told[name], iterations=6, width=3)
        assert told["rap_mcts"] == told["retrieval_mcts"]
        assert len(told["rap_mcts"]) > 20

    def test_the_template_of_the_most_similar_problem_is_put_before_the_question(self):
        told = []
        thought("retrieval_mcts", lambda text, seed: "Answer: 1", told, solved=SOLVED)
        assert told[0].startswith(
            f"A similar problem: Which way in a maze?\nHow it is solved: ahead, always\n\n{QUESTION}\n"
        )
        assert "multiply" not in told[0]

    def test_similar_steps_are_shown_where_a_chain_is(self):
        told = []
        replies = in_turn("left and ahead", "Yes", "a wall ahead", "Answer: 2", "Yes")
        thought("retrieval_mcts", replies, told, solved=SOLVED, iterations=1, width=1)
        shown = [text for text in told if text.endswith(STEP)]
        assert "- ahead" not in shown[0]
        assert "Steps that helped in similar places:\n- ahead\n" in shown[1]

    def test_a_question_of_several_paragraphs_is_compared_as_a_whole(self):
        told = []
        solved = [{"question": "?", "steps": ["a maze"]}]
        thought(
            "retrieval_mcts", lambda text, seed: "Answer: 1", told, "In a maze.\n\nGo.", solved=solved, iterations=1
        )
        assert "Steps that helped in similar places:\n- a maze\n" in told[0]

    def test_with_an_oracles_template_one_iteration_is_enough(self):
        def reply(text, seed):
            if text.endswith(STEP):
                if "solved: Answer: 42" in text:
                    return "Answer: 42"
                return "Answer: 41"
            return "Yes"

        solved = [{"question": QUESTION, "template": "Answer: 42"}]
        assert thought("retrieval_mcts", reply, solved=solved, iterations=1)[1] == answer(42)
        assert thought("retrieval_mcts", reply, iterations=1)[1] == answer(41)

    def test_the_file_has_a_record_on_each_line(self, tmp_path):
        file = tmp_path / "solved.jsonl"
        file.write_text("\n".join(map(json.dumps, SOLVED)))
        told = []
        thought("retrieval_mcts", lambda text, seed: "Answer: 1", told, solved=str(file))
        assert "ahead, always" in told[0]
        file.write_text('{"template": "?"}')
        with pytest.raises(ConfigurationError, match=r"Record 1 of .* does not have a question"):
            make("retrieval_mcts", agent="random_text", solved=str(file))
        with pytest.raises(ConfigurationError, match="cannot be read"):
            make("retrieval_mcts", agent="random_text", solved=str(tmp_path / "none"))
