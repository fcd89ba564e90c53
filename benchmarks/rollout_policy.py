"""A tiny policy that calls the tool once to three times and then answers, in turns of random length.

Made in seconds: a Qwen3 of a few hundred thousand parameters learns by heart what a turn looks like, not what is right;
what it writes between the fixed words is random digits, as long as its own draws make them. Both sides of
``benchmarks/rollout.py`` play it. A pretrained model can learn the turns in place of the tiny one, in minutes. Not
covered: a policy that solves anything (``rstar2 demo`` trains one).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.rollout import ChatCodec
from rstar2_env.tools import PYTHON_TOOL_NAME
from rstar2_env.trainers.demonstration.tiny import make_tiny_model, tiny_tokenizer

TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ 'user' if message.role == 'tool' else message.role }}
{% if message.role == 'tool' -%}
<tool_response>
{{ message.content }}
</tool_response>
{%- else -%}
{{ message.content }}
{%- for call in message.tool_calls or [] -%}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor -%}
{%- endif -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}"""
"""ChatML that writes calls and results as the ``rstar2`` dialect does, so that both sides play the same ids."""

QUESTION = "What is %d times %d?"
CALL = f'<tool_call>{{"name": "{PYTHON_TOOL_NAME}", "arguments": {{"code": "print(%s)", "input": ""}}}}</tool_call>'
RESPONSE = "stub"
MORE_CALLS = 0.5
"""Chance of another call after a result."""
MOST_CALLS = 3
STEPS = {"tiny": 120, "pretrained": 16}
"""Training steps of both kinds of policy."""
MEAN_DIGITS = 20


def make_policy(
    folder: Path,
    *,
    pretrained: Path | None = None,
    steps: int | None = None,
    rows: int | None = None,
    hidden: int = 128,
    layers: int = 3,
    seed: int = 0,
) -> Path:
    """Write the model and its tokenizer to ``folder``; a folder that holds them already is kept.

    Args:
        folder: Where to.
        pretrained: Folder of a model that learns the turns in place of a new tiny one; its tokenizer must know the
            marks of ChatML.
        steps: Training steps; ``None`` chooses them from ``STEPS``.
        rows: Conversations in each; ``None`` for 16, or 8 if the model is pretrained.
        hidden: Width of the residual stream of a tiny model.
        layers: Number of its layers.
        seed: Seed of the initial weights and of the training data.
    """
    if (folder / "config.json").exists():
        return folder
    if pretrained is None:
        make_tiny_model(folder, hidden=hidden, layers=layers, seed=seed)
        tokenizer, rate = policy_tokenizer(), 3e-3
    else:
        tokenizer, rate = AutoTokenizer.from_pretrained(pretrained), 3e-4
        tokenizer.chat_template = TEMPLATE
    model = AutoModelForCausalLM.from_pretrained(pretrained or folder, dtype=torch.float32)
    steps = steps or STEPS["pretrained" if pretrained else "tiny"]
    rows = rows or (8 if pretrained else 16)
    _train(model, ChatCodec(tokenizer), steps, rows, rate, np.random.default_rng(seed))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def policy_tokenizer() -> PreTrainedTokenizerBase:
    """The demonstration's tokenizer with ``TEMPLATE``."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def conversation(codec: ChatCodec, question: str, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Ids of one conversation, and a mask that is 1 on the policy's."""
    ids = codec.prompt("", question)
    mask = [0] * len(ids)
    calls = 1 + int(rng.random() < MORE_CALLS) * (1 + int(rng.random() < MORE_CALLS) * (MOST_CALLS - 2))
    for call in range(calls + 1):
        digits = "".join(str(d) for d in rng.integers(0, 10, size=rng.geometric(1 / MEAN_DIGITS)))
        text = CALL % digits if call < calls else f"<answer>\\boxed{{{digits}}}</answer>"
        turn = codec.turn(text)
        ids += turn
        mask += [1] * len(turn)
        if call < calls:
            shown = codec.suffix("user", f"<tool_response>\n{RESPONSE}\n</tool_response>", ended=True)
            ids += shown
            mask += [0] * len(shown)
    return ids, mask


def _train(
    model: PreTrainedModel, codec: ChatCodec, steps: int, rows: int, rate: float, rng: np.random.Generator
) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / 10, 3 * (steps - step) / steps)
    )
    model.train()
    for _ in range(steps):
        batch = [conversation(codec, QUESTION % tuple(rng.integers(10, 1000, size=2)), rng) for _ in range(rows)]
        width = max(len(ids) for ids, _ in batch)
        ids, labels = torch.zeros(len(batch), width, dtype=torch.long), torch.full((len(batch), width), -100)
        for row, (own, mask) in enumerate(batch):
            ids[row, : len(own)] = torch.tensor(own)
            labels[row, : len(own)] = torch.where(torch.tensor(mask) > 0, torch.tensor(own), -100)
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval()
