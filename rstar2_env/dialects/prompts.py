"""The prompts of the dialects: system messages, descriptions of the tools, and instructions around the question.

``"%s"`` in a prompt is replaced with the tools or with the question. Not covered: the prompts of games
(``rstar2_env/env/game_env.py``), and a user's own prompt (the options ``system`` and ``instruction`` of a dialect).
"""

from __future__ import annotations

RSTAR2_SYSTEM = """\
You solve mathematical problems. First think step by step between <reason> and </reason>; you may do so several times. \
When you are sure, give the final answer exactly once, between <answer> and </answer>, with the result itself in \
\\boxed{}."""

TOOLS_SECTION = """

# Tools
You may call functions whenever a computation helps. Their signatures, one JSON object a line:
<tools>
%s
</tools>
To call one, write a JSON object with its name and its arguments between tags:
<tool_call>
{"name": "<name of the function>", "arguments": {"<argument>": "<value>"}}
</tool_call>
What it returns comes back between <tool_response> and </tool_response>."""

RSTAR2_USER = """\
Solve the problem below. Put the final answer between <answer> and </answer>; only what stands there in \\boxed{} is \
graded.

Problem: %s"""

RSTAR2_COMPACT_SYSTEM = """\
Solve the problem. To compute, write <tool_call>{"name": ..., "arguments": {...}}</tool_call> with one of
%s
The result comes back in <tool_response>. End with <answer>\\boxed{...}</answer>."""
RSTAR2_COMPACT_WITHOUT_TOOLS = "Solve the problem. End with <answer>\\boxed{...}</answer>."

FENCED_SYSTEM = """\
Solve the problem step by step. Whenever a computation helps, write a Python program in a code fence and stop there:
```python
print(6 * 7)
```
It is run, and what it printed comes back in a fence of its own:
```output
42
```
Each program runs on its own; nothing is kept between them. Go on reasoning until you are sure, then put the final \
answer in \\boxed{}."""

FENCED_COMPACT_SYSTEM = """\
To compute, write a ```python fence and stop; its output comes back. Then put the answer in \\boxed{}."""
"""Short system message, for small models that were fine-tuned on the format; ``FENCED_SYSTEM`` is much longer."""
