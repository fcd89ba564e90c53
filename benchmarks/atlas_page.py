"""Write ``docs/atlas.md`` and its figure from the record of ``atlas.py``; every sentence about a part is computed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from atlas_cases import (
    AIMS,
    CASES,
    OF_FAMILY,
    OTHER_POLICIES,
    PARALLEL,
    REGULARIZERS,
    VARIANTS,
    follows,
    is_biased,
    is_parallel,
    repairs,
    signature,
    words,
)
from atlas_curves import NOTHING, alike, degrees, draw_curves, explained, interval, moves, same_curves
from atlas_update import Setting, paid
from atlas_world import RATE
from learning_compare import apart_text, compared
from learning_runs import SELECTION

from rstar2_env.trainers import TRAINERS

DOCS = Path(__file__).resolve().parent.parent / "docs"
Record = Mapping[str, Mapping[str, Any]]
LEARNED = Path(__file__).resolve().parent / "learning_selection.jsonl"
PAGE = "atlas.md"
"""Name of the page in ``docs/``."""
OBJECTIVES = ("return", "log success", "pass at 4", "return - KL")
PROBLEMS = ("base", "rare success", "reliable tool", "failing tool")
"""Cases with the policy's own groups of four, between which the scale shows the weight of a problem."""
FAMILIES = {
    "advantage": "Advantages",
    "aggregation": "Aggregations",
    "loss": "Terms of the loss",
    "correction": "Corrections",
    "selector": "Selectors",
}
_SMALLEST = 0.1
_PLAIN = {name.partition(":")[0] for name in REGULARIZERS}
_WITHOUT_REWARD = "[an objective without rewards](#terms-without-a-reward)"
_OF_IGPO = (
    "the paper's form subtracts the mean once for each remaining turn; the recipe's default compares equal turns; its "
    "reward also has the gains of the answer's probability, so the angle to the return is not 0"
)
ADDED = (
    ("advantage", "gigpo", "gigpo:baseline=others,gamma=1", "its means contain the episode itself; it discounts turns"),
    ("advantage", "opo", "opo:baseline=others", "its baseline contains the episode itself"),
    (
        "advantage",
        "optimal_token_baseline",
        "optimal_token_baseline:baseline=others",
        "its baseline contains the episode itself",
    ),
    ("advantage", "igpo:baseline=group", "igpo:normalize=false", _OF_IGPO),
    ("selector", "roc", "roc:mode=weighted", "it keeps successes by their penalty; the weights undo this"),
    ("regularizer", "kl:estimator=k3", "kl:estimator=episode", "it estimates the reverse KL of single tokens"),
)
"""Published forms and the options that were added because of their bias: family, form, option, reason."""
ALIKE = 1e-6
"""Largest relative difference of scales that are equal."""
_INTRO = """\
<!-- Made by `python benchmarks/atlas.py write`. Change the program instead. -->

# Gradient atlas

For each advantage, term of the loss, aggregation, correction, selector and recipe, this page states which gradient its
update estimates. The worlds are so small that all episodes can be listed, so the true gradients are exact. The expected
update is a sum over all possible groups, each with its probability. Every group passes through the collector, the
selector, the advantage and the loss of this package (`trainers/step/collector.py`,
`trainers/backends/reference/step.py`); nothing is computed by a copy of a formula.

- **angle**: the angle in degrees between the expected update and the gradient of the expected return. 0: the
  update has the direction of the gradient (up to rounding, 1 - cosine < 1e-14). 90: no progress. If groups were
  sampled, because a part draws at random or keeps a state, `a to b` is the estimate minus and plus three standard
  errors.
- **scale**: the length of the expected update along the gradient, divided by the gradient's length. A constant scale
  acts like another learning rate. A scale that depends on the problem gives problems different weights.
- **noise**: variance of the update of one group, times the number of its episodes, divided by the squared length of
  the expected update: about the number of episodes after which signal and noise are equal.

An optimizer's batch is one group. In a batch of many groups, the denominators of `token_mean` and of statistics of the
batch vary less, so their bias is smaller. The reward is the world's return plus any amount that a recipe's advantage
adds. Rollout parts, samplers and hooks are excluded, and so are rewards that need a judge or a model: such a reward
changes the objective, not the estimate of its gradient.
"""
_WORLDS = """\
## Worlds
The policy answers directly, or calls a tool. If the call fails, the policy gives up or calls again. Each
decision has its own logits. A wrong direct answer has three further tokens, except in *equal lengths*.
"""


