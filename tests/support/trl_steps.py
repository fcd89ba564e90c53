"""Takes the optimizer steps of a case of ``oracle_cases`` with the TRL backend, and compares them with the reference.

Every optimizer step of a rollout is compared: the backend's loss and gradients with those of the reference step at the
same weights, whose loss is written out once more in ``plain_loss``; with the loss of a recipe, the reference computes
that loss a row at a time. The rows are trained on twice, so that the later
steps have moved away from the weights that sampled.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from oracle_cases import processes_of
from oracle_terms import TERMS
from peft import LoraConfig, get_peft_model
from plain_loss import Contrast, Dads, Divergence, Echoes, LogProbability, Mean, Surrogate, Uncertainty, Values, Weights
from tiny_models import VOCABULARY, tiny_qwen3
from transformers import PrinterCallback, TrainerCallback

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.parts import make_part
from rstar2_env.core.row import Row
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.trainers.backends.reference.step import distributions, embedding, gradients, log_probs
from rstar2_env.trainers.backends.trl.arguments import arguments
from rstar2_env.trainers.backends.trl.loss import packing
from rstar2_env.trainers.backends.trl.loss.forward import ReferenceModel
from rstar2_env.trainers.backends.trl.loss.objective import Objective
from rstar2_env.trainers.backends.trl.loss.packing import pack
from rstar2_env.trainers.backends.trl.loss.pending_rows import BatchLayout
from rstar2_env.trainers.backends.trl.trainer import CollectorTrainer
from rstar2_env.trainers.base import TRAINERS
from rstar2_env.trainers.demonstration.tiny import tiny_tokenizer
from rstar2_env.trainers.losses.base import AGGREGATIONS, CORRECTIONS, LOSSES
from rstar2_env.trainers.options.parts import make_parts
from rstar2_env.trainers.plan.row_cost import RowCost
from rstar2_env.trainers.step.deal import assign_groups

CLIP = {"low": 0.05, "high": 0.08}
OUTER: dict[str, dict[str, float]] = {"two_sided": {**CLIP, "two_sided": 1.09}, "dual": {**CLIP, "dual": 1.03}}
CORRECTED: dict[str, dict[str, Any]] = {
    "none": {},
    "truncate-token": {"level": "token", "cap": 1.1},
    "truncate-turn": {"level": "turn", "cap": 1.2},
    "mask-token": {"level": "token", "low": 0.85, "high": 1.15},
    "mask-sequence": {"level": "sequence", "low": 0.6, "high": 1.6},
    "geometric-turn": {"level": "turn", "low": 0.9, "high": 1.1},
}
LENGTH = 16
"""The constant of ``const_len``."""
BESIDE: dict[str, list[Any]] = {
    "rover": ["rover", {"rho": 0.5}],
    "echo": ["echo", {"coef": 0.3}],
    "echo-all": ["echo", {"coef": 0.3, "tools": False}],
    "carft": ["carft", {"coef": 0.2, "temperature": 0.5}],
    "apo_dads": ["apo_dads", {"coef": 0.3}],
}
"""A further term, about values, the environment's tokens, embeddings or difficulty."""
ACCURACY = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of each group, as the column says."""
KL, LEARNING_RATE = 0.3, 3e-3
GROUPS = ((0, (2, 3)), (1, (3,)), (2, (2, 2)), (3, (1, 4)), (4, (3, 2)))
"""Number of each group, and of each of its rows the policy's tokens in a turn."""


