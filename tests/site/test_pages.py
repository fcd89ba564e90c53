"""The site as a reader sees it: whole without a network, searchable, readable narrow and wide, light and dark."""

import functools
import html
import posixpath
import re
import string
from urllib.parse import parse_qs, quote, unquote, urldefrag

import pytest
from chromium import PATIENCE_MS, barriers
from places import ROOT
from playwright.sync_api import expect

SITE = ROOT / "build" / "site"
RUNS = "demo-run.html"
_CODE = re.compile(r"<(script|style)\b([^>]*)>.*?</\1>", re.DOTALL)

LOOKED_AT = {
    "Start": ["index.html", "getting-started.html", "examples.html"],
    "Tutorials": ["tutorials/own_environment.html", "tutorials/diagnose.html"],
    "How-to": ["how-to.html", "problems.html", "viewer.html", "diagnosis.html", "bridge-harbor.html"],
    "Reference": [
        "options.html",
        "options/optim.max_grad_norm.html",
        "metrics.html",
        "metrics/policy-entropy.html",
        "run-folder.html",
        "environments.html",
        "environments/rstar2-mathtool-v0.html",
        "verification-rules.html",
        "trainers/parts.html",
        "trainers/losses.html",
        "trainers/losses/ppo_clip.html",
        "trainers/recipes.html",
        "trainers/recipes/grpo_roc.html",
        "gallery/statuses.html",
        "gallery/statuses/syntax_error.html",
        "gallery/agents.html",
        "reference/index.html",
        "reference/verification.html",
        "reference/commands/rstar2-train.html",
        "troubleshooting.html",
        "troubleshooting/missing-extra.html",
        "project/changelog.html",
    ],
    "Explanation": ["environment-contract.html", "rollout.html", "loss-computation.html", "grpo-roc.html"],
    "Evidence": ["atlas.html", "learning.html", "proof.html", "studies.html", "systems.html", "gpu-report.html"],
}
"""Pages of every kind, by the part of the site: guides, tutorials, indices and items, API, generated pages, forms."""
EVERY = [place for places in LOOKED_AT.values() for place in places]


def test_pages_of_every_part_are_looked_at():
    named = re.findall(
        r"^  - ([\w-]+):", (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2], re.MULTILINE
    )
    assert list(LOOKED_AT) == named


@pytest.mark.parametrize(
    ("place", "dark"),
    [
        *((place, False) for place in EVERY),
        ("index.html", True),
        ("getting-started.html", True),
        ("metrics/policy-entropy.html", True),
        ("reference/verification.html", True),
        ("atlas.html", True),
    ],
)
def test_a_page_has_no_barrier_that_axe_finds(look, place, dark):
    assert barriers(look(place, dark=dark)) == []


@pytest.mark.parametrize("place", EVERY)
def test_a_page_is_no_wider_than_its_window(look, place):
    page = look(place)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("h1").first.is_visible()


def test_the_search_finds_a_page_without_a_server(look):
    page = look("index.html")
    page.keyboard.press("f")
    page.keyboard.type("resample on correct", delay=5)
    results = page.locator(".md-search-result__item, .md-search-result__link")
    results.first.wait_for(timeout=PATIENCE_MS)
    expect(page.locator(".md-search-result")).to_contain_text("GRPO-RoC", timeout=PATIENCE_MS)
    results.first.click()
    page.wait_for_load_state()
    assert "index.html" not in page.url


@pytest.mark.parametrize(("place", "which"), [("environments.html", "a code"), ("gallery/statuses.html", "a code")])
def test_a_name_in_a_table_stays_on_one_line(look, place, which):
    names = look(place, width=390).locator(f"table td:first-child {which}")
    broken = [one for one in names.all() if one.evaluate("node => node.getClientRects().length") > 1]
    assert [one.inner_text() for one in broken] == []
    assert names.count() > 10


def test_a_plot_lies_on_dark_paper_on_a_dark_page(look):
    picture = "node => getComputedStyle(node).filter"
    plot = "img[src$='real-model.png']"
    assert "invert" in look("index.html", dark=True).locator(plot).evaluate(picture)
    assert look("index.html").locator(plot).evaluate(picture) == "none"


