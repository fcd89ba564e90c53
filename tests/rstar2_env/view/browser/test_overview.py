"""The overview: a card for every figure, and what smoothing, axes, zoom, seeds and legends make of the curves.

Curves are drawn on a canvas, so these tests read the table below each ("Data of ..."), the words that are drawn beside
the axes, and whether two pictures are the same.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from statistics import mean, stdev
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import expect
from waiting import wait_for

from rstar2_env.core.run_folder import read_run

CARDS = {
    "Success": {"held out": "eval/pass_rate", "played": "rollout/pass_rate", "kept": "kept/pass_rate"},
    "Failed calls": {
        "all episodes": "rollout/tool_error_share",
        "correct episodes": "rollout/tool_error_share_correct",
        "kept episodes": "kept/tool_error_share",
    },
    "Tokens per episode": {"held out": "eval/tokens", "played": "rollout/tokens", "kept": "kept/tokens"},
    "Statuses of calls": {name: f"rollout/status/{name}" for name in ("ok", "empty", "exception", "timeout")},
    "Failed calls by status": {name: f"rollout/status/{name}" for name in ("exception", "timeout")},
    "How episodes ended": {name: f"rollout/end/{name}" for name in ("answered", "no_answer", "tokens")},
    "Groups rejected": {"rejected": "rollout/groups_rejected"},
    "Groups refilled": {"refilled": "rollout/groups_refilled"},
    "Time per step, by activity": {
        "rollout": "seconds/rollout",
        "training": "seconds/train",
        "weight sync": "seconds/hand_over",
    },
    "Seconds per episode": {"tools": "seconds/tool"},
    "Trained tokens per computed token": {"trained": "tokens/share_trained"},
}
"""Figures of a run by the label of their line, by card."""
SIDE_BY_SIDE = "overview?runs=roc-0,roc-1,grpo-0"
_HEAR = """() => {
  const pen = CanvasRenderingContext2D.prototype;
  const [clear, fill] = [pen.clearRect, pen.fillText];
  pen.clearRect = function (...all) { this.canvas.signs = []; return clear.apply(this, all); };
  pen.fillText = function (text, ...rest) { this.canvas.signs?.push(text); return fill.call(this, text, ...rest); };
}"""
"""Has every canvas keep the words that are drawn on it."""


def card(page, title):
    """The card of a plot."""
    return page.get_by_role("region", name=title, exact=True)


def data(page, title):
    """The values of a card's table, by label and step; it is opened."""
    if not card(page, title).locator(".plot-data[open]").count():
        page.get_by_text(f"Data of “{title}”").click()
    rows = page.get_by_role("region", name=f"Data of {title}", exact=True).locator("tr")
    rows.last.wait_for()
    head, *body = [[cell.strip() for cell in row.split("\t")] for row in rows.all_inner_texts()]
    return {
        label: {int(row[0].replace(",", "")): number(row[at]) for row in body if row[at] != "–"}
        for at, label in enumerate(head)
        if at and label != "Events"
    }


def number(text):
    """What a cell says: shares as shares, times in seconds."""
    value, unit = re.fullmatch(r"([−\d.,e-]+)\s*(%|ms|s|)", text).groups()
    return float(value.replace(",", "").replace("−", "-")) * {"%": 0.01, "ms": 0.001, "s": 1, "": 1}[unit]


def figures(runs, run, name):
    """A figure of a run as its folder has it, by step."""
    told = {int(line["step"]): line.get(name, math.nan) for line in read_run(runs / run).metrics()}
    return {step: value for step, value in told.items() if not math.isnan(value)}


def near(values):
    """Equal to these but for the digits that a table shows."""
    return {step: pytest.approx(value, rel=0.006, abs=0.0006) for step, value in values.items()}


def picture(page, title):
    """What is drawn in a card, which is scrolled to: plots far below are not drawn yet."""
    card(page, title).scroll_into_view_if_needed()
    return card(page, title).locator("canvas").evaluate("canvas => canvas.toDataURL()")


def redrawn(page, title, before):
    """Wait until a card's picture is another one, and give it."""
    wait_for(lambda: picture(page, title) != before)
    return picture(page, title)


