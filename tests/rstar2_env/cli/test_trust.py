"""No command runs, sends or prints on behalf of a folder that somebody sends; the list of commands is the app's own."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from cli_runner import invoke
from hostile_runs import FOLDERS, PLANTED, ROWS, STRANGE_LINES, VARIABLE, Scene, file_in
from places import DOCS
from typer.testing import Result
from viewed import viewed

from rstar2_env.cli import COMMANDS, build, main
from rstar2_env.cli._calls import FORMS
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.trust import UntrustedError, bounds
from rstar2_env.trainers.api import make_trainer

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
READS_NO_FILE = frozenset({"demo", "sandbox check", "sandbox image", "sandbox serve", "sandbox serve-mcp"})
"""Commands that take no file of anybody's: they have no argument, and no option that names one."""
CALLS: dict[str, list[str]] = {
    "train": [
        "FOLDER --model MODEL --steps 1 --out OUT",
        "grpo --model FOLDER --problems FILE --steps 1 --out OUT",
        "FOLDER --model MODEL --steps 2 --out COPY --resume",
    ],
    "launch": ["--colocate --cpu --dry-run -- FOLDER --model MODEL --out OUT"],
    "plan": ["FOLDER --model MODEL", "--model FOLDER", "--model FILE", "--config FILE --model MODEL"],
    "sft": [
        "--traces FILE --model FOLDER --steps 1 --out OUT",
        "--traces FILE --model MODEL --set dtype=float32 --steps 2 --out COPY --resume",
    ],
    "export": ["FOLDER --out OUT", "FOLDER --out OUT --which checkpoint-1", "FOLDER --out OUT --dtype bfloat16"],
    "export --to": ["atif FOLDER --out OUT", "atif FILE --out OUT"],
    "traces --from": ["atif FOLDER --out OUT.jsonl", "atif FILE --out OUT.jsonl"],
    "traces": ["--problems FILE --agent oracle -n 1 --out OUT.jsonl"],
    "eval": [
        "rstar2/MathTool-v0 --agent oracle --problems FILE -n 1 --out OUT",
        "rstar2/MathTool-v0 --model FOLDER --problems arithmetic -n 1 --max-tokens 8",
        "rstar2/MathTool-v0 --agent oracle --problems arithmetic -n 1 --baseline FOLDER",
        "FILE",
    ],
    "export --env": ["rstar2/MathTool-v0 --to harbor --set env.problems=FILE --out OUT"],
    "play": ["rstar2/MathTool-v0 --problems FILE"],
    "compare": ["FOLDER FOLDER", "FOLDER GOOD"],
    "view": ["--text --no-pager FOLDER", "--text FOLDER --episodes 3", "--report OUT.html FOLDER", "--text FILE"],
    "doctor": ["--machine MACHINE --folder FOLDER --report OUT.md"],
    "validate": ["rstar2/MathTool-v0 --problems FILE -n 1"],
    "verify": ["--jsonl FILE"],
    "verify --run": ["FOLDER", "FILE"],
    "verify --run --episode": ["FOLDER 0", "FILE 0"],
    "list trainers": ["FILE", "FOLDER"],
    "problems decontaminate": ["--problems FILE --against FILE --out OUT.jsonl"],
    "sandbox run": ["FILE"],
    "problems write": ["FILE --out OUT.jsonl"],
    "run": ["FILE --dry-run --out OUT"],
}
"""How a command reads a folder. A command that is missing here gets the folder, and the file, for each argument."""

