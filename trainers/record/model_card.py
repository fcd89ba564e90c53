"""``model_card``: the README of a run and of its saved weights, from the run's folder; without torch.

Covered: recipe, parts with their papers, data and environment, held-out metrics, versions, how to evaluate the model,
and front matter that the Hugging Face hub reads. Not covered: the hub itself.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.files.outputs import list_files, replacing
from rstar2_env.core.options.parts import Part, read_part
from rstar2_env.core.run_folder import Run, read_run
from rstar2_env.core.run_folder.layout import CARD_FILE
from rstar2_env.core.secret import redacted

from ..base import TRAINERS
from ..options.slots import FIELDS, part_info
from .verdict import outcome

_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*")
_SHOWN = {
    "pass_rate": "pass rate",
    "pass_rate_se": "its standard error",
    "reward": "reward",
    "tool_error_share": "tool errors, all episodes",
    "tool_error_share_correct": "tool errors, correct episodes",
    "broken_format": "broken formats",
    "turns": "turns",
    "tool_calls": "tool calls",
    "episodes": "episodes",
}
"""The metrics that the card lists for held-out problems, each with its label."""
_OPTIMIZER = ("learning_rate", "lr_scheduler", "warmup_steps", "weight_decay", "max_grad_norm", "updates_per_rollout")
_ROLLOUT = ("problems_per_step", "group_size", "oversample", "refill", "temperature", "max_episode_tokens", "engine")


def write_cards(folder: Path) -> None:
    """Write the card of a run, and a card for each folder of weights that it saved; existing cards are replaced.

    Args:
        folder: The run's folder.
    """
    run = read_run(folder)
    for weights in (None, *(folder / path for path in run.weights)):
        into = folder if weights is None else weights
        if into.is_dir():
            list_files(folder, (into / CARD_FILE).relative_to(folder).as_posix())
            with replacing(into / CARD_FILE) as partial:
                partial.write_text(model_card(run, weights), "utf-8")


def model_card(run: Run, weights: Path | None = None) -> str:
    """Return the card of a run, in Markdown; secrets in its options become ``***``.

    Args:
        run: The run, finished or not.
        weights: Folder of the weights that the card describes; ``None`` for the weights that the run names.
    """
    body = _cold_start(run) if run.kind == "sft" else _training(run, weights)
    card = redacted("\n\n".join([_front_matter(run), *body, _versions(run)]) + "\n")
    return str(card)


def _front_matter(run: Run) -> str:
    model, trainer = _base_model(run), run.recipe["name"]
    fields: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        **({"base_model": model} if _on_hub(model) else {}),
        "tags": ["rstar2-env", "reinforcement-learning", *([trainer] if trainer else [])],
    }
    if run.kind == "sft":
        fields["tags"] = ["rstar2-env", "sft"]
    # JSON is YAML, and quoted values cannot be misread.
    return "\n".join(["---", *(f"{name}: {json.dumps(value)}" for name, value in fields.items()), "---"])


def _training(run: Run, weights: Path | None) -> Iterator[str]:
    config, name = run.config, run.recipe["name"]
    env = _group(config, "rollout").get("env", "")
    recipe = TRAINERS.get(name) if name in TRAINERS else None
    about = ", ".join(text for text in (getattr(recipe, "summary", ""), getattr(recipe, "paper", "")) if text)
    yield f"# {_name(run, weights)}"
    yield (
        f"{_start(run)}, trained on the environment `{env}` with the recipe `{name}` of rstar2-env"
        f"{f' ({about})' if about else ''}. {_progress(run, weights)}"
    )
    yield f"## Held-out figures\n{_how_it_went(run)}"
    yield f"## Recipe\n{_parts(run)}"
    rows = [(option, _group(config, "rollout").get(option)) for option in _ROLLOUT]
    rows += [(option, _group(config, "optim").get(option)) for option in _OPTIMIZER]
    rows.append(("lora_rank", _group(config, "model").get("lora_rank")))
    rows.append(("seed", _group(config, "run").get("seed")))
    yield _table(("option", "value"), [(f"`{option}`", _code(value)) for option, value in rows])
    yield f"## Data and environment\n{_environment(config)}"
    yield f"## Evaluate it\n{_evaluate(run, weights)}"


def _cold_start(run: Run) -> Iterator[str]:
    config = run.config
    traces = next((event["traces"] for event in reversed(run.events) if "traces" in event), None)
    yield f"# {run.path.name}"
    yield (
        f"{_start(run)}, fine-tuned by rstar2-env on the policy's tokens of {traces or 'its'} tool-use traces, "
        "as a cold start for reinforcement learning."
    )
    shown = [(f"`{name}`", _code(value)) for name, value in config.items() if name != "output_dir"]
    yield f"## Options\n{_table(('option', 'value'), shown)}"


def _name(run: Run, weights: Path | None) -> str:
    folder = run.path.resolve().name
    return folder if weights is None else f"{folder}/{weights.name}"


def _progress(run: Run, weights: Path | None) -> str:
    asked = _group(run.config, "run").get("steps")
    saved = run.weights
    if weights is not None and weights.name in saved:
        return f"These are the weights after step {saved[weights.name]} of {asked}."
    done = max([0, *(int(event["step"]) for event in run.events[-1:]), *run.steps[-1:]])
    where = ", ".join(f"`{path}` holds the weights after step {step}" for path, step in saved.items())
    return f"{done} of {asked} optimizer steps are done.{f' In the folder of the run, {where}.' if where else ''}"


def _how_it_went(run: Run) -> str:
    evaluations = run.evaluations
    if not evaluations:
        return outcome(None, None, None)
    first, last = evaluations[0], evaluations[-1]
    best = max(evaluations, key=lambda one: (_order(one.figures), -one.step))
    shown = {one.step: one for one in (first, best, last)}
    heads = [f"step {step}{' (best)' if step == best.step else ''}" for step in sorted(shown)]
    rows = [
        (words, *(_figure(shown[step].figures.get(figure)) for step in sorted(shown)))
        for figure, words in _SHOWN.items()
    ]
    count = f"{len(evaluations)} evaluations on held-out problems." if len(evaluations) > 1 else "One evaluation."
    return f"{outcome(first.figures, last.figures, best.step)} {count}\n\n{_table(('figure', *heads), rows)}"


def _order(figures: Mapping[str, float]) -> tuple[float, float]:
    rate, errors = figures.get("pass_rate", 0.0), figures.get("tool_error_share", 0.0)
    return (rate if rate == rate else -1.0, -(errors if errors == errors else 0.0))


def _parts(run: Run) -> str:
    rows = []
    for slot, written in run.recipe.items():
        if slot not in FIELDS:
            continue
        for part in [read_part(one) for one in (written if isinstance(written, list) else [written])]:
            options = ", ".join(f"`{name}={_plain(value)}`" for name, value in part.options.items())
            rows.append((slot, f"`{part.name}`", options, _paper(slot, part)))
    return _table(("slot", "part", "options", "paper"), rows) if rows else "The run does not record its parts."


def _paper(slot: str, part: Part) -> str:
    try:
        return part_info(part.name, FIELDS[slot].get(part.name)).paper
    except (UnknownNameError, ConfigurationError):  # user code, which may not be on this machine
        return ""


def _environment(config: Mapping[str, Any]) -> str:
    rollout, evaluation = _group(config, "rollout"), _group(config, "eval")
    rows = [
        ("environment", _code(rollout.get("env"))),
        ("its options", _code(rollout.get("env_options"))),
        ("wrappers", _code(rollout.get("wrappers"))),
        ("options of the held-out environment", _code(evaluation.get("env_options"))),
        ("wrappers of the held-out environment", _code(evaluation.get("wrappers"))),
    ]
    return _table(("", ""), rows)


def _evaluate(run: Run, weights: Path | None) -> str:
    rollout, evaluation = _group(run.config, "rollout"), _group(run.config, "eval")
    folder = "." if weights is not None else "best" if (run.path / "best").is_dir() else "final"
    options = {**_mapping(rollout.get("env_options")), **_mapping(evaluation.get("env_options"))}

    def held_out(name: str, default: Any) -> Any:
        value = evaluation.get(name)
        return rollout.get(name, default) if value is None else value

    template = _group(run.config, "model").get("chat_template")
    words = [
        "rstar2 eval",
        shlex.quote(str(rollout.get("env", ""))),
        f"--model {folder} --temperature {held_out('temperature', 1.0)}",
        f"--max-tokens {held_out('max_episode_tokens', 4096)}",
        *([f"--chat-template {shlex.quote(str(template))}"] if template else []),
        *(f"--set {shlex.quote(f'env.{name}={_plain(value)}')}" for name, value in options.items()),
        f"--episodes {evaluation.get('episodes', 128)} --samples 16 --out evaluation",
    ]
    return f"```sh\n{' '.join(words)}\n```"


def _versions(run: Run) -> str:
    versions: Mapping[str, str] = next((event["versions"] for event in reversed(run.events) if "versions" in event), {})
    return f"## Versions\n{', '.join(f'{name} {version}' for name, version in versions.items())}"


def _base_model(run: Run) -> str:
    model = run.config.get("model", "")
    return str(model.get("path", "") if isinstance(model, Mapping) else model)


def _on_hub(model: str) -> bool:
    return bool(_HUB_NAME.fullmatch(model)) and not Path(model).exists()


def _start(run: Run) -> str:
    """Return the name of the initial model; for a folder, only the last part of the path."""
    model = _base_model(run)
    return f"`{model}`" if _on_hub(model) else f"The model `{Path(model).name}`"


def _group(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return _mapping(config.get(name))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(redacted(value))


def _code(value: Any) -> str:
    return f"`{_plain(value)}`" if value not in (None, "", [], {}) else "–"


def _figure(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.4g}"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