def signs(page, title):
    """The words at the axes of a card."""
    return [text for text in card(page, title).locator("canvas").evaluate("canvas => canvas.signs") if text]


def asked(page):
    """What the address says, by name."""
    return {name: values[0] for name, values in parse_qs(page.url.partition("?")[2]).items()}


def test_every_figure_has_a_card_with_the_numbers_of_the_run(look, runs):
    page = look("runs/roc-0")
    for title, lines in CARDS.items():
        expect(card(page, title)).to_be_visible()
        shown = data(page, title)
        for label, name in lines.items():
            found = {step: shown[label].get(step, 0.0) for step in figures(runs, "roc-0", name)}
            assert found == near(figures(runs, "roc-0", name)), f"{title}: {label}"
        card(page, title).scroll_into_view_if_needed()
        expect(card(page, title).locator("canvas")).to_be_visible()


def test_the_failed_calls_of_all_statuses_are_the_failed_calls(look):
    page = look("runs/roc-0")
    shares = data(page, "Failed calls by status")
    assert len(shares) > 2
    for step, share in data(page, "Failed calls")["all episodes"].items():
        parts = [one.get(step, 0.0) for one in shares.values()]
        assert math.isclose(sum(parts), share, abs_tol=0.0006 * (len(parts) + 1)), step


def test_the_axis_of_few_steps_has_whole_numbers(look):
    page = look("runs/roc-0/problems/made-0001")
    page.evaluate(_HEAR)
    page.emulate_media(color_scheme="dark")  # draws the plot again
    canvas = card(page, "Success by step").locator("canvas")
    wait_for(lambda: canvas.evaluate("canvas => canvas.signs?.length"))
    steps = [text for text in signs(page, "Success by step") if text != "step" and "%" not in text]
    assert steps
    assert all(text.isdigit() for text in steps), steps


def test_smoothing_is_a_mean_of_the_past_and_keeps_what_it_smooths(look, runs):
    page = look("runs/roc-0?smooth=0.5")
    raw, sums, mass = figures(runs, "roc-0", "rollout/tokens"), 0.0, 0.0
    wanted = {}
    for step, value in raw.items():
        sums, mass = 0.5 * sums + 0.5 * value, 0.5 * mass + 0.5
        wanted[step] = sums / mass
    assert data(page, "Tokens per episode")["played"] == near(wanted)
    measured = card(page, "Tokens per episode").get_by_role("button", name="played")
    expect(measured.locator(".legend-value")).to_have_text(f"{raw[max(raw)]:.3g}")
    smooth = picture(page, "Tokens per episode")
    page.get_by_label("Smoothing 0.50").fill("0")
    expect(page.get_by_label("Smoothing off")).to_be_visible()
    assert data(page, "Tokens per episode")["played"] == near(raw)
    redrawn(page, "Tokens per episode", smooth)


def test_axes_in_logarithms_have_decades_and_no_step_zero(look):
    page = look("runs/roc-0")
    page.evaluate(_HEAR)
    plain = picture(page, "Success")
    page.get_by_label("Log steps", exact=True).check()
    steps = redrawn(page, "Success", plain)
    assert {text for text in signs(page, "Success") if text.isdigit()} == {"1", "10"}
    page.get_by_label("Log values", exact=True).check()
    redrawn(page, "Success", steps)
    shares = [text for text in signs(page, "Success") if "%" in text]
    assert shares
    assert set(shares) <= {"0.1%", "1.0%", "10.0%", "100%"}
    assert asked(page) == {"logx": "1", "logy": "1"}
    for label in ("Log steps", "Log values"):
        page.get_by_label(label).uncheck()
    wait_for(lambda: picture(page, "Success") == plain)


