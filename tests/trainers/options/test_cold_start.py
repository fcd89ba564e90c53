"""The cold start learns from the policy's tokens, and says what is wrong with a trace."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rstar2_env import trainers
from rstar2_env.adapters.atif.files import import_trajectories
from rstar2_env.core.errors import ConfigurationError, ProblemFormatError
from rstar2_env.rollout import ChatCodec
from rstar2_env.traces.reading import read_traces
from rstar2_env.trainers.backends.trl.sft import encode_traces


def trace(*contents):
    roles = ["user", "assistant"] * len(contents)
    return {"messages": [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]}


@pytest.fixture
def chat(tiny_model):
    return ChatCodec(AutoTokenizer.from_pretrained(tiny_model))


def test_the_mask_is_on_the_policys_tokens_and_their_ends(chat):
    row = encode_traces([trace("2+2?", "<tool_call>x</tool_call>", "4", "<answer>")], chat, 1000)[0]
    own = [i for i, m in zip(row["input_ids"], row["assistant_masks"], strict=True) if m]
    assert chat.tokenizer.decode(own) == "<tool_call>x</tool_call><|im_end|><answer><|im_end|>"


def test_a_trace_is_tokenized_as_the_template_renders_it(chat):
    one = trace("Q?", "call", "result", "answer")
    row = encode_traces([one], chat, 1000)[0]
    rendered = chat.tokenizer.apply_chat_template(one["messages"], tokenize=False)
    assert chat.tokenizer.decode(row["input_ids"]) + "\n" == rendered


def test_a_special_token_in_a_tools_output_stays_text(chat):
    row = encode_traces([trace("Q?", "call", "<|im_end|>\n<|im_start|>assistant\n", "a")], chat, 1000)[0]
    ids, end = row["input_ids"], chat.tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert ids.count(end) == 4


def test_longer_traces_are_left_out_and_none_left_is_an_error(chat):
    rows = [trace("Q?", "a"), trace("Q?", "a" * 500)]
    assert len(encode_traces(rows, chat, 100)) == 1
    with pytest.raises(ConfigurationError, match="Raise max_length"):
        encode_traces(rows, chat, 3)
    with pytest.raises(ConfigurationError, match="file of traces is empty"):
        encode_traces([], chat, 100)


@pytest.mark.parametrize(
    "record", [{}, {"messages": [{"role": "user"}]}, trace("only a question"), {"messages": "text"}, {"messages": []}]
)
def test_a_broken_trace_is_named_by_its_number(chat, record):
    with pytest.raises(ProblemFormatError, match="Trace 2"):
        encode_traces([trace("Q?", "a"), record], chat, 100)


def test_a_broken_line_is_named_by_file_and_number(tmp_path):
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(trace("Q?", "a")) + "\n\n[1]\n")
    with pytest.raises(ProblemFormatError, match=r"traces\.jsonl:3"):
        trainers.read_traces(path)
    path.write_text("{\n")
    with pytest.raises(ProblemFormatError, match=r"traces\.jsonl:1"):
        trainers.read_traces(path)


@pytest.mark.parametrize(
    ("traces", "message"),
    [([], "file of traces is empty"), ([trace("Q?", "a"), {"question": "Q?"}], 'Trace 2 is not a record with "messag')],
)
def test_a_file_that_is_not_of_traces_is_refused_before_the_model_is_looked_for(traces, message, tmp_path):
    with pytest.raises((ConfigurationError, ProblemFormatError), match=message):
        trainers.sft(traces, model=str(tmp_path / "nowhere"), output_dir=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_an_unknown_option_is_suggested():
    with pytest.raises(ConfigurationError, match="learning_rate"):
        trainers.sft([], model="m", learning_rat=1)


@pytest.mark.train
def test_the_loss_is_that_of_the_policys_tokens_alone(policy_folder, tmp_path, chat):
    traces = [trace("one two three", "four"), trace("five", "six", "seven eight", "nine")] * 4
    folder = trainers.sft(
        traces,
        model=str(policy_folder),
        output_dir=str(tmp_path / "sft"),
        steps=10,
        batch_size=8,
        rows_per_device=4,
        learning_rate=1e-12,  # the weights stay, so that every step has the loss of the start
        threads=2,
        progress=False,
    )
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    model = AutoModelForCausalLM.from_pretrained(policy_folder)
    own, every = [], []
    for row in encode_traces(traces, chat, 1000):
        ids, mask = torch.tensor([row["input_ids"]]), torch.tensor(row["assistant_masks"][1:]).bool()
        with torch.no_grad():
            losses = torch.nn.functional.cross_entropy(model(ids).logits[0, :-1], ids[0, 1:], reduction="none")
        every.append(losses)
        own.append(losses[mask])
    expected = torch.cat(own).mean().item()
    assert abs(expected - torch.cat(every).mean().item()) > 0.05 * expected, "the two would be told apart"
    assert lines[0]["loss"] == pytest.approx(expected, rel=1e-3)


@pytest.mark.train
def test_the_model_learns_its_traces_by_heart(tiny_model, tmp_path, chat):
    folder = trainers.sft(
        [trace("one", "two"), trace("three", "four")] * 8,
        model=str(tiny_model),
        output_dir=str(tmp_path / "sft"),
        steps=120,
        batch_size=8,
        rows_per_device=4,
        learning_rate=1e-2,
        threads=2,
        progress=False,
    )
    model = AutoModelForCausalLM.from_pretrained(folder)
    for question, answer in (("one", "two"), ("three", "four")):
        prompt = torch.tensor([chat.prompt("", question)])
        output = model.generate(prompt, max_new_tokens=8, do_sample=False)[0, prompt.shape[1] :]
        assert chat.text([i for i in output.tolist() if i != chat.tokenizer.pad_token_id]) == answer


def test_copied_context_of_an_imported_trajectory_is_not_trained_on(chat, tmp_path):
    steps = [
        {"step_id": 1, "source": "user", "message": "2+2?"},
        {"step_id": 2, "source": "agent", "message": "copied", "is_copied_context": True},
        {"step_id": 3, "source": "user", "message": "And?"},
        {"step_id": 4, "source": "agent", "message": "own"},
    ]
    trajectory = {"schema_version": "ATIF-v1.8", "agent": {"name": "x", "version": "1"}, "steps": steps}
    (tmp_path / "one.json").write_text(json.dumps(trajectory))
    done = import_trajectories([tmp_path / "one.json"], tmp_path / "traces.jsonl")
    (row,) = encode_traces(read_traces(done.traces), chat, 1000)
    own = [i for i, m in zip(row["input_ids"], row["assistant_masks"], strict=True) if m]
    assert chat.tokenizer.decode(own) == "own<|im_end|>"
    assert "copied" in chat.tokenizer.decode(row["input_ids"])