def test_the_picture_of_the_viewer_is_readable_on_a_phone(look):
    picture = look("index.html", width=390).locator("img[src$='group-card.png']")
    drawn = picture.evaluate("node => node.naturalWidth")
    assert picture.bounding_box()["width"] > 0.75 * drawn > 0, "text of 14 pixels gets smaller than 10.5"


@pytest.mark.parametrize("width", [390, 1440])
def test_formulas_are_drawn_without_a_script_and_no_wider_than_the_page(look, width):
    page = look("grpo-roc.html", width=width)
    formulas = page.locator(".md-content .formula")
    assert formulas.count() > 10
    assert "\\frac" not in page.locator(".md-content").inner_text()
    boxes = [one.bounding_box() for one in formulas.all() if one.is_visible()]
    assert all(box["height"] > 8 and box["x"] + box["width"] <= width for box in boxes)


def test_the_front_page_leads_to_the_first_steps(look):
    page = look("index.html")
    page.locator(".md-content a", has_text="Getting started").first.click()
    assert page.locator("h1").first.inner_text().startswith("Getting started")


@functools.cache
def pages():
    """The text of every page of the site, by its place, without scripts: their text may look like a tag."""
    found = {path.relative_to(SITE).as_posix(): path.read_text("utf-8") for path in SITE.rglob("*.html")}
    return {place: _CODE.sub(r"<\1\2>", text) for place, text in found.items()}


def links():
    """The links of every page within the site: the page, the link, the file that it names, and its anchor."""
    for page, text in pages().items():
        for link in set(re.findall(r"<(?:a|img|script|link)\s[^>]*?(?:href|src)=\"?([^\"\s>]+)", text)):
            target, anchor = urldefrag(html.unescape(link))
            if page != "404.html" and not re.match(r"^(?:[a-z]+:|//)", target):
                file = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(target))) if target else page
                yield page, link, file, unquote(anchor)


def test_every_link_of_the_built_site_leads_to_a_file_and_an_anchor():
    files = {path.relative_to(SITE).as_posix() for path in SITE.rglob("*") if path.is_file()}
    ids = {page: {"", *re.findall(r"\bid=\"([^\"]+)\"", text)} for page, text in pages().items()}
    assert len(ids) > 100
    # The next test looks at what an anchor of the page of runs shows.
    wrong = [
        (page, link)
        for page, link, file, anchor in links()
        if file not in files or (file != RUNS and anchor not in ids.get(file, {anchor}))
    ]
    assert wrong == []


SHOWN = {
    "a": ".compare-choice",
    "after_error": "text=/^[1-9]\\d* episodes? found/",
    "b": ".compare-choice",
    "correct": "text=/^[1-9]\\d* episodes? found/",
    "metric": "text=/^Data of/",
    "runs": "text=Differences between recipes",
    "sort": "[aria-sort=ascending], [aria-sort=descending]",
    "status": "text=/^[1-9]\\d* episodes? found/",
}
"""Part of the page of runs that shows the effect of each query of a link; a query without an effect fails the test."""


def test_every_link_into_the_page_of_runs_shows_what_it_names(look):
    addresses = sorted({anchor for _, _, file, anchor in links() if file == RUNS and anchor})
    assert len(addresses) >= 9
    if "Not built" in (SITE / RUNS).read_text("utf-8")[:200]:
        pytest.skip("the page of rstar2 view is not built: it needs npm and Node 20.19")
    page = look(RUNS)
    expect(page.get_by_text("An example: runs of rstar2 demo")).to_be_visible(timeout=PATIENCE_MS)
    listed = page.locator("main a[href^='#/runs/']")
    expect(listed.first).to_be_visible(timeout=PATIENCE_MS)
    known = {link.split("/")[2] for link in listed.evaluate_all("all => all.map((one) => one.getAttribute('href'))")}
    for address in addresses:
        page.goto("about:blank")
        page.goto(f"{(SITE / RUNS).as_uri()}#{quote(address, safe='/?&=,')}")
        main = page.locator("main")
        expect(main.locator("h1, h2").first, address).to_be_visible(timeout=PATIENCE_MS)
        # What is not found, fails or is empty; a view that still reads its data says so in the same place.
        expect(main.locator(".state"), address).to_have_count(0, timeout=PATIENCE_MS)
        path, _, query = address.partition("?")
        named = parse_qs(query, strict_parsing=True) if query else {}
        for key in named:
            expect(main.locator(SHOWN[key]).first, address).to_be_visible(timeout=PATIENCE_MS)
        runs = ",".join([*path.split("/")[2:3], *(run for key in ("a", "b", "runs") for run in named.get(key, []))])
        assert set(runs.split(",")) <= known, address