TYPES_A_TOKEN: dict[str, tuple[str, bool]] = {
    "eval": ("rstar2/MathTool-v0 --agent oracle --problems arithmetic -n 1 --out OUT", True),
    "train": ("grpo --model MODEL --problems arithmetic --steps 1 --out OUT", False),
    "play": ("rstar2/MathTool-v0 --problems arithmetic --out OUT.jsonl", False),
    "validate": ("rstar2/MathTool-v0 --problems arithmetic -n 1 --json", False),
    "export --env": ("rstar2/MathTool-v0 --to verifiers --out OUT", True),
    "traces": ("--agent oracle --problems arithmetic -n 1 --out OUT.jsonl", False),
    "launch": ("--colocate --cpu --dry-run -- grpo --model MODEL --problems arithmetic", False),
    "plan": ("grpo --model MODEL", False),
    "sandbox run": ("-c 1 --provider remote", False),
    "sandbox check": ("--provider remote", False),
    "sandbox serve": ("--host 192.0.2.1 --token TOKEN", False),
    "serve --env": ("rstar2/MathTool-v0 --host 192.0.2.1", False),
}
"""How a command that takes options of a sandbox is typed, and whether it writes them. A command that is missing here is
called as in ``CALLS``. Nobody can listen on 192.0.2.1."""


def takes_settings(command: Any) -> bool:
    """Whether a command takes options with ``--set``."""
    return any("--set" in p.opts for p in command.params)


@functools.cache
def commands() -> dict[str, Any]:
    """Every command of the app, by what selects it."""
    found: dict[str, Any] = {}
    for name in COMMANDS:
        command: Any = typer.main.get_command(build([name])).commands[name]  # type: ignore[attr-defined]
        for inner, each in getattr(command, "commands", {"": command}).items():
            found[f"{name} {inner}".strip()] = each
        for flags in FORMS.get(name, {}):
            words = [name, *(word for flag in flags for word in (flag, "x"))]
            found[" ".join([name, *flags])] = typer.main.get_command(build(words)).commands[name]  # type: ignore[attr-defined]
    return found


def calls_of(name: str, command: Any) -> list[str]:
    """The calls of a command."""
    if name in CALLS or name in READS_NO_FILE:
        return CALLS.get(name, [])
    needed = [p for p in command.params if p.param_type_name == "argument" or p.required]
    words = ["OUT" if p.name in ("out", "output_dir") else "FOLDER" for p in needed]
    flags = [p.opts[-1] if p.param_type_name == "option" else "" for p in needed]
    call = " ".join(f"{flag} {word}".strip() for flag, word in zip(flags, words, strict=True))
    return [call, call.replace("FOLDER", "FILE")]


