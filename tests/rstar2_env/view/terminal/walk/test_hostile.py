"""Whatever a model or a file says, a screen shows it as text: no control, no markup, no style of theirs."""

from __future__ import annotations

import json

import pytest
from hostile_run import TEXTS, write_hostile

pytest.importorskip("textual", reason="textual is in the extra 'view'")

from walked import walk

CONTROLS = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} - {"\n"}
TURNING = set(map(chr, (0x202A, 0x202E, 0x2066, 0x2069, 0x200E, 0x200F, 0x061C, 0x2028, 0x2029, 0xFEFF, 0xFFF9)))
MARKUP = "[bold]b[/bold] [/x] [@click=app.quit]c[/] [link=file:///x]l[/link]"


@pytest.mark.slow
def test_no_screen_of_a_hostile_run_holds_a_control_or_loses_a_word(tmp_path):
    folder = write_hostile(tmp_path).folder

    async def act(walker):
        await walker.until("running  step 4")
        assert not {*walker.whole} & (CONTROLS | TURNING)
        await walker.press("enter", until="77 episodes")
        assert not {*walker.text} & (CONTROLS | TURNING)
        await walker.press("f", until="Filter")
        await walker.type("split=train&step=1&kept=1")
        await walker.press("enter", until=f"{len(TEXTS)} episodes")
        await walker.press("enter", until=f"   1 of {len(TEXTS)}")
        for at, (name, text) in enumerate(TEXTS.items(), 1):
            await walker.until(lambda at=at: f"   {at} of {len(TEXTS)}" in walker.lines[0])
            await walker.until(lambda name=name: f"{name}: "[:40] in walker.whole)
            assert not {*walker.whole} & (CONTROLS | TURNING), name
            begun = text.split("\n")[0][:30]
            assert not begun.isascii() or not begun.isprintable() or begun in walker.whole, name
            if name == "escapes":
                assert r"\x1b[2J\x1b[31mred\x1b[0m\x1b]0;title\x07" in walker.whole
            await walker.press("n")

    walk(act, folder, cache=tmp_path / "cache")


def test_markup_is_text_wherever_it_stands(tmp_path):
    call = {"name": MARKUP, "status": "ok"}
    record = {
        "messages": [{"role": MARKUP, "content": MARKUP}, {"role": "assistant", "content": MARKUP}],
        "steps": [{"info": {"tool_calls": [call]}}],
        **dict.fromkeys(("problem_id", "end", "reason", "answer", "error", "gold"), MARKUP),
        "statuses": [MARKUP],
        "kept": False,
        "rewards": {MARKUP: 1.0},
    }
    (tmp_path / "[").mkdir()
    file = tmp_path / "[" / "[b]x].jsonl"
    file.write_text(json.dumps(record) + "\n")

    async def act(walker):
        await walker.until(lambda: bool(walker.whole))
        assert "[b]x]" in walker.whole
        await walker.press("enter", until="1 episodes")
        await walker.until("[bold]b[/bold] [/x] [@cl")
        await walker.press("enter", until=MARKUP)
        assert walker.whole.count(MARKUP) >= 4
        assert walker.whole.count("[bold]b[/bold]") >= 9
        await walker.press("escape", "slash", until="Search")
        await walker.type("[/x")
        await walker.press("enter", until="search [/x")
        await walker.press("f")
        await walker.type("[/x")
        await walker.press("enter", until="not '[/x'")

    walk(act, file, cache=tmp_path / "cache", size=(160, 60))