QUESTIONS = {
    "resample on correct": "grpo-roc.html",
    "train on my own problems": "problems.html",
    "why does my reward stay flat": "diagnosis.html",
    "keep state between calls": "sandbox-sessions.html",
    "use several gpus": "scaling.html",
    "resume a killed run": "resume.html",
    "sandbox session": "sandbox-sessions.html",
    "resume": "resume.html",
    "export weights": "export-weights.html",
    "entropy collapse": "diagnosis-checks/entropy_collapsed.html",
    "limit episode length": "budgets.html",
    "evaluate a model behind an openai api": "endpoint-agent.html",
    "out of memory during training": "sizing.html",
    "what is a healthy entropy": "diagnosis-checks/entropy_collapsed.html",
    "what does pass@k mean": "evaluation-figures.html",
    "how do i install on amd mi300x": "rocm.html",
    "ppo_clip": "trainers/losses/ppo_clip.html",
    "gspo": "trainers/recipes/gspo.html",
    "syntax_error": "gallery/statuses/syntax_error.html",
    "mathfence": "environments/rstar2-mathfence-v0.html",
    "metric grad_norm": "metrics/grad_norm.html",
    "rstar2 list": "reference/commands/rstar2-list.html",
    "learning rate too high": "diagnosis-checks/learning_rate_high.html",
    "rstar2 diagnose": "diagnosis.html",
    "diagnose a run": "diagnosis.html",
    "max_grad_norm": "options/optim.max_grad_norm.html",
    "option keep_tokens": "options/run.keep_tokens.html",
    "missing extra": "troubleshooting/missing-extra.html",
    "how do i install it": "getting-started.html",
    "train without a gpu": "cpu.html",
    "use my own csv dataset": "problems.html",
    "is it safe to run model code": "sandbox.html",
    "why is my answer graded wrong": "verification.html",
    "exporting weights": "export-weights.html",
    "auditing graders": "audit.html",
    "writing puzzles": "write-a-puzzle.html",
    "limiting the length of episodes": "budgets.html",
}
"""Questions, and the page that the search must list first."""


def test_a_question_is_answered_by_the_first_page_that_the_search_finds(look):
    at = look("index.html")  # once: a page reads the whole index before it answers
    at.keyboard.press("f")
    for asked, page in QUESTIONS.items():
        query = at.locator("input[data-md-component=search-query]")
        query.fill("")
        expect(at.locator(".md-search-result__item")).to_have_count(0, timeout=PATIENCE_MS)
        query.fill(asked)  # at once: a part of the question may find the page
        at.keyboard.press("End")  # the search reads its field after a key
        first = at.locator(".md-search-result__item").first
        expect(first.locator(f"a[href*='/{page}']").first, asked).to_be_visible(timeout=PATIENCE_MS)


def test_the_search_knows_every_word_of_its_index(look):
    """A letter finds all words that begin with it; one word that the index lacks makes its search fail."""
    at = look("index.html")
    at.keyboard.press("f")
    told = at.locator(".md-search-result__meta")
    expect(told).to_have_text("Type to start searching", timeout=PATIENCE_MS)
    for letter in string.ascii_lowercase + string.digits:
        at.keyboard.type(letter)
        expect(told).to_have_text(re.compile(r"^(?:No|1|[\d,.k]+) matching documents?$"), timeout=PATIENCE_MS)
        assert not told.inner_text().startswith("No"), letter
        at.keyboard.press("Backspace")
        expect(told).to_have_text("Type to start searching", timeout=PATIENCE_MS)