def words_of(name: str, call: str, **places: Path) -> list[str]:
    """The words that a user types."""
    values = call.split()
    for at, flag in enumerate(word for word in name.split() if word.startswith("--")):
        values.insert(2 * at, flag)
    words = [word for word in name.split() if not word.startswith("--")] + values
    for key, path in places.items():
        words = [re.sub(rf"\b{key}\b", lambda _, path=path: str(path), word) for word in words]  # type: ignore[misc]
    return words


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Scene]:
    """What the folders are made from, and a listener that remembers what it was sent."""
    base = tmp_path_factory.mktemp("scene")
    (base / "marks").mkdir()
    good = base / "good"
    call = f"eval rstar2/MathTool-v0 --agent oracle --problems arithmetic -n 2 --out {good}".split()
    assert invoke(call, env={}).exit_code == 0
    machine = Path(__file__).parents[1] / "doctor" / "machines" / "mi300x.json"

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            (base / "marks" / "request").write_text(str(self.headers))
            self.send_error(403)

        do_GET = do_POST

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Scene(good, tiny_model, machine, base / "marks", f"http://127.0.0.1:{server.server_port}/v1")
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def folders(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("hostile")
    for name, make in FOLDERS.items():
        make(base / name, scene)
    return {name: base / name for name in FOLDERS}


def typed(words: list[str]) -> Result:
    """Run a call in this process, with a secret in the environment."""
    secrets = dict.fromkeys((VARIABLE, "HF_TOKEN", "OPENAI_API_KEY", "VLLM_API_KEY", "RSTAR2_SANDBOX_TOKEN"), PLANTED)
    env = {"COLUMNS": "200", "FORCE_COLOR": None, "TTY_COMPATIBLE": None, **secrets}
    return invoke(words, env=env, stdin="")


def refused(folder: Path, call: str, scene: Scene, tmp_path: Path) -> Result:
    """Run a call on a folder, which must end with exit code 2."""
    result = typed(words_of("", call, FOLDER=folder, FILE=file_in(folder), MODEL=scene.model, OUT=tmp_path / "out"))
    assert result.exit_code == 2
    return result


def copied(folder: Path, to: Path) -> Path:
    """Copy a folder for a command that writes to it; links and named pipes stay what they are."""
    subprocess.run(["cp", "-a", folder, to], check=True)
    return to


@pytest.fixture(scope="module")
def opened() -> Iterator[list[str]]:
    """The files that this process opens, until a test clears the list."""
    files: list[str] = []
    watching = True

    def hook(event: str, values: tuple[Any, ...]) -> None:
        if watching and event == "open":
            files.append(str(values[0]))

    sys.addaudithook(hook)  # it cannot be removed
    yield files
    watching = False


READS_LINES = {"diagnose", "view"}


@pytest.mark.parametrize("name", sorted(commands()))
def test_no_command_acts_for_a_folder(
    name: str,
    scene: Scene,
    folders: dict[str, Path],
    opened: list[str],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = calls_of(name, commands()[name])
    copies = tmp_path_factory.mktemp("copies")
    not_read: set[tuple[int, str]] = set()
    for kind, folder in folders.items():
        for number, call in enumerate(calls):
            # A call that did not open the file with the first strange line does not read the other strange lines.
            file = STRANGE_LINES.get(kind, ("", ""))[0]
            if (number, file) in not_read:
                continue
            opened.clear()
            places = {"OUT": tmp_path / f"{kind}-{number}", "FOLDER": folder, "FILE": file_in(folder)}
            places |= {"MODEL": scene.model, "GOOD": scene.evaluation, "MACHINE": scene.machine}
            if "COPY" in call:
                places["COPY"] = copied(folder, copies / f"{kind}-{number}")
            words = words_of(name, call, **places)
            result = typed(words)
            said = f"{' '.join(words)}\n{result.output}"
            assert result.exception is None or isinstance(result.exception, SystemExit), said
            assert not list(scene.marks.iterdir()), said
            assert not CONTROLS.search(result.output), said
            assert PLANTED not in result.output, said
            if file and not any(path.endswith(f"{folder.name}/{file}") for path in opened):
                not_read.add((number, file))
    assert name not in READS_LINES or not not_read
    for written in tmp_path.rglob("*"):
        assert not written.is_file() or PLANTED.encode() not in written.read_bytes(), written


def test_each_kind_of_folder_has_a_row_in_the_document() -> None:
    text = (DOCS / "trust.md").read_text("utf-8").partition("| folder with |")[2]
    assert {*re.findall(r"^\| (.+?) \|", text, re.MULTILINE)} - {"---"} == {*ROWS.values()}
    beginnings = tuple(f"{key}_" for key in ROWS)
    assert [kind for kind in FOLDERS if kind not in ROWS and not kind.startswith(beginnings)] == []
    assert [key for key in ROWS if not any(kind == key or kind.startswith(f"{key}_") for kind in FOLDERS)] == []


def test_the_tables_name_commands() -> None:
    found = commands()
    assert {*CALLS, *READS_NO_FILE} <= set(found)
    assert not any(p.param_type_name == "argument" for name in READS_NO_FILE for p in found[name].params)


REPLAY = "verify --run FOLDER --episode 0"
REGRADE = "verify --run FOLDER"
EXPORT = "export FOLDER --out OUT"
FEW = "--problems arithmetic -n 1 --max-tokens 8"
FEW_STEPS = "--problems arithmetic --steps 1 --out OUT"


@pytest.mark.parametrize(
    ("kind", "call", "place"),
    [
        ("env", REPLAY, "(env) names the Python code"),
        ("wrapper", REPLAY, "(wrappers) names the Python code"),
        ("verifier", REPLAY, "(env_options.verifier) names the Python code"),
        ("verifier", REGRADE, "(env_options.verifier) names the Python code"),
        ("dialect", REGRADE, "(env_options.dialect) names the Python code"),
        ("module", REPLAY, "(env) names the Python code os:system"),
        ("isolation", REPLAY, "chooses a sandbox (env_options.sandbox ="),
        ("server", REPLAY, "chooses an MCP server (env_options.tools ="),
        ("address", REGRADE, "chooses an address (env_options.verifier ="),
        ("writer", REPLAY, "chooses a file to write (wrappers ="),
        ("readable", REPLAY, "chooses a sandbox (env_options.tools ="),
        (
            "engine",
            "train FOLDER --model MODEL --out OUT",
            "chooses the option worker_extension_cls of another package",
        ),
        ("trl_options", "train FOLDER --model MODEL --out OUT", "chooses the option push_to_hub of another package"),
        ("trust_remote_code", EXPORT, "chooses the code of a model (model.trust_remote_code ="),
        ("parts", "train FOLDER --model MODEL --out OUT", "(parts.selector.name) names the Python"),
        ("parts", "plan FOLDER --model MODEL", "(parts.selector.name) names the Python"),
        (
            "parts",
            "launch --colocate --cpu -- FOLDER --model MODEL --out OUT",
            "(parts.selector.name) names the Python",
        ),
        ("recipe", "list trainers FILE", "(parts.selector) names the Python code"),
    ],
)
def test_a_refusal_says_what_where_and_the_flag(
    kind: str, call: str, place: str, scene: Scene, folders: dict[str, Path], tmp_path: Path
) -> None:
    result = refused(folders[kind], call, scene, tmp_path)
    assert f"{folders[kind]}" in result.stderr
    assert place in result.stderr
    assert "(--trust)" in result.stderr
    assert "troubleshooting#trust" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("env", REPLAY),
        ("wrapper", REPLAY),
        ("writer", REPLAY),
        ("verifier", REGRADE),
        ("dialect", REGRADE),
        ("isolation", REPLAY),
        ("trust_remote_code", EXPORT),
        ("recipe", "list trainers FILE"),
    ],
)
def test_each_folder_acts_once_it_is_trusted(kind: str, call: str, scene: Scene, tmp_path: Path) -> None:
    # Without this, a payload that never worked would look like a payload that was refused.
    own = Scene(scene.evaluation, scene.model, scene.machine, tmp_path / "marks", scene.listener)
    own.marks.mkdir()
    folder = tmp_path / kind
    FOLDERS[kind](folder, own)
    words = words_of("", f"{call} --trust", FOLDER=folder, FILE=file_in(folder), OUT=tmp_path / "out")
    result = typed(words)
    assert list(own.marks.iterdir()), result.output