def write(record: Record, docs: Path = DOCS) -> list[Path]:
    """Write the page and its figure; return their paths."""
    page, figure = docs / PAGE, docs / "pictures" / "atlas.png"
    page.write_text("\n".join(lines(record)) + "\n", "utf-8")
    draw(record, figure)
    curves = {family: docs / "pictures" / f"atlas_{family}.png" for family in (*FAMILIES, "recipe")}
    return [page, figure, *(path for family, path in curves.items() if draw_curves(record, family, path))]


def lines(record: Record) -> Iterator[str]:
    """Yield the lines of the page."""
    yield _INTRO
    more = Setting().samples
    yield explained(RATE, more, next(case for case, (_, setting) in CASES.items() if setting.samples < more))
    yield _WORLDS
    yield from _worlds()
    yield "\n![Angle of each part's update to the gradient of the expected return](pictures/atlas.png)"
    for slot, title in FAMILIES.items():
        yield f"\n## {title}"
        yield _rest_of(slot)
        yield from _family(record, slot)
        yield from _figure(record, slot)
    yield from _regularizers(record)
    yield from _resampling(record)
    yield from _added(record)
    yield "\n## Recipes"
    yield (
        "Each row describes the update of a recipe on independent episodes of the policy, whose reward is the return "
        "plus any amount that the recipe's advantage adds. *Left out* names the parts of a recipe that play or choose "
        "episodes in another way, or add rewards. The search of `deepsearch` is such a "
        "part: it chooses episodes and estimates values from its tree, so its row uses the values that `tree_value` "
        "computes from the episodes of the group. "
        "*Repaired* names the first replacement of parts after which the update "
        f"has exactly the direction of the gradient in each of {_listed(OF_FAMILY['repair'])}, with all groups listed. "
        "The replacements are tried in this order: an aggregation of constant length, an unbiased form of the "
        "advantage (its own, else `rloo`), training on all episodes, combinations of them, and last a loss without "
        "the terms that do not depend on rewards. A recipe with a `kl` term does not estimate the gradient of the "
        "return but that of the return minus the divergence; *repaired* also names the form that estimates exactly "
        "this. The form uses the estimator `episode`: the others count the divergence of single tokens, "
        "without the effect of a token on later ones.\n"
    )
    yield from _recipes(record)
    yield from _figure(record, "recipe")


def _figure(record: Record, family: str) -> Iterator[str]:
    """Yield the figure of the curves of a family, if there are any."""
    if not alike(record, family):
        return
    yield f"\n![Angle, scale and noise along four axes](pictures/atlas_{family}.png)"
    yield from (f"\n{line}" for line in same_curves(record, family))


