"""The folder of a run as a hostile model, or a crash, could leave it: all that a page shows of it must be text.

Covered: markup and scripts in every field that somebody else writes, addresses that run code, terminal escapes, text
that changes direction, null bytes, lone surrogates, a message of a megabyte, deep nesting, names that mean something
to JavaScript; and broken files: half a last line, gzip members cut short, lines of wrong types. Not covered: a folder
that another user may write while it is read.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import Decision, RunWriter
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn

MARK = "hacked"
"""The name of the property of ``window`` that is there once anything of a run was executed as a script."""
_RUN = f"window.{MARK}=1"
MEGABYTE = 1 << 20

TEXTS: dict[str, str] = {
    "script": f"<script>{_RUN}</script>",
    "end of a script": f"</script><script>{_RUN}</script>",
    "comment": f"<!--<script>{_RUN}</script>-->",
    "image": f'<img src="x" onerror="{_RUN}">',
    "svg": f'<svg onload="{_RUN}"><animate onbegin="{_RUN}" attributeName=x dur=1s>',
    "frame": f'<iframe srcdoc="<script>parent.{MARK}=1</script>"></iframe>',
    "attribute": f'" onmouseover="{_RUN}" autofocus onfocus="{_RUN}" x=\'',
    "link": f'[click](javascript:{_RUN}) <a href="javascript:{_RUN}">click</a>',
    "data": f'<object data="data:text/html,<script>parent.{MARK}=1</script>"></object>',
    "style": "<style>body{display:none}</style><link rel=stylesheet href=//example.invalid/x.css>",
    "base": '<base href="//example.invalid/"><meta http-equiv=refresh content="0;url=//example.invalid">',
    "form": "<form action=//example.invalid><input name=q></form>",
    "entities": "&lt;b&gt; &amp;amp; &#x3c;script&#x3e; &copy;",
    "template": "${alert(1)} {{constructor.constructor('alert(1)')()}} <%= 1 %> `${1}`",
    "escapes": "\x1b[2J\x1b[31mred\x1b[0m\x1b]0;title\x07 \x9b31m \x08\x08 \r rewritten",
    "direction": "\u202egnp.exe\u202c \u2066isolate\u2069 \u200f\u061c \u200bzero\u200bwidth",
    "null": "before\x00after \x01\x02\x7f",
    "surrogate": "lone \ud800 and \udfff halves",
    "combining": "Z" + "\u0351" * 200 + " \U0001f469\u200d\U0001f469\u200d\U0001f467",
    "separators": "line\u2028paragraph\u2029next\x85feed\x0bend",
    "fence": "```python\n<script>" + _RUN + "</script>\n```\n~~~\n</code></pre>",
    "call": '<tool_call>\n{"name": "<b>x</b>", "arguments": {"code": "</script><script>'
    + _RUN
    + '</script>"}}\n</tool_call>',
    "nested calls": "<tool_call>" * 500 + "{" * 500,
    "response": "<tool_response>\n<img src=x onerror=" + _RUN + ">\n</tool_response>",
    "formula": r"\href{javascript:alert(1)}{x} \includegraphics{//example.invalid/x.png} $\frac{1}{0}$",
    "long word": "a" * 5000,
    "lines": "\n" * 3000,
    "sql": '\'; DROP TABLE episodes; -- " OR 1=1 * NEAR( AND "',
    "path": "../../../../etc/passwd %2e%2e%2f //example.invalid/x file:///etc/passwd",
}
"""What a model wrote, by what is bad about it."""
NAMES = ("__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "<b>name</b>", "a/b?c#d&e=f%", "", " ")
"""Names of problems, tasks, components of rewards and metrics."""


@dataclass(frozen=True)
class Hostile:
    """What the folder holds.

    Attributes:
        folder: The run's folder, whose own name is bad too.
        train: Whole episodes of training that can be read.
        held_out: Whole held-out episodes that can be read.
        broken: Files of which something cannot be read, by their names; not those that may still grow.
    """

    folder: Path
    train: int
    held_out: int
    broken: tuple[str, ...]


def write_hostile(parent: Path) -> Hostile:
    """Write the folder into another one, and say what it holds."""
    folder = parent / "run <b>&amp; \"x' %2e 'é"
    writer = RunWriter(folder, tokens=True)
    bad = TEXTS["image"]
    writer.begin(
        {"trainer": bad, "run": {"seed": 0, "__proto__": {"polluted": True}}, "parts": {"selector": {"name": bad}}},
        versions_of=bad,
    )
    (folder / "README.md").write_text("# " + bad + "\n\n" + TEXTS["link"] + "\n" + TEXTS["script"], "utf-8")
    texts = list(TEXTS.items())
    groups = [_group(number, *texts[number]) for number in range(len(texts))]
    writer.train(1, groups, [[Decision(True, "", 0, 0.5), Decision(False, bad, 1, None)] for _ in groups])
    writer.train(2, [[_named(at, name) for at, name in enumerate(NAMES)]])
    writer.train(3, [[_large(0), _deep(1)]])
    writer.held_out(0, [_group(at, *one)[0] for at, one in enumerate(texts[:5])])
    for step in (1, 2, 3):
        writer.metrics(step, {"loss": 1 / step, **{f"rollout/{name}": step for name in NAMES}, "inf": float("inf")})
    writer.event("note", 1, text=bad, hook=TEXTS["script"])
    writer.event("evaluation", 0, figures={"pass_rate": 0.5, "__proto__": 1.0, bad: 2.0})
    writer.event("failed", 3, error=TEXTS["end of a script"] + TEXTS["escapes"])
    return Hostile(folder, 2 * len(texts) + len(NAMES) + 2 + 3, 5, tuple(_break(folder)))


def _break(folder: Path) -> list[str]:
    """Add to the files what crashes and strangers leave; ``write_hostile`` counts three whole lines among it."""
    good = _line(0)
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'[1, 2]\nnot json\n{"step": "four"}\n{"loss": 3}\n{"step": 4, "loss": {"a": 1}}\n{"step": 5, "lo')
    with (folder / "events.jsonl").open("ab") as file:
        file.write(b'7\n{"event": ["x"], "time": 3}\n{"eve')
    member = gzip.compress(good, mtime=0)
    episodes = folder / "episodes"
    (episodes / "train-000004.jsonl.gz").write_bytes(member + gzip.compress(good, mtime=0)[:-9])
    (episodes / "train-000005.jsonl.gz").write_bytes(member + b"\x1f\x8bgarbage" + member)
    (episodes / "train-000006.jsonl").write_bytes(
        b'null\n[]\n{"group": "x"}\n\xff\xfe\n' + b"[" * 100_000 + b"\n" + good + good[: len(good) // 2]
    )
    (episodes / "train-000007.jsonl.gz").write_bytes(b"")
    (folder / "tokens").mkdir(exist_ok=True)
    (folder / "tokens" / "train-000001.jsonl.gz").write_bytes(gzip.compress(b'{"step": 1}\n'))
    return [
        "metrics.jsonl",
        "events.jsonl",
        "train-000005.jsonl.gz",
        "train-000006.jsonl",
    ]


def _line(member: int) -> bytes:
    record: dict[str, Any] = _group(0, "image", TEXTS["image"])[0].record()
    line = {"step": 4, "member": member, "round": 0, "kept": False, "reason": "", "advantage": None, **record}
    return json.dumps(line).encode() + b"\n"


def _group(number: int, name: str, text: str) -> list[Episode]:
    """Two episodes that say a text in every field that somebody else writes."""
    said = [
        Message("system", text),
        Message("user", text),
        Message("assistant", f"{name}: {text}"),
        Message("tool", text),
    ]
    info: dict[str, Any] = {"role": text, text[:50]: text, "tool_calls": [{"name": text, "status": "ok"}], "x": [text]}
    info["verdict"] = {"reason": text, "method": text}
    turn = Turn(0, 3, text, 1.0, [ToolStatus.OK, ToolStatus.EXCEPTION], 0, info)
    first = Episode(group=number, seed=number, problem_id=f"hostile-{number}", messages=said, reward=1.0, end=text)
    first.turns, first.answer, first.correct, first.error, first.task = 1, text, True, text, text
    first.steps, first.shown, first.rewards = [turn], text, {text: 1.0}
    first.statuses, first.injected, first.answer_tags = list(turn.statuses), [ToolStatus.TIMEOUT], 1
    second = Episode(group=number, problem_id=f"hostile-{number}", messages=said[:3], end="answered", recorded_tokens=3)
    return [first, second]


def _named(number: int, name: str) -> Episode:
    messages = [Message("user", "Question?"), Message(name, name), Message("assistant", name)]
    made = Episode(group=0, problem_id=name, messages=messages, task=name, end=name, rewards={name: 1.0})
    made.answer, made.reward, made.turns = name, 1e308 if number % 2 else -0.0, 1
    return made


def _large(group: int) -> Episode:
    text = ("word <b>" + "x" * 90 + "</b>\n") * (MEGABYTE // 104)
    messages = [
        Message("user", "A message of a megabyte?"),
        Message("assistant", text),
        Message("user", "7" * MEGABYTE),
    ]
    return Episode(group=group, problem_id="large", messages=messages, end="tokens", turns=1)


def _deep(group: int) -> Episode:
    nested: Any = 1
    for _ in range(300):
        nested = {"a": [nested]}
    made = Episode(
        group=group, problem_id="deep", messages=[Message("user", "{" * 9000), Message("assistant", "[" * 9000)]
    )
    made.steps, made.turns, made.end = [Turn(info={"nested": nested})], 1, "answered"
    return made
