"""Markdown and formulas in messages are formatted; what a model wrote as HTML, links or commands stays text."""

from __future__ import annotations

import pytest
from chromium import barriers
from playwright.sync_api import expect

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.run_folder import Decision, RunWriter
from rstar2_env.view.export.write import write_export

WRITTEN = """So **we add**, $x^2 + \\frac{1}{2}$:

1. first
3. third, 2*3*4 = 24

| a | b |
|---|---|
| 1 | $5 and $6 |

$$\\sum_{i=1}^n i$$

The answer is \\boxed{158}."""
BOARD = "# # #\n#  *$x$* #\n- 5 * 3 * 1"
ATTACKS = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<svg onload='window.hacked = 1'><script>window.hacked = 1</script></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror='window.hacked = 1'></style></mglyph></table>",
    "<math href='javascript:window.hacked = 1'>x</math>",
    "<a href='javascript:window.hacked = 1'>x</a>",
    "[x](javascript:window.hacked=1)",
    "[x](<java\tscript:window.hacked=1>)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](data:image/svg+xml,<svg/onload=window.hacked=1>)",
    "![x](https://example.org/x.png)",
    "<javascript:window.hacked=1>",
    "https://example.org/x",
    "[x]: javascript:window.hacked=1\n\n[x]",
    "`<img src=x onerror=window.hacked=1>`",
    "| <img src=x onerror=window.hacked=1> |\n|---|\n| <script>window.hacked=1</script> |",
    "$\\href{javascript:window.hacked=1}{x}$",
    "$\\url{javascript:window.hacked=1}$",
    "$\\includegraphics{https://example.org/x.png}$",
    "$\\text{<img src=x onerror=window.hacked=1>}$",
    "$\\class{x' onclick='window.hacked=1}{x}$",
    "$\\style{position:fixed;inset:0}{x}$",
    "$\\id{app}{x}$",
    "$\\data{onclick=window.hacked=1}{x}$",
    "$\\mathop{\\char`<img}$",
    "$\\def\\a{\\a\\a}\\a$",
    "$\\rule{99999em}{99999em}$",
    "$\\color{red}{x} \\hspace{99999em} y$",
)
ELEMENTS = (
    "ol li div p span br strong em del code pre ul blockquote hr table thead tbody tr th td header h2 button "
    "details summary math mrow mi mn mo mtext mspace mfrac msqrt mstyle msub msup msubsup munder mover munderover "
    "mpadded mphantom figure figcaption"
)
"""What a conversation may be made of."""
SEEN = """list => [...list.querySelectorAll('*')].flatMap((one) => {
    const risky = [...one.attributes].filter(({ name }) => /^(on|href|src|style|xlink|action|id$)/.test(name));
    return [one.localName, ...risky.map(({ name }) => '@' + name)];
})"""
"""Names of the elements of a conversation, and of attributes with which an element could do or load something."""


def played(folder, texts):
    """A run of one group, in which each of these texts is a turn of an episode of its own."""
    writer = RunWriter(folder)
    writer.begin({"trainer": "grpo_roc"})
    group = [
        Episode(problem_id="p", messages=[Message("user", asked), Message("assistant", said)], turns=1, end="answered")
        for asked, said in texts
    ]
    writer.train(1, [group], [[Decision(True, "", 0, 0.5) for _ in group]])
    return folder


@pytest.fixture
def see(serve, pages, tmp_path):
    """Opens the episode in which a model wrote a text: ``see(text)``."""

    def open_episode(*said, asked="What?", at=0, **options):
        server = serve([played(tmp_path / "run", [(asked, text) for text in said])])
        return pages.open(f"{server.link}#/runs/run/episodes/train-1-{at}", **options)

    return open_episode


def test_a_turn_is_shown_with_its_markdown_and_formulas(see):
    page = see(WRITTEN)
    turn = page.locator(".said.policy")
    expect(turn.locator("strong")).to_have_text("we add")
    expect(turn.locator("math")).to_have_count(3)
    expect(turn.locator("math mfrac")).to_have_count(1)
    assert [one.get_attribute("value") for one in turn.locator("ol li").all()] == ["1", "3"]
    expect(turn).to_contain_text("2*3*4 = 24")
    expect(turn.locator("td").last).to_have_text("$5 and $6")
    assert barriers(page) == []
    turn.get_by_role("button", name="As written").click()
    expect(turn.locator("math, strong, table")).to_have_count(0)
    expect(turn).to_contain_text("$$\\sum_{i=1}^n i$$")


def test_control_characters_in_a_formula_are_visible(see):
    page = see("So $\\text{a\u202eb} + \\sin x$.")
    expect(page.locator(".said.policy math mtext")).to_have_text("a⟨U+202E⟩b")
    assert "U+2061" not in page.locator(".said.policy math").text_content()


def test_the_environments_text_keeps_its_layout(see):
    page = see("so", asked=BOARD)
    problem = page.locator(".said").first
    expect(problem.locator("math")).to_have_count(1)
    shown = problem.locator("p.text").text_content().replace("\N{MATHEMATICAL ITALIC SMALL X}", "x")
    assert shown == BOARD.replace("$x$", "x")


def test_what_a_model_wrote_stays_text(see, pages):
    page = see(*(f"$x_1$ {text}" if "\n" not in text else f"$x_1$\n\n{text}" for text in ATTACKS))
    start = page.url.rpartition("-")[0]
    for number, text in enumerate(ATTACKS):
        page.evaluate("address => { location.href = address; }", f"{start}-{number}")
        told = page.get_by_role("list", name="Conversation")
        expect(page.locator("h1")).to_have_text(f"Episode train-1-{number}")
        expect(told.locator("math msub").first, text).to_be_visible()
        seen = set(told.evaluate(SEEN))
        assert seen <= {*ELEMENTS.split()}, (text, seen)
        assert page.evaluate("window.hacked") is None, text
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], text


def test_texts_are_shown_as_written_without_the_script_that_formats_them(serve, pages, tmp_path):
    pages.expected.append("Failed to load resource")
    server = serve([played(tmp_path / "run", [("What?", "**so** $x$")])])
    page = pages.open(server.link)
    page.route("**/text.js", lambda route: route.abort())
    page.evaluate("location.hash = '#/runs/run/episodes/train-1-0'")
    expect(page.locator(".said.policy")).to_contain_text("**so** $x$")


def test_an_exported_page_formats_too(from_disk, tmp_path):
    write_export([played(tmp_path / "run", [("What?", WRITTEN)])], tmp_path / "page.html", cache=tmp_path / "cache")
    page = from_disk(tmp_path / "page.html", "runs/run/episodes/train-1-0")
    expect(page.locator(".said.policy math")).to_have_count(3)