def take_steps(case: dict[str, Any], folder: str) -> dict[str, Any]:
    """Run a case, and compare every optimizer step; in a run of several processes all call together.

    Returns:
        ``steps``: of each step the relative difference of the ``loss`` and, by name, of the ``gradients`` of each
        tensor; how many ``tensors`` have one that is not zero; and of each process the ``rows``, how many were
        ``computed``, the ``micro_batches`` and the ``fillers`` among them. ``figures``: sum and count of each metric.
    """
    torch.set_num_threads(1)
    rank, size, temperature = int(os.environ.get("RANK", "0")), processes_of(case), case["temperature"]
    start, other = _start(case["lora"])
    shards = _shards(case, start, temperature)
    objective = Objective(*(_of_recipe(case["recipe"]) if "recipe" in case else _parts(case)))
    needs_reference = "reference" in objective.needs
    # With adapters, the reference is the policy without them.
    compared = ReferenceModel(other, torch.float32, temperature) if needs_reference else None
    # Rows that share a prefix are a tree, however short they are and whatever its masks need.
    packing.OVERHEAD = 0.0
    RowCost.memory = lambda self, spans: sum(stop - start for start, stop in spans)
    budget = _budget(_dealt(shards), objective.only_policy_gradient, case["micro_batches"])
    recorder = _Recorder(objective)
    trainer = CollectorTrainer(
        collector=_Given(shards[rank]),
        objective=objective,
        shape=BatchLayout(budget, passes=2, minibatches=case["minibatches"]),
        reference=compared,
        model=deepcopy(start),
        processing_class=tiny_tokenizer(),
        args=arguments(
            folder,
            max_steps=2 * case["minibatches"],
            learning_rate=case.get("learning_rate", LEARNING_RATE),
            lr_scheduler_type="constant",
            weight_decay=0.0,
            max_grad_norm=0.0,
            temperature=temperature,
            gradient_checkpointing=case["checkpointing"],
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            use_cpu=True,
            bf16=False,
        ),
        callbacks=[recorder],
    )
    trainer.remove_callback(PrinterCallback)
    recorder.watch(trainer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.train()
    everyone = trainer.ranks.gather(
        [(each["loss"], each["rows"], each["batches"], each["trees"]) for each in recorder.steps]
    )
    figures = trainer.sums.take(trainer.ranks)
    if rank:
        return {}
    given = {_key(row): row for rows in shards for row in rows}
    policy, sampling = deepcopy(start).double(), deepcopy(start).double()
    other = None if other is None else other.double()
    steps = []
    for number, own in enumerate(recorder.steps):
        # A process gives its loss times their number, so that the mean over them is the loss.
        loss = sum(told[number][0] for told in everyone) / size
        rows = [given[key] for told in everyone for key in told[number][1]]
        with torch.no_grad():
            old = [log_probs(sampling, row, temperature) for row in rows]
            means = [distributions(sampling, row, temperature).mean(-1) for row in rows]
            reference = [_reference(sampling, other, row, temperature) for row in rows] if needs_reference else None
            embeddings = [embedding(sampling, row) for row in rows]
        _load(policy, own["weights"])
        parts = own["parts"] if "recipe" in case else _plain(case)
        rng = trainer.shape.draws(number)
        expected, wanted = gradients(
            policy,
            rows,
            *parts,
            temperature=temperature,
            old=old,
            old_means=means,
            reference=reference,
            embeddings=embeddings,
            rng=rng,
        )
        steps.append(
            {
                # A mean over tokens, whose losses are some 1 in size, and cancel.
                "loss": abs(loss - expected) / max(abs(expected), 1.0),
                "gradients": {name: _apart(own["gradients"].get(name), wanted.get(name)) for name in own["weights"]},
                "tensors": sum(bool(gradient.any()) for gradient in wanted.values()),
                "rows": [len(told[number][1]) for told in everyone],
                "computed": [sum(told[number][2]) for told in everyone],
                "micro_batches": [len(told[number][2]) for told in everyone],
                "fillers": [sum(not width for width in told[number][2]) for told in everyone],
                "trees": sum(told[number][3] for told in everyone),
            }
        )
    return {"steps": steps, "figures": {name: list(pair) for name, pair in figures.items()}}


def _start(lora: bool) -> tuple[Any, Any]:
    """The policy that samples, and the reference model; with adapters, which change it, that is the policy without."""
    policy, other = tiny_qwen3(), tiny_qwen3()
    torch.manual_seed(1)
    if lora:
        adapters = LoraConfig(r=4, lora_alpha=4, target_modules="all-linear", init_lora_weights=False)
        return get_peft_model(policy, adapters), None
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape))
    return policy, other


