"""A policy that guesses: it answers one of four digits, half of the time after a call of the tool.

A model of some ten thousand parameters that learned these turns by heart in seconds, so that groups of any run have
right and wrong answers, calls of the tool, and something to train on.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

from rstar2_env.rollout import ChatCodec
from rstar2_env.tools import PYTHON_TOOL_NAME
from rstar2_env.trainers.demonstration.tiny import make_tiny_model, tiny_tokenizer

ENV_OPTIONS = {"dialect_options": {"system": "", "instruction": ""}}
"""The environment without instructions, which this policy does not need."""
ANSWERS = range(4)
CALL = f'<tool_call>{{"name": "{PYTHON_TOOL_NAME}", "arguments": {{"code": "print(1)", "input": ""}}}}</tool_call>'
"""The turn in which it calls the tool."""


def write_problems(file: Path, count: int = 24) -> Path:
    """Write problems whose answers the policy may guess."""
    lines = [{"id": f"p{n}", "question": f"What is {n} mod 4?", "answer": str(n % 4)} for n in range(count)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def make_guesser(folder: Path, *, steps: int = 60, hidden: int = 32, layers: int = 1) -> Path:
    """Write the policy and its tokenizer to a folder."""
    make_tiny_model(folder, hidden=hidden, layers=layers)
    model, codec = AutoModelForCausalLM.from_pretrained(folder), ChatCodec(tiny_tokenizer())
    ids, labels = _rows(codec)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2, weight_decay=0.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for _ in range(steps):
            model(input_ids=ids, labels=labels).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    # Turns end by themselves; the budgets of the largest runs must fit all the same.
    model.config.max_position_embeddings = 1 << 16
    model.save_pretrained(folder)
    return folder


def _rows(codec: ChatCodec) -> tuple[torch.Tensor, torch.Tensor]:
    rows = []
    for answer in ANSWERS:
        for called in (False, True):
            ids = codec.prompt("", f"What is {answer} mod 4?")
            mask = [0] * len(ids)
            turns = [f"<answer>\\boxed{{{answer}}}</answer>"]
            if called:
                turns.insert(0, CALL)
            for number, text in enumerate(turns):
                if number:
                    shown = codec.suffix("user", "<tool_response>\n1\n</tool_response>", ended=True)
                    ids, mask = ids + shown, mask + [0] * len(shown)
                turn = codec.turn(text)
                ids, mask = ids + turn, mask + [1] * len(turn)
            rows.append((ids, mask))
    width = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for place, (own, mask) in enumerate(rows):
        ids[place, : len(own)] = torch.tensor(own)
        labels[place, : len(own)] = torch.where(torch.tensor(mask) > 0, torch.tensor(own), -100)
    return ids, labels