def test_dragging_over_a_plot_zooms_all_and_so_do_the_fields_until_it_is_reset(look):
    page = look("runs/roc-0")
    page.evaluate(_HEAR)
    whole = {title: picture(page, title) for title in ("Success", "Failed calls")}
    over = card(page, "Success").locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 40, steps=5)
    page.mouse.up()
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    assert asked(page) == {"from": "2", "to": "7"}
    page.mouse.move(1, 1)  # away: what is under the pointer is marked
    for title, before in whole.items():
        redrawn(page, title, before)
        steps = [int(text) for text in signs(page, title) if text.isdigit()]
        assert (min(steps), max(steps)) == (2, 7), title
    zoomed = picture(page, "Failed calls")
    page.get_by_label("To step").fill("4")
    closer = redrawn(page, "Failed calls", zoomed)
    assert asked(page) == {"from": "2", "to": "4"}
    again = look("runs/roc-0?from=2&to=4")
    assert picture(again, "Failed calls") == closer, "a link leads to the same view"
    page.get_by_role("button", name="Reset zoom").click()
    expect(page.get_by_label("From step")).to_have_value("")
    assert asked(page) == {}
    for title, before in whole.items():
        wait_for(lambda title=title, before=before: picture(page, title) == before)


def test_the_horizontal_axis_has_the_tokens_that_were_computed_until_a_step(look, runs):
    page = look("runs/roc-0?from=2&to=6")
    page.evaluate(_HEAR)
    page.get_by_label("Horizontal axis").select_option(label="Computed tokens")
    expect(page.get_by_label("From token")).to_have_value("")
    assert asked(page) == {"x": "tokens"}
    used, total = {}, 0.0
    for step, tokens in figures(runs, "roc-0", "tokens/computed").items():
        total += tokens
        used[step] = round(total)
    reward = figures(runs, "roc-0", "rollout/pass_rate")
    assert data(page, "Success")["played"] == near({used[step]: value for step, value in reward.items()})
    assert "tokens" in signs(page, "Success")
    region = page.get_by_role("region", name="Data of Success")
    region.get_by_role("link", name=f"{used[3]:,}", exact=True).click()
    expect(page.get_by_role("grid", name="Episodes")).to_be_visible()
    assert asked(page) == {"split": "train", "step": "3"}


def test_seeds_are_lines_of_their_own_over_time(look, runs):
    page = look(f"{SIDE_BY_SIDE}&x=time")
    card(page, "Success").scroll_into_view_if_needed()
    expect(card(page, "Success").locator(".legend-name")).to_have_text(["roc-0", "roc-1", "grpo-0"])
    expect(page.get_by_label("Seeds", exact=True)).to_have_count(0)
    page.evaluate(_HEAR)
    before = picture(page, "Tokens per episode")
    page.get_by_label("Log seconds").check()
    redrawn(page, "Tokens per episode", before)
    assert [text for text in signs(page, "Tokens per episode") if text.endswith((" s", " min"))]


def test_events_are_marked_on_the_curves_and_named_in_their_data(look, runs):
    page = look("runs/roc-0")
    page.evaluate(_HEAR)
    page.get_by_text("Data of “Success”").click()
    rows = page.get_by_role("region", name="Data of Success", exact=True).locator("tr")
    rows.last.wait_for()
    told = {row.split("\t")[0].strip(): row.split("\t")[-1].strip() for row in rows.all_inner_texts()}
    both = {"evaluation, checkpoint", "checkpoint, evaluation"}
    assert told.pop("step") == "Events"
    assert (told["0"], told["3"]) == ("evaluation", "–")
    assert {told["4"], told["8"]} <= both
    before = picture(page, "Tokens per episode")
    page.get_by_label("Events").uncheck()
    assert asked(page) == {"events": "0"}
    redrawn(page, "Tokens per episode", before)
    assert not {"▲", "■"} & set(signs(page, "Tokens per episode"))
    before = picture(page, "Tokens per episode")
    page.get_by_label("Events").check()
    redrawn(page, "Tokens per episode", before)
    assert {"▲", "■"} <= set(signs(page, "Tokens per episode"))


def test_a_curve_is_not_drawn_twice(look, runs):
    page = look("runs/roc-0")
    assert figures(runs, "roc-0", "rollout/reward") == figures(runs, "roc-0", "rollout/pass_rate")
    expect(card(page, "Success")).to_be_visible()
    for title in ("Reward", "Reward components"):
        expect(card(page, title)).to_have_count(0)
    page = look("runs/roc-0?metric=rollout/reward")
    expect(card(page, "Reward")).to_be_visible()
    expect(card(page, "Reward")).to_be_in_viewport()


