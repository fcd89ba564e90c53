"""An environment in TRL's slot ``environment_factory``: exactly its tools, typed and documented, and its reward."""

import inspect

import gymnasium as gym
import pytest
from bridged import SUMS, answer, direct

from rstar2_env.adapters.trl import environment_factory, hand_in, rows
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv
from rstar2_env.testing import StubSandbox, StubTool
from rstar2_env.tools import PYTHON_TOOL_NAME
from rstar2_env.wrappers import ToolBudget

ID = "rstar2/MathTool-v0"
PROBLEMS = [{"id": f"p{n}", "question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(5)]
PARAMETERS = {
    "type": "object",
    "properties": {
        "word": {"type": "string", "description": "A word,\nover two lines."},
        "times": {"type": "integer", "description": "How often."},
        "mode": {"enum": ["loud", "quiet"], "description": "How."},
    },
    "required": ["word", "mode"],
}


def stub(plan="done", **options):
    tool = StubTool(plan, name="say", parameters=PARAMETERS)
    return ToolEnv(problems=PROBLEMS, tools=[tool], grader=GoldGrader(), **options)


def tools_as_trl_finds_them(instance):
    """What GRPOTrainer does: functions of the class, but for reset, get_reward and private ones."""
    names = [name for name, _ in inspect.getmembers(type(instance), predicate=inspect.isfunction)]
    return [getattr(instance, n) for n in names if n not in ("reset", "get_reward") and not n.startswith("_")]


def test_the_model_sees_exactly_the_environments_tools():
    served = environment_factory(ID, sandbox=StubSandbox())()
    assert [tool.__name__ for tool in tools_as_trl_finds_them(served)] == [PYTHON_TOOL_NAME]
    served = environment_factory(stub, submit=True)()
    assert [tool.__name__ for tool in tools_as_trl_finds_them(served)] == ["say", "submit_answer"]


def test_transformers_reads_the_tools_own_schema_from_the_method():
    get_json_schema = pytest.importorskip("transformers.utils", reason="needs the extra 'train'").get_json_schema
    served = environment_factory(ID, sandbox=StubSandbox())()
    (tool,) = tools_as_trl_finds_them(served)
    read = get_json_schema(tool)["function"]
    own = served.env.unwrapped.tools.specs[0].schema()["function"]
    assert (read["name"], read["description"]) == (own["name"], own["description"])
    assert read["parameters"]["properties"] == own["parameters"]["properties"]
    assert set(read["parameters"]["required"]) == set(own["parameters"]["required"])
    say, submit = tools_as_trl_finds_them(environment_factory(stub, submit=True)())
    read = get_json_schema(say)["function"]["parameters"]
    assert read["required"] == ["word", "mode"]
    assert read["properties"]["mode"]["enum"] == ["loud", "quiet"]
    assert read["properties"]["times"]["type"] == "integer"
    assert read["properties"]["word"]["description"] == "A word, over two lines."
    assert get_json_schema(submit)["function"]["parameters"]["required"] == ["answer"]


def test_a_call_runs_the_tool_and_returns_its_result_without_a_dialects_tags():
    served = environment_factory(stub)()
    served.reset(problem_id="p1")
    assert served.say(word="ü", mode="loud") == "done"
    ((arguments, _),) = served.env.unwrapped.tools._tools["say"].calls
    assert arguments == {"word": "ü", "mode": "loud"}


def test_the_final_turn_is_handed_in_and_earns_its_reward():
    factory = environment_factory(stub)
    good, bad, cut = factory(), factory(), factory()
    for served in (good, bad, cut):
        served.reset(question="What is 2 + 2?", answer="4", prompt=[])
        served.say(word="x", mode="quiet")
    right = good.env.unwrapped.dialect.format_answer("4")
    completions = [
        [{"role": "assistant", "content": right}],
        [{"role": "assistant", "content": [{"type": "text", "text": "I give up."}]}],
        [{"role": "assistant", "content": "", "tool_calls": [{}]}],
    ]
    assert hand_in(completions, environments=[good, bad, cut], prompts=[]) == [None] * 3
    assert [served.get_reward() for served in (good, bad, cut)] == [1.0, 0.0, 0.0]
    assert [served.episode.end for served in (good, bad, cut)] == ["answered", "no_answer", ""]


def test_an_answer_may_be_submitted_as_a_call():
    served = environment_factory(stub, submit=True)()
    served.reset(problem_id="p3")
    served.submit_answer(answer="6")
    assert served.get_reward() == 1.0
    assert "over" in served.say(word="x", mode="loud")


def test_statuses_budgets_and_ends_are_the_environments_own():
    served = environment_factory(lambda: ToolBudget(stub([ToolStatus.EXCEPTION, "fine"], max_turns=4), 2))()
    served.reset(seed=1)
    for _ in range(3):
        served.say(word="x", mode="loud")
    assert [str(status) for status in served.episode.statuses] == ["exception", "ok", "blocked"]
    assert "turns" in served.say(word="x", mode="loud")
    assert served.episode.end == "turns"
    assert served.get_reward() == 0.0


def test_the_rollouts_of_a_row_play_the_same_problem_and_a_row_that_says_none_is_refused():
    factory = environment_factory(ID, sandbox=StubSandbox())
    made = rows(ID, 4, sandbox=StubSandbox())
    assert len({row["problem_id"] for row in made}) == 4
    assert made == rows(ID, 4, sandbox=StubSandbox())
    for row in made:
        assert factory().reset(**row) == factory().reset(**row)
    with pytest.raises(ConfigurationError, match="problem_id"):
        factory().reset(prompt=[])


@pytest.mark.parametrize("words", [("hello", "exception"), ("timeout",), (), ("unavailable",), ("a",) * 4])
def test_an_episode_is_the_one_that_is_played_directly(words):
    served = environment_factory(SUMS)()
    text = served.reset(problem_id="p3", seed=4)
    shown = [served.say(word=word) for word in words]
    last = [] if len(words) == 4 else [{"role": "assistant", "content": answer("6")}]
    hand_in([last or [{"role": "tool", "content": ""}]], environments=[served])
    turns = [*(served._dialect.format_call("say", {"word": word}) for word in words), *(m["content"] for m in last)]
    (first, _), *steps = direct(SUMS, 4, turns, "p3")
    assert text == first
    assert shown == [word if word not in set(ToolStatus) else f"stub: {word}" for word in words]
    calls = [call for step in steps for call in step[4]["tool_calls"]]
    assert [str(status) for status in served.episode.statuses] == [call["status"] for call in calls]
    assert served.get_reward() == sum(step[1] for step in steps)
    assert [turn.info for turn in served.episode.steps] == [step[4] for step in steps]
    assert served.episode.end == steps[-1][4].get("end", "")


def test_what_cannot_be_served_is_refused():
    with pytest.raises(ConfigurationError, match="ToolChain"):
        environment_factory(lambda: gym.make("CartPole-v1"))
    tool = StubTool(name="get_reward")
    with pytest.raises(ConfigurationError, match="rename"):
        environment_factory(lambda: ToolEnv(problems=PROBLEMS, tools=[tool], grader=GoldGrader()))
    with pytest.raises(ConfigurationError, match="environment_factory"):
        hand_in(["x"])


@pytest.mark.slow
def test_trls_trainer_takes_it(tmp_path, monkeypatch):
    pytest.importorskip("trl", reason="needs the extra 'train'")
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen3_chat_template

    words = {word: n for n, word in enumerate(["<unk>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b"])}
    plain = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token="<|im_end|>", pad_token="<|endoftext|>", unk_token="<unk>"
    )
    tokenizer.chat_template = qwen3_chat_template
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(words),
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            num_key_value_heads=1,
            head_dim=8,
        )
    )
    config = GRPOConfig(
        output_dir=str(tmp_path),
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=4,
        max_steps=1,
        report_to=[],
        use_cpu=True,
        bf16=False,
        save_strategy="no",
    )
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=[hand_in],
        args=config,
        train_dataset=Dataset.from_list(rows(ID, 2, sandbox=StubSandbox())),
        processing_class=tokenizer,
        environment_factory=environment_factory(ID, sandbox=StubSandbox()),
    )
    assert [tool.__name__ for tool in trainer.tools] == [PYTHON_TOOL_NAME]
    assert trainer.reward_func_names == ["hand_in", "MathTool"]
    trainer.train()
    logged = next(entry for entry in trainer.state.log_history if "rewards/MathTool/mean" in entry)
    assert logged["rewards/MathTool/mean"] == 0.0
    assert all(environment.episode.end == "no_answer" for environment in trainer.environments)