def _parts(case: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The parts under test."""
    kind = case["policy"]
    if kind in TERMS:
        return [make_part(LOSSES, term) for term in TERMS[kind][0]], *_shared(case)
    terms: list[Any] = [
        ["reinforce"] if kind == "reinforce" else ["ppo_clip", OUTER.get(kind) or {**CLIP, "level": kind}]
    ]
    if case["kl"] != "none":
        terms.append(["kl", {"coef": KL, "estimator": case["kl"]}])
    if case["entropy"]:
        terms.append(["entropy", {"coef": case["entropy"]}])
    if case["beside"] != "none":
        terms.append(BESIDE[case["beside"]])
    return [make_part(LOSSES, term) for term in terms], *_shared(case)


def _shared(case: dict[str, Any]) -> tuple[Any, Any]:
    """What all terms have in common."""
    length = {"length": LENGTH} if case["aggregation"] == "const_len" else {}
    return (
        make_part(AGGREGATIONS, [case["aggregation"], length]),
        make_part(CORRECTIONS, [case["correction"].split("-")[0], CORRECTED[case["correction"]]]),
    )


def _of_recipe(name: str) -> tuple[Any, Any, Any]:
    """The loss of a recipe, as it is with an engine that has its own copy of the weights."""
    config = TRAINERS.get(name).configure({"model": "m"}, {"max_episode_tokens": LENGTH})
    parts = make_parts(config, shares_weights=False)
    return parts.terms, parts.aggregation, parts.correction


def _plain(case: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The same, written out once more."""
    kind = case["policy"]
    if kind in TERMS:
        terms: list[Any] = list(TERMS[kind][1])
    else:
        ratio = OUTER.get(kind) or {**CLIP, "level": kind}
        terms = [LogProbability() if kind == "reinforce" else Surrogate(**ratio)]
    if case["kl"] != "none":
        terms.append(Divergence(KL, case["kl"]))
    if case["entropy"]:
        terms.append(Uncertainty(case["entropy"]))
    match case["beside"]:
        case "rover":
            terms.append(Values(0.5))
        case "echo":
            terms.append(Echoes(0.3, 1))
        case "echo-all":
            terms.append(Echoes(0.3, 0))
        case "carft":
            terms.append(Contrast(0.2, 0.5))
        case "apo_dads":
            terms.append(Dads(0.3))
    options = dict(CORRECTED[case["correction"]])
    if "cap" in options:
        options["high"] = options.pop("cap")
    return terms, Mean(case["aggregation"], LENGTH), Weights(case["correction"].split("-")[0], **options)


def _shards(case: dict[str, Any], model: Any, temperature: float) -> list[list[Row]]:
    """The rows of each process."""
    _, _, fillers = case["processes"].partition("-")
    rows = []
    for group, tokens in GROUPS[: case["minibatches"]] if fillers == "idle" else GROUPS:
        for member, turns in enumerate((tokens, tokens[::-1] * 2)):
            advantage: Any = float(np.random.default_rng([group, member]).normal())
            if group == 0:  # one a token
                advantage = "token"
            rows.append(_row(group, member, turns, advantage, model, temperature, shared=case["prefixes"]))
    if fillers == "some":
        rows[2].advantage = 0.0
        rows[5].mask, rows[5].logprobs = [0] * len(rows[5].mask), [0.0] * len(rows[5].mask)
    if processes_of(case) == 1:
        return [rows]
    # Groups stay whole. The second process plays few groups, or none; if there is one group for each optimizer step, it
    # trains on none, and computes fillers alone.
    first = {"": (0, 3), "some": (0, 1, 2, 4), "idle": range(5)}[fillers]
    return [[row for row in rows if (row.episode.group in first) == own] for own in (True, False)]


def _row(
    group: int, member: int, turns: tuple[int, ...], advantage: Any, model: Any, temperature: float, *, shared: bool
) -> Row:
    """A row of several turns, with tokens of the environment after each but the last.

    If its prefix is shared, that is the prompt and two tokens of the first turn.
    """
    rng = np.random.default_rng([7, group, member])
    mask: list[int] = []
    steps = []
    for number, tokens in enumerate(turns):
        start = len(mask)
        mask += [1] * tokens
        calls = number + 1 < len(turns) and (group + number) % 2 == 0
        steps.append(Turn(start, len(mask), statuses=[ToolStatus.OK] * calls))
        mask += [0] * (int(rng.integers(1, 4)) if number + 1 < len(turns) else 0)
    ids = rng.integers(3, VOCABULARY, 2 + group + len(mask)).tolist()
    if shared:
        ids[: 4 + group] = np.random.default_rng([7, group]).integers(3, VOCABULARY, 4 + group).tolist()
    if advantage == "token":
        advantage = rng.normal(size=len(mask))
    episode = Episode(group=group, steps=steps, correct=(group + member) % 3 > 0)
    episode.source = "expert" if (group, member) == (3, 1) else "policy"
    columns = {"accuracy": ACCURACY[group], "correct": float(episode.correct), "off_policy": float(episode.off_policy)}
    # A teacher thinks of the tokens what it likes.
    columns["teacher"] = rng.normal(-3, 1, len(mask))
    row = Row(episode, ids[: 2 + group], ids[2 + group :], mask, [], advantage, columns)
    with torch.no_grad():
        exact = log_probs(model, row, temperature).numpy()
    # What an engine computes differs a little from token to token.
    row.logprobs = [float(p + rng.normal(0, 0.15)) * one for p, one in zip(exact, mask, strict=True)]
    return row


def _dealt(shards: list[list[Row]]) -> list[list[Row]]:
    """The rows that each process trains on in one optimizer step."""
    rows = [row for own in shards for row in own]
    tokens = Counter[int]()
    for row in rows:
        tokens[row.episode.group] += row.tokens
    home = assign_groups(tokens, [sorted(tokens)], len(shards))
    return [[row for row in rows if home[row.episode.group] == process] for process in range(len(shards))]


def _budget(shards: list[list[Row]], only_policy_gradient: bool, batches: int) -> int:
    """The smallest budget of tokens that packs the rows of every process into at most that many micro-batches."""
    lengths = [[row.tokens for row in rows if row.trains or not only_policy_gradient] for rows in shards]
    return next(budget for budget in range(1, 10**6) if max(len(pack(own, budget)) for own in lengths) <= batches)


class _Given:
    def __init__(self, rows: list[Row]) -> None:
        self.rows, self.groups = rows, []

    def collect(self, step: int) -> _Given:
        return self


class _Recorder(TrainerCallback):
    """Of every optimizer step: weights and parts of the loss before it, rows, micro-batches, loss and gradients."""

    def __init__(self, objective: Objective) -> None:
        self.steps: list[dict[str, Any]] = []
        self._objective = objective

    def watch(self, trainer: Any) -> None:
        prepare, step = trainer._prepare_inputs, trainer.training_step

        def prepared(inputs: Any) -> Any:
            batches = prepare(inputs)
            self.steps[-1] |= {
                "rows": [_key(row) for row in trainer.pending.batch_rows()],
                "batches": [len(each.rows) for each in batches],
                "trees": sum(each.tree is not None for each in batches),
            }
            return batches

        def stepped(model: Any, *args: Any, **kwargs: Any) -> Any:
            parts = deepcopy((self._objective.terms, self._objective.aggregation, self._objective.correction))
            self.steps.append({"weights": _copies(model, lambda parameter: parameter.detach()), "parts": parts})
            loss = step(model, *args, **kwargs)
            self.steps[-1]["loss"] = loss.item()
            return loss

        trainer._prepare_inputs, trainer.training_step = prepared, stepped

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.steps[-1]["gradients"] = _copies(kwargs["model"], lambda parameter: parameter.grad)


def _key(row: Row) -> tuple[int, ...]:
    """Identifies a row, which may train on another process than that which was given it."""
    return row.episode.group, *row.prompt_ids, *row.completion_ids


def _copies(model: Any, of: Any) -> dict[str, Any]:
    found = {
        name.removeprefix("module."): of(parameter)
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    return {name: tensor.clone() for name, tensor in found.items() if tensor is not None}


def _reference(policy: Any, other: Any, row: Row, temperature: float) -> torch.Tensor:
    if other is not None:
        return log_probs(other, row, temperature)
    with policy.disable_adapter():
        return log_probs(policy, row, temperature)


def _load(model: Any, weights: dict[str, Any]) -> None:
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name, values in weights.items():
            own[name].copy_(values)


def _apart(found: Any, wanted: Any) -> float:
    """Largest difference of two gradients, relative to the largest entry of the one that is right."""
    zero = torch.zeros(1, dtype=torch.float64)
    found, wanted = (zero if tensor is None else tensor.double() for tensor in (found, wanted))
    difference, largest = (found - wanted).abs().max().item(), wanted.abs().max().item()
    # What float64 leaves of a gradient that is nothing is nothing in float32.
    return difference / largest if largest > 1e-12 else difference