def test_seeds_are_a_mean_with_a_band_or_each_a_line(look, runs):
    page = look(SIDE_BY_SIDE)
    seeds = [figures(runs, f"roc-{seed}", "eval/pass_rate") for seed in (0, 1)]
    both = {step: [one[step] for one in seeds] for step in seeds[0]}
    shown = data(page, "Success")
    assert list(shown) == ["roc (2 seeds)", "roc (2 seeds), low", "roc (2 seeds), high", "grpo-0"]
    for edge, of in {"": mean, ", low": min, ", high": max}.items():
        assert shown[f"roc (2 seeds){edge}"] == near({step: of(values) for step, values in both.items()}), edge
    band = picture(page, "Success")
    page.get_by_label("Seeds", exact=True).select_option(label="Mean ± deviation")
    band = redrawn(page, "Success", band)
    shown = data(page, "Success")
    high = {step: mean(values) + stdev(values) for step, values in both.items()}
    assert shown["roc (2 seeds), high"] == near(high)
    page.get_by_label("Seeds", exact=True).select_option(label="Each run")
    redrawn(page, "Success", band)
    shown = data(page, "Success")
    assert list(shown) == ["roc-0", "roc-1", "grpo-0"]
    assert [shown[f"roc-{seed}"] for seed in (0, 1)] == [near(one) for one in seeds]
    card(page, "Success").get_by_label("Metric", exact=True).select_option(label="played")
    wanted = near(figures(runs, "grpo-0", "rollout/pass_rate"))
    expect(page.get_by_role("region", name="Data of Success").locator("tbody tr")).to_have_count(len(wanted))
    assert data(page, "Success")["grpo-0"] == wanted


def test_a_click_on_a_plot_opens_the_episodes_of_that_step(look, runs):
    page = look("runs/roc-0")
    over = card(page, "Success").locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.click(box["x"] + 3 / 8 * box["width"], box["y"] + 30)  # of steps 0 to 8
    expect(page.get_by_role("grid", name="Episodes")).to_be_visible()
    assert asked(page) == {"split": "train", "step": "3"}
    found = len(read_run(runs / "roc-0").episodes(3))
    expect(page.locator(".table-count")).to_have_text(f"{found} episodes found")
    page = look("runs/roc-0")
    data(page, "Success")
    page.get_by_role("region", name="Data of Success").get_by_role("link", name="0", exact=True).click()
    expect(page.get_by_role("grid", name="Episodes")).to_be_visible()
    assert asked(page) == {"split": "eval", "step": "0"}


def test_a_click_on_the_plot_of_a_problem_or_of_groups_opens_that_step(look):
    page = look("runs/roc-0/problems/made-0001?split=train")
    data(page, "Success by step")
    first = page.get_by_role("region", name="Data of Success by step").get_by_role("link").first
    step = first.inner_text()
    first.click()
    expect(page.get_by_role("grid", name="Episodes")).to_be_visible()
    assert asked(page) == {"split": "train", "problem": "made-0001", "step": step}
    page = look("runs/curriculum/sampler")
    data(page, "Groups by outcome")
    page.get_by_role("region", name="Data of Groups by outcome").get_by_role("link", name="3", exact=True).click()
    expect(page.get_by_role("grid", name="Groups")).to_be_visible()
    assert asked(page) == {"step": "3"}


def test_failed_calls_are_shown_alone_the_most_frequent_first_and_lead_to_their_episodes(look, runs):
    page = look("runs/roc-0")
    statuses = Counter(
        str(status)
        for step in read_run(runs / "roc-0").steps
        for entry in read_run(runs / "roc-0").episodes(step)
        for status in entry.episode.statuses
        if status.is_error
    )
    ranked = [name for name, _ in statuses.most_common()]
    expect(card(page, "Failed calls by status").locator(".legend-name")).to_have_text(ranked)
    answers = page.get_by_role("region", name="Answers")
    answers.get_by_role("link", name=ranked[1], exact=True).click()
    expect(page.get_by_label("Status of a call")).to_have_value(ranked[1])
    assert asked(page) == {"split": "train", "status": ranked[1]}


