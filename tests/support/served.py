"""Stages that start servers: a pipeline of one that plays on ``saying_vllm.py``, and the processes of its servers."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from chain import free_port
from guesser import ANSWERS, CALL, ENV_OPTIONS
from places import SUPPORT
from saying_vllm import TURNS

from rstar2_env.rollout import ChatCodec
from rstar2_env.trainers.demonstration.tiny import make_tiny_model, tiny_tokenizer

_PROGRAM = shlex.join([sys.executable, str(SUPPORT / "saying_vllm.py")]) + " {model} {port} {host}"


def make_sayer(folder: Path) -> Path:
    """Write a model, which is not asked, and what servers of it say: one of four digits, or a call."""
    make_tiny_model(folder, hidden=32, layers=1)
    codec = ChatCodec(tiny_tokenizer())
    turns = [codec.turn(text) for text in (CALL, *(f"<answer>\\boxed{{{digit}}}</answer>" for digit in ANSWERS))]
    (folder / TURNS).write_text(json.dumps([list(turn) for turn in turns]), "utf-8")
    return folder


def serve_options(devices: str = "0,1", **more: Any) -> dict[str, Any]:
    """The option ``serve``, with servers of the program on free ports."""
    return {"devices": devices, "port": free_port(), "server_program": _PROGRAM, **more}


def write_filter(folder: Path, model: Path, problems: Path, **options: Any) -> Path:
    """Write a pipeline of one stage, ``hard``, which keeps every problem and plays each four times."""
    hard = {"kind": "filter", "model": str(model), "problems": str(problems), "n": 4, "drop_from": 1.5}
    hard |= {"engine": "vllm", "env_options": ENV_OPTIONS, "model_options": {"max_in_flight": 2}, **options}
    file = folder / "pipeline.json"
    file.write_text(json.dumps({"stages": {"hard": hard}}), "utf-8")
    return file


def played(folder: Path) -> dict[int, list[str]]:
    """What was said in every episode that the stage played, by its number."""
    file = folder / "stages" / "hard" / "episodes" / "eval-000000.jsonl"
    if not file.exists():
        return {}
    lines = file.read_text("utf-8").split("\n")[:-1]  # a line that is not whole yet is none
    return {one["index"]: [said["content"] for said in one["messages"]] for one in map(json.loads, lines)}


def answered(folder: Path) -> list[int]:
    """How many turns each server of the stage generated, by their numbers."""
    logs = sorted((folder / "stages" / "hard.launched").glob("server-*.log"))
    return [log.read_text("utf-8").count("/v1/completions 200") for log in logs]


def processes_with(*words: str) -> list[int]:
    """The processes of this machine whose command has all of these words."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit():
                given = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if all(any(word in one for one in given) for word in words):
                    found.append(int(process.name))
    return found


def servers_of(model: Path) -> list[int]:
    """The processes of servers of that folder."""
    return processes_with("saying_vllm.py", str(model))