def test_a_run_that_this_user_recorded_is_trusted_until_it_changes(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    begin = (
        "eval rstar2/MathTool-v0 --agent oracle --problems arithmetic -n 1 --out run --set env.sandbox.isolation=best"
    )
    assert typed(begin.split()).exit_code == 0
    replay = ["verify", "--run", "run", "--episode", "0"]
    assert typed(replay).exit_code == 0
    monkeypatch.chdir(tmp_path.parent)  # relative names of code would mean other files
    assert "--trust" in typed(["verify", "--run", f"{tmp_path}/run", "--episode", "0"]).stderr
    monkeypatch.chdir(tmp_path)
    config = json.loads(Path("run/config.json").read_text())
    Path("run/config.json").write_text(json.dumps({**config, "seed": 7}))
    assert "--trust" in typed(replay).stderr
    assert typed([*replay, "--trust"]).exit_code == 0


@pytest.mark.parametrize("kind", ["parts", "trust_remote_code", "engine"])
def test_resuming_the_run_of_another_person_needs_trust(
    kind: str, scene: Scene, folders: dict[str, Path], tmp_path: Path
) -> None:
    copy = copied(folders[kind], tmp_path / "copy")
    result = refused(copy, "train FOLDER --model MODEL --out FOLDER --resume", scene, tmp_path)
    assert f"{copy}" in result.stderr
    assert "(--trust)" in result.stderr
    assert not list(scene.marks.iterdir())


@pytest.mark.parametrize(
    ("kind", "call", "said"),
    [
        ("resumed", "train FOLDER --model MODEL --steps 2 --out FOLDER --resume", "checkpoint-1 cannot be read"),
        (
            "resumed_sft",
            "sft --traces FILE --model MODEL --set dtype=float32 --steps 2 --out FOLDER --resume",
            "checkpoint-1 cannot be read",
        ),
        ("outside", "train FOLDER --model MODEL --out FOLDER --resume", "outside of the run's folder"),
    ],
)
def test_a_folder_is_resumed_as_far_as_its_first_pickle_or_link(
    kind: str, call: str, said: str, scene: Scene, folders: dict[str, Path], tmp_path: Path
) -> None:
    # Without this, the calls in CALLS could be refused before they read the checkpoint.
    result = refused(copied(folders[kind], tmp_path / "copy"), call, scene, tmp_path)
    assert said in " ".join(result.stderr.split())
    assert not list(scene.marks.iterdir())


@pytest.mark.parametrize("kind", ["parts", "trust_remote_code"])
def test_a_run_folder_that_python_names_runs_no_code(kind: str, scene: Scene, tmp_path: Path) -> None:
    own = Scene(scene.evaluation, scene.model, scene.machine, tmp_path / "marks", scene.listener)
    own.marks.mkdir()
    FOLDERS[kind](tmp_path / kind, own)
    options = {
        "model": str(scene.model),
        "env_options": {"problems": "arithmetic"},
        "output_dir": str(tmp_path / "out"),
    }
    with pytest.raises(UntrustedError, match=kind if kind != "parts" else r"parts\.selector\.name"):
        make_trainer(str(tmp_path / kind), options)
    assert not list(own.marks.iterdir())


def test_a_run_folder_that_python_trusts_runs_its_code(scene: Scene, tmp_path: Path) -> None:
    own = Scene(scene.evaluation, scene.model, scene.machine, tmp_path / "marks", scene.listener)
    own.marks.mkdir()
    FOLDERS["parts"](tmp_path / "parts", own)
    options = {
        "model": str(scene.model),
        "env_options": {"problems": "arithmetic"},
        "output_dir": str(tmp_path / "out"),
    }
    with bounds(trust=True), pytest.raises(ConfigurationError):  # the payload is no selector
        make_trainer(str(tmp_path / "parts"), options)
    assert list(own.marks.iterdir())


def test_code_that_the_user_types_runs_beside_a_run(scene: Scene, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "from rstar2_env.verification import Verdict, Reason\n"
        "class V:\n    def __call__(self, gold, answer, question=None):\n"
        "        open('asked', 'w')\n        return Verdict(True, Reason.EQUAL, 'mine')\n"
        "    async def acall(self, gold, answer, question=None):\n        return self(gold, answer)\n"
    )
    result = typed(["verify", "--run", str(scene.evaluation), "--verifier", "./mine.py:V"])
    assert "names the Python code" not in result.output
    assert Path("asked").exists(), result.output


def test_every_line_that_a_command_prints_is_cleaned() -> None:
    # `say`, the tables, the screen and the logs clean what they print; a command that prints in another way would not.
    folder = Path(__file__).parents[3] / "rstar2_env" / "cli"
    assert len(list(folder.glob("*.py"))) > 30
    raw = re.compile(
        r"typer\.s?echo\(|^\s*print\((?!prompt|\"Interrupted)|onsole(?:\(\))?\.\w*print\w*\(|std(?:out|err)\.write\w*\(",
        re.MULTILINE,
    )
    counts = {file.name: len(raw.findall(file.read_text())) for file in folder.glob("*.py")}
    for cleans in ("_printing.py", "_tables.py", "_screen.py", "_logs.py"):
        assert counts.pop(cleans), cleans
    # The pages of this package, and a table whose cells are cleaned.
    assert {name: count for name, count in counts.items() if count} == {"help.py": 1, "sandbox.py": 1}


@pytest.mark.parametrize("name", sorted({*TYPES_A_TOKEN, *(n for n, c in commands().items() if takes_settings(c))}))
def test_a_typed_token_reaches_no_file_and_no_line(
    name: str, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server is a listener that refuses everything, so each command also reports an error.
    monkeypatch.chdir(tmp_path)
    token, url = "typed-token-77aa31", scene.listener.removesuffix("/v1")
    prefix = "" if name.startswith("sandbox") else "env.sandbox."
    remote = [f"{prefix}provider=remote"] if prefix else []
    settings = [*remote, f"{prefix}url={url}", f"{prefix}token={token}"]
    call, written = TYPES_A_TOKEN.get(name) or ((calls_of(name, commands()[name]) or [""])[0], False)
    places = {"MODEL": scene.model, "FOLDER": scene.evaluation, "FILE": scene.evaluation / "config.json"}
    words = words_of(name, call.replace("TOKEN", token), **places, OUT=tmp_path / "out")
    result = typed([*words, *(word for setting in settings for word in ("--set", setting))])
    for file in scene.marks.iterdir():
        file.unlink()  # these requests were typed
    assert token not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not [file for file in files if token.encode() in file.read_bytes()]
    if written:
        assert any(b"***" in file.read_bytes() for file in files), result.output


def test_the_command_line_that_trackers_record_holds_no_typed_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["rstar2", "train", "--set", "env.sandbox.token=typed-token-77aa31", "--no-such"])
    with pytest.raises(SystemExit):
        main()
    assert sys.argv[3:] == ["env.sandbox.token=***", "--no-such"]


def test_the_viewer_shows_each_folder_and_does_nothing_else(
    scene: Scene, folders: dict[str, Path], tmp_path: Path
) -> None:
    with viewed(next(iter(folders.values())).parent, base=tmp_path) as ask:
        runs = [row["run"] for row in ask.json("runs")["runs"]]
        assert len(runs) > 10
        for run in runs:
            for path in ("", "/metrics", "/groups", "/problems", "/episodes?limit=10"):
                reply = ask(f"/api/runs/{run}{path}")
                assert reply.status == 200, reply.body
                assert PLANTED.encode() not in reply.body
    assert not list(scene.marks.iterdir())


def test_a_pickle_of_shards_is_refused_where_torch_would_run_it(scene: Scene, tmp_path: Path) -> None:
    from torch.distributed.checkpoint.filesystem import FileSystemReader

    own = Scene(scene.evaluation, scene.model, scene.machine, tmp_path / "marks", scene.listener)
    own.marks.mkdir()
    FOLDERS["pickles"](tmp_path / "run", own)
    checkpoint = tmp_path / "run" / "checkpoint-1"
    result = typed(["export", str(tmp_path / "run"), "--which", "checkpoint-1", "--out", str(tmp_path / "out")])
    assert "does not belong to the metadata of a checkpoint" in result.stderr
    assert not list(own.marks.iterdir())
    with contextlib.suppress(Exception):
        FileSystemReader(checkpoint / "shards").read_metadata()
    assert list(own.marks.iterdir()), "the payload of this test does nothing"


def test_shards_that_torch_wrote_are_read(tmp_path: Path) -> None:
    import torch

    from rstar2_env.trainers.backends.trl.sharding import shards

    tensors = {"weights/a": torch.arange(6.0).reshape(2, 3), "weights/b": torch.ones(4, dtype=torch.bfloat16)}
    shards.write(tmp_path, tensors)
    found = shards.read(tmp_path, lambda held: {name: torch.zeros_like(tensors[name]) for name in held})
    assert {name: one.tolist() for name, one in found.items()} == {name: o.tolist() for name, o in tensors.items()}


def test_an_entry_of_shards_other_than_a_tensor_is_refused(tmp_path: Path) -> None:
    import torch
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.state_dict_saver import save

    from rstar2_env.trainers.backends.trl.sharding.plain_metadata import PlainReader, TensorPlanner

    state = {"weights/a": torch.ones(2), "more": {"step": 3}}
    save(state, checkpoint_id=str(tmp_path / "shards"), no_dist=True)
    from torch.distributed.checkpoint.state_dict_loader import load

    with pytest.raises(CheckpointException, match=r"more.* is not a tensor"):
        load(state, storage_reader=PlainReader(tmp_path / "shards"), planner=TensorPlanner(), no_dist=True)


def test_a_link_that_leaves_the_folder_is_refused(scene: Scene, folders: dict[str, Path], tmp_path: Path) -> None:
    result = typed(["export", str(folders["link"]), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert f"{folders['link'] / 'x.py'} is a link to" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("kind", "call", "said"),
    [
        ("outside", "diagnose FOLDER", "must be the name of a file in the same folder"),
        ("outside", "train FOLDER --model MODEL --out OUT", "outside of the run's folder"),
        ("linked_episodes", REGRADE, "outside of the run's folder"),
        ("pipes", "diagnose FOLDER", "is not a file"),
        ("strange_step_infinite", "diagnose FOLDER", "expected a number under the key 'step', not inf"),
        ("yaml_bomb", "plan --config FILE --model MODEL", "more than 100000 values, because aliases repeat them"),
        ("adapter", EXPORT, "has a megatron_config in its adapter_config.json"),
        ("safetensors_length", EXPORT, "model.safetensors is not a valid safetensors file: the header would have"),
        ("safetensors_json", EXPORT, "model.safetensors is not a valid safetensors file"),
        ("safetensors_offsets", EXPORT, "the tensor 'a' lacks its dtype, its shape or its two data_offsets"),
        ("safetensors_shape", EXPORT, "the data_offsets of the tensor 'a' do not fit the file"),
        ("safetensors_json", f"eval rstar2/MathTool-v0 --model FOLDER {FEW}", "cannot be loaded: "),
        ("safetensors_json", f"train grpo --model FOLDER {FEW_STEPS}", "cannot be loaded: "),
        ("gguf_cut", "model show FILE", "it ends before its last value"),
        ("gguf_counts", "model show FILE", "it ends before its last value"),
        ("gguf_array", "model show FILE", "it ends before its last value"),
        ("gguf_array", "model get FILE --out OUT", "it ends before its last value"),
    ],
)
def test_a_file_that_is_not_read_is_an_error_that_says_why(
    kind: str, call: str, said: str, scene: Scene, folders: dict[str, Path], tmp_path: Path
) -> None:
    result = refused(folders[kind], call, scene, tmp_path)
    assert said in " ".join(result.stderr.split())


def test_an_export_names_the_damaged_file_and_not_its_copy(
    scene: Scene, folders: dict[str, Path], tmp_path: Path
) -> None:
    result = refused(folders["safetensors_json"], EXPORT, scene, tmp_path)
    assert f"{folders['safetensors_json'] / 'model.safetensors'} is not a valid" in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_a_link_within_the_cache_of_one_model_is_followed(scene: Scene, tmp_path: Path) -> None:
    cache = tmp_path / "models--a--b"
    shutil.copytree(scene.model, cache / "blobs")
    (cache / "snapshots" / "1").mkdir(parents=True)
    for file in (cache / "blobs").iterdir():
        (cache / "snapshots" / "1" / file.name).symlink_to(file)
    result = typed(["export", str(cache / "snapshots" / "1"), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