def test_a_section_of_plots_folds(look):
    page = look("runs/roc-0")
    expect(card(page, "Failed calls")).to_be_visible()
    for shown in (False, True):
        page.get_by_role("heading", name="Tools", exact=True).click()
        expect(card(page, "Failed calls")).to_be_visible(visible=shown)
        expect(card(page, "Success")).to_be_visible()


def test_a_double_click_resets_the_zoom_and_opens_nothing(look):
    page = look("runs/roc-0?from=2&to=6")
    over = card(page, "Success").locator(".u-over")
    over.scroll_into_view_if_needed()
    over.dblclick()
    expect(page.get_by_label("From step")).to_have_value("")
    over.dblclick()  # of a plot that is not zoomed, and therefore not drawn again
    page.wait_for_timeout(600)  # longer than a single click waits for a second one
    assert "episodes" not in page.url


def test_a_legend_turns_its_line_off_and_on(look):
    page = look("runs/roc-0")
    before, labels = picture(page, "Failed calls"), list(data(page, "Failed calls"))
    button = card(page, "Failed calls").get_by_role("button", name="correct episodes")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    redrawn(page, "Failed calls", before)
    assert list(data(page, "Failed calls")) == [label for label in labels if label != "correct episodes"]
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert list(data(page, "Failed calls")) == labels


def test_options_in_which_two_recipes_differ_are_told_side_by_side(look, runs):
    page = look("overview?runs=roc-0,grpo-0")
    table = page.get_by_role("region", name="Options that differ")
    expect(table.get_by_role("columnheader")).to_have_text(["Option", "roc-0", "grpo-0"])
    few = table.locator("tbody tr").count()
    table.get_by_role("button", name=re.compile(r"^Show all \d+ options$")).click()
    expect(table.get_by_role("button")).to_have_count(0)
    rows = [row.split("\t") for row in table.locator("tbody tr").all_inner_texts()]
    assert few < len(rows), "few options at first, so that the curves are not far below"
    told = {name.strip(): (one.strip(), other.strip()) for name, one, other in rows}
    a, b = (read_run(runs / run).config["parts"]["selector"] for run in ("roc-0", "grpo-0"))
    differ = {name for name in a | b if a.get(name) != b.get(name)}
    assert set(told) == {"trainer", *(f"parts.selector.{name}" for name in differ)}
    assert told["trainer"] == ("grpo_roc", "grpo_clip_higher")
    assert told["parts.selector.name"] == ("roc", "all")
    assert told["parts.selector.minimum"] == (str(a["minimum"]), "–")
    expect(table).to_contain_text("–: this run records no value of the option.")
    page = look(f"{SIDE_BY_SIDE}&left=roc-0&right=roc-1")
    page.get_by_role("heading", name="Differences between recipes").click()
    rows = page.get_by_role("region", name="Options that differ").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("run.seed")
    expect(page.get_by_text("records no value")).to_have_count(0)


def test_events_of_several_runs_are_marked_in_their_colours_and_named_with_their_runs(look):
    page = look(f"{SIDE_BY_SIDE}&seeds=each")
    page.get_by_text("Data of “Success”").click()
    rows = page.get_by_role("region", name="Data of Success", exact=True).locator("tr")
    rows.last.wait_for()
    told = {row.split("\t")[0].strip(): row.split("\t")[-1].strip() for row in rows.all_inner_texts()}
    assert [part.split(": ")[0] for part in told["4"].split("; ")] == ["roc-0", "roc-1", "grpo-0"]
    page.evaluate(_HEAR)
    before = picture(page, "Success")
    page.get_by_label("Log values").check()
    redrawn(page, "Success", before)
    assert signs(page, "Success").count("▲") % 3 == 0
    expect(page.get_by_label("Plot settings")).to_contain_text("▲ evaluation")


def test_the_name_of_an_event_stays_on_one_line(look):
    page = look("runs/roc-0/events")
    chips = page.get_by_role("region", name="Events").locator("tbody .chip")
    heights = {text: box["height"] for text, box in ((one.inner_text(), one.bounding_box()) for one in chips.all())}
    assert {"started", "checkpoint", "evaluation"} <= {name.strip("✓!• ").strip() for name in heights}
    assert len(set(heights.values())) == 1, heights