def verdict(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what an update estimates, from its cases: in words, computed from cosines and scales."""
    base = found["base"]
    if "reason" in base:
        return f"not computed: {base['reason']}"
    own = {case: one for case, one in found.items() if case not in OTHER_POLICIES and "cosines" in one}
    if all(one["length"] < NOTHING for one in own.values()):
        return "no update on the policy's own groups"
    apart = {case: degrees(one["cosines"]["return"]) for case, one in own.items() if not is_parallel(one)}
    sampled = any("within" in one for one in own.values())
    whole = {case: one for case, one in own.items() if all(name in one["cosines"] for name in OBJECTIVES)}
    if not apart:
        problems = [case for case in PROBLEMS if case in whole]
        for objective in OBJECTIVES[:3]:
            scales = [own[case]["scales"][objective] for case in problems]
            if not sampled and max(scales) - min(scales) <= ALIKE * max(scales):
                return f"unbiased for the gradient of {_named(objective)} (scale {scales[0]:.3g})"
        scales = [own[case]["scales"]["return"] for case in problems]
        so = "no bias of the direction was found by sampling" if sampled else "direction of the gradient of the return"
        return f"{so}; the weight of a problem varies: scale {min(scales):.3g} to {max(scales):.3g}"
    if all(is_parallel(one, "return - KL") for one in whole.values()):
        return "unbiased for the return minus the KL divergence"
    worst = max(apart, key=lambda case: apart[case])
    equal = "base" in apart and "equal lengths" in own and "equal lengths" not in apart
    only = "" if "dense reward" in apart else " only"  # its lengths differ, and its rewards too
    why = f"biased{only} if lengths differ" if equal else "biased"
    return f"{why}: {_degrees(apart[worst])} degrees in *{worst}*"


def cases_of(record: Record, family: str, name: str) -> dict[str, Mapping[str, Any]]:
    """Return the recorded cases of a part or recipe, by the name of the case."""
    return {case: one for case in CASES if (one := record.get(f"{family}/{name}/{case}"))}


def draw(record: Record, path: Path) -> None:
    """Draw the angle of every part and recipe, one panel for each family."""
    from matplotlib.figure import Figure

    panels = [(title, slot) for slot, title in FAMILIES.items()] + [("Recipes", "recipe")]
    figure = Figure(figsize=(11, 16), layout="constrained")
    axes = figure.subplots(3, 2, gridspec_kw={"height_ratios": [1.1, 1.1, 2.2]})
    for panel, (title, family) in zip(axes.flat, panels, strict=True):
        names = [one["name"] for one in record.values() if one["family"] == family and one["case"] == "base"]
        for at, name in enumerate(names):
            found = cases_of(record, family, name)
            for case, mark, colour in (("base", "o", "#1f5fbf"), ("equal lengths", "|", "#c0392b")):
                if "cosines" in (one := found.get(case, {})) and one["length"] > 0:
                    panel.plot(degrees(one["cosines"]["return"]), at, mark, color=colour, markersize=5)
        panel.set_yticks(range(len(names)), names, fontsize=6)
        panel.invert_yaxis()
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("angle to the gradient, degrees (circle: base; bar: equal lengths)", fontsize=7)
        panel.set_xlim(min(panel.get_xlim()[0], -0.5), max(panel.get_xlim()[1], 5))
        panel.tick_params(axis="x", labelsize=7)
        panel.grid(axis="x", alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _worlds() -> Iterator[str]:
    from atlas_world import WORLDS, TabularPolicy, success

    yield "| case | episodes | success | call fails | most calls | setting |"
    yield "|---|---|---|---|---|---|"
    for case, (name, setting) in CASES.items():
        world = WORLDS[name]
        rate = success(TabularPolicy(world), world).item()
        plain = type(setting)()
        special = [
            f"groups of {setting.group_size}",
            *[f"weights shifted by {setting.stale}" for _ in [0] if setting.stale != plain.stale],
            *[f"weights {setting.behind} update{'s' * (setting.behind > 1)} behind" for _ in [0] if setting.behind],
            *[f"engine at temperature {setting.temperature}" for _ in [0] if setting.temperature != plain.temperature],
            *["the last episode is a demonstration" for _ in [0] if setting.expert],
            *[f"a call that works earns {world.bonus}" for _ in [0] if world.bonus],
        ]
        fails = world.failure if world.calls > 1 else 0
        yield f"| {case} | {len(world.paths())} | {rate:.2f} | {fails:g} | {world.calls} | {', '.join(special)} |"


def _rest_of(slot: str) -> str:
    others = {"advantage": "`rloo`", "loss": "`reinforce`", "aggregation": "`const_len:length=1`"}
    *most, last = [part for name, part in others.items() if name != slot]
    more = " Eight episodes are played for four that are kept." if slot == "selector" else ""
    return f"Each part is combined with {', '.join(most)} and {last}.{more}\n"


def _family(record: Record, slot: str) -> Iterator[str]:
    cases = OF_FAMILY[slot]
    heads = [*(f"angle, {case}" for case in cases), "scale, base", "noise, base", "estimates", "moves with"]
    yield f"| `{slot}` | " + " | ".join(heads) + " |"
    yield "|---" * (len(heads) + 1) + "|"
    for name in dict.fromkeys(one["name"] for one in record.values() if one["family"] == slot):
        found = cases_of(record, slot, name)
        base = found.get("base", {})
        cells = [_angle(found.get(case)) for case in cases]
        cells += [_number(base.get("scales", {}).get("return")), _number(base.get("noise"))]
        own = _WITHOUT_REWARD if slot == "loss" and name in _PLAIN else verdict(found) if base else ""
        yield f"| `{name}` | " + " | ".join([*cells, own, moves(record, slot, name)]) + " |"


def _regularizers(record: Record) -> Iterator[str]:
    """Yield the section of terms that do not depend on rewards: which divergence or entropy each one follows."""
    found = {name: cases_of(record, "regularizer", name) for name in REGULARIZERS}
    if not all(found.values()):
        return
    aims, cases = list(AIMS["regularizer"]), OF_FAMILY["regularizer"]
    yield "\n## Terms without a reward"
    yield (
        "These terms do not estimate the gradient of the return; each has an objective of its own. The reference model "
        "is the policy with shifted logits. *KL of tokens* is the sum of KL(policy, reference) over the decisions of "
        "an episode, weighted by how often they are reached; *reverse KL* exchanges the two. *KL of episodes* also "
        "includes the effect of the policy on which decisions are reached. The table lists the "
        f"larger of the angles in {' and '.join(f'*{case}*' for case in cases)}.\n"
    )
    yield "| `loss` | " + " | ".join(f"angle to the gradient of {_in_words(aim)}" for aim in aims) + " | estimates |"
    yield "|---" * (len(aims) + 2) + "|"
    for name, rows in found.items():
        if all(one["length"] < NOTHING for one in rows.values()):
            yield f"| `{name}` | " + "| " * len(aims) + "| nothing: its expected gradient is 0 |"
            continue
        angles = {aim: max(degrees(one["cosines"][aim]) for one in rows.values()) for aim in aims}
        own = [aim for aim in aims if all(1 - one["cosines"][aim] < PARALLEL for one in rows.values())]
        scale = f" (scale {rows[cases[0]]['scales'][own[0]]:.3g})" if own else ""
        text = f"gradient of {_in_words(own[0])}{scale}" if own else "none of these"
        yield f"| `{name}` | " + " | ".join([*(f"{angle:.1f}" for angle in angles.values()), text]) + " |"


def _added(record: Record) -> Iterator[str]:
    """Yield the section of the options that were added, and the recipe whose default changed."""
    cells = {
        (family, name): one
        for family, *names, _ in ADDED
        for name in names
        if "base" in (one := cases_of(record, family, name))
    }
    if len(cells) < 2 * len(ADDED):
        return
    yield "\n## Forms that differ from the papers"
    yield (
        "These options were added because the published form is biased. Recipes keep the published form, except "
        "`igpo`, whose default is not the paper's. The angle is the largest one on the policy's own episodes, to the "
        "gradient of the return (`a to b` if groups were sampled, as in the tables); for `kl`, to the gradient of "
        "minus the KL divergence of episodes.\n"
    )
    yield "| published form | angle | option | angle | reason |"
    yield "|---|---|---|---|---|"
    for family, published, option, reason in ADDED:
        angles = [_largest(cells[family, name], family) for name in (published, option)]
        yield f"| `{published}` | {angles[0]} | `{option}` | {angles[1]} | {reason} |"


def _largest(found: Mapping[str, Mapping[str, Any]], family: str) -> str:
    """Return the largest angle of cases on the policy's own episodes, as text; of sampled ones, by the lower ends."""
    own = [one for case, one in found.items() if case not in OTHER_POLICIES and "cosines" in one]
    if family == "regularizer":
        return f"{max(degrees(one['cosines']['- KL of episodes']) for one in own):.1f}"
    return _angle(max(own, key=lambda one: interval(one)[0]))


def _resampling(record: Record) -> Iterator[str]:
    """Yield the section that compares the forms of Resample-on-Correct with two objectives."""
    cases, objectives = OF_FAMILY["selector"], ("return", "clean success")
    names = ["all", "roc", *VARIANTS["selector"]]
    found = {name: cases_of(record, "selector", name) for name in names}
    if not all(case in found[name] for name in names for case in cases):
        return
    yield "\n## Resample-on-Correct"
    yield (
        "`roc` prefers successes with few failing calls, so its update is biased as an estimate of the gradient of the "
        "return. *Clean success* is another objective: a right episode earns 1 - p/2, where p is the penalty of `roc` "
        "(`reward=clean_success:no_call=0.5`). The table compares the updates with both gradients. `roc:mode=weighted` "
        "divides each advantage by the probability that its episode is kept. This removes the bias and the preference: "
        "in expectation, every weighted selection equals training on all episodes. To keep the preference with an "
        "unbiased gradient, train with this reward and without selection."
    )
    nearer = sum(
        found["roc"][case]["cosines"]["clean success"] > found["roc"][case]["cosines"]["return"] for case in cases
    )
    yield (
        f"\nIn {nearer} of {len(cases)} worlds, the update of `roc` is nearer to the gradient of *clean success* than "
        "to the gradient of the return.\n"
    )
    heads = [f"angle to {objective}, {case}" for objective in objectives for case in cases]
    yield "| `selector` | " + " | ".join([*heads, *(f"noise, {case}" for case in cases)]) + " |"
    yield "|---" * (len(heads) + len(cases) + 1) + "|"
    for name in names:
        cells = [f"{degrees(found[name][case]['cosines'][aim]):.1f}" for aim in objectives for case in cases]
        cells += [_number(found[name][case]["noise"]) for case in cases]
        yield f"| `{name}` | " + " | ".join(cells) + " |"
    yield from _learned()


def _learned() -> Iterator[str]:
    """Yield the table of what the forms of Resample-on-Correct learn, from the record of their runs."""
    if not LEARNED.exists():
        return
    settings, *runs = map(json.loads, LEARNED.read_text("utf-8").splitlines())
    rows = {row["arm"]: row for row in compared(runs, 0.0)}
    seeds = sorted({run["seed"] for run in runs})
    yield (
        f"\nThe recipes were trained with {len(seeds)} seeds in a world in which [failing calls cost "
        f"nothing](learning.md#if-failing-calls-cost-nothing) ({settings['settings']['problems']:,} held-out problems; "
        "all runs from one commit; differences from `grpo_clip_higher` by seed, with 95 % intervals):\n"
    )
    yield "| recipe | success | difference | failing calls in correct episodes | difference |"
    yield "|---|---|---|---|---|"
    for arm in SELECTION:
        if arm in rows:
            lines = rows[arm]["seeds"].values()
            cells = []
            for figure in ("success", "failing"):
                cells.append(f"{mean(line[figure] for line in lines):.3f}")
                cells.append(apart_text(rows[arm]["apart"].get(figure), 3))
            yield f"| `{arm}` | " + " | ".join(cells) + " |"
    yield (
        "\nThe runs were made with `python benchmarks/learning.py compare --results "
        "benchmarks/learning_selection.jsonl --recipes ARMS --faults 0`."
    )


def _recipes(record: Record) -> Iterator[str]:
    same: dict[str, list[str]] = {}
    for name in TRAINERS.names():
        same.setdefault(signature(TRAINERS.get(name)), []).append(name)
    cases = OF_FAMILY["recipe"]
    heads = [*(f"angle, {case}" for case in cases), "noise, base", "estimates", "repaired", "moves with", "left out"]
    yield "| recipes with the same update | " + " | ".join(heads) + " |"
    yield "|---" * (len(heads) + 1) + "|"
    for names in same.values():
        found = cases_of(record, "recipe", names[0])
        if not found:
            continue
        cells = [_angle(found.get(case)) for case in cases] + [_number(found.get("base", {}).get("noise"))]
        listed = ", ".join(f"`{name}`" for name in names)
        rewarded = {part.name for part in TRAINERS.get(names[0]).configure({"model": "m"}).parts.loss} - _PLAIN
        estimate = [verdict(found), repaired(record, names[0])] if rewarded else [_WITHOUT_REWARD, ""]
        more = [*estimate, moves(record, "recipe", names[0]), left_out(names)]
        yield f"| {listed} | " + " | ".join([*cells, *more]) + " |"


def left_out(names: Sequence[str]) -> str:
    """Return the parts of recipes that the atlas replaces or leaves out, as text: what plays, pays and samples."""
    found = []
    for name in names:
        recipe = TRAINERS.get(name)
        parts = recipe.configure({"model": "m"}).parts
        used = {part.partition(":")[0] for part in paid(recipe)}
        rewards = [f"reward={part.name}" for part in parts.reward if part.name not in used]
        others = {"rollout": (parts.rollout, "plain"), "sampler": (parts.sampler, "uniform")}
        shown = [f"{slot}={part.name}" for slot, (part, plain) in others.items() if part.name != plain]
        if shown := [*shown, *rewards]:
            found.append((f"{name}: " if len(names) > 1 else "") + ", ".join(f"`{one}`" for one in shown))
    return "; ".join(found)


def repaired(record: Record, name: str) -> str:
    """Return the replacements after which a recipe's update has the direction of a gradient, as text."""
    if not is_biased(record, name):
        return ""
    found: dict[str, str] = {}
    for objective, swaps in repairs(TRAINERS.get(name)):
        if follows(record, f"{name} with {words(swaps)}", objective):
            found.setdefault(objective, f"`{words(swaps)}`")
    texts = [text if aim == "return" else f"for the {_in_words(aim)}: {text}" for aim, text in found.items()]
    return "; ".join(texts) or "none of those tried"


def _listed(cases: Sequence[str]) -> str:
    return ", ".join(f"*{case}*" for case in cases[:-1]) + f" and *{cases[-1]}*"


def _in_words(aim: str) -> str:
    return aim.replace("- ", "minus the ")


def _named(objective: str) -> str:
    names = {"return": "the expected return", "log success": "the logarithm of success", "pass at 4": "pass at 4"}
    return names[objective]


def _angle(one: Mapping[str, Any] | None) -> str:
    if one is None or "cosines" not in one:
        return ""
    if one["length"] < NOTHING:
        return "no update"
    low, angle, high = interval(one)
    if "within" not in one:
        return "0" if is_parallel(one) else _degrees(angle)
    return f"{low:.1f} to {high:.1f}"


def _degrees(angle: float) -> str:
    """Return an angle that is not 0 as text."""
    return f"{angle:.1f}" if angle >= _SMALLEST else f"<{_SMALLEST:g}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
