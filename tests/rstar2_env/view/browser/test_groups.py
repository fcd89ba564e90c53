"""Groups, the sampler, problems, and two runs beside each other, as the browser shows them."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

from made_evaluations import write_counts
from playwright.sync_api import expect

from rstar2_env.core.run_folder import read_run
from rstar2_env.rewards.roc_penalty import penalty


def numbers(locator):
    """The texts of cells."""
    return [one.strip() for one in locator.all_inner_texts()]


def test_every_group_of_a_run_is_there_and_the_rejected_ones_are_told(look, runs):
    run = read_run(runs / "roc-0")
    groups = [group for step in run.steps for group in run.groups(step)]
    rejected = [group for group in groups if not any(entry.kept for entry in group)]
    page = look("runs/roc-0/groups")
    expect(page.get_by_role("grid", name="Groups")).to_have_attribute("aria-rowcount", str(len(groups) + 1))
    page.locator("form").get_by_label("Groups", exact=True).select_option(label="rejected")
    expect(page.get_by_role("grid", name="Groups")).to_have_attribute("aria-rowcount", str(len(rejected) + 1))
    rows = page.locator(".table-body [role=row]")
    assert 0 < rows.count() <= len(rejected)
    assert all("rejected" in text and "equal" in text for text in rows.all_inner_texts())
    assert "rejected=1" in page.url


def test_a_group_tells_who_was_kept_who_was_dropped_and_by_which_numbers(look, runs):
    run = read_run(runs / "roc-0")
    group = next(one for one in run.groups(2) if 2 <= sum(entry.kept for entry in one) < len(one))
    number = group[0].episode.group
    page = look(f"runs/roc-0/groups/2/{number}")
    rows = page.get_by_role("region", name="Episodes of the group").locator("tbody tr")
    assert rows.count() == len(group)
    heads = numbers(page.get_by_role("region", name="Episodes of the group").locator("thead th"))
    at = heads.index("Penalty") if "Penalty" in heads else None
    for row, entry in zip(rows.all(), group, strict=True):
        text = row.inner_text()
        assert ("kept" if entry.kept else "dropped") in text
        assert entry.decision.reason in text
        if at is not None and entry.episode.available:
            assert float(numbers(row.locator("th, td"))[at]) == round(penalty(entry.episode), 3)
    expect(page.get_by_role("img", name=re.compile(r"Correct: \d+, of which \d+ kept"))).to_be_visible()
    expect(page.get_by_text(f"{len(group)} episodes were played")).to_be_visible()
    expect(page.get_by_text("Selector roc")).to_be_visible()


def test_the_picture_of_a_group_hides_no_episode_behind_another(look, runs):
    run = read_run(runs / "roc-0")

    def alike(group):
        return max(Counter((one.episode.correct, penalty(one.episode)) for one in group).values())

    group = max((group for step in run.steps for group in run.groups(step)), key=alike)
    assert alike(group) > 5
    page = look(f"runs/roc-0/groups/{group[0].step}/{group[0].episode.group}")
    signs = page.locator(".group-picture .dot .mark")
    expect(signs).to_have_count(len(group))
    boxes = [one.bounding_box() for one in signs.all()]
    middles = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]
    least = min(math.dist(one, other) for one, other in itertools.combinations(middles, 2))
    assert least > 0.6 * boxes[0]["width"]
    placed = {}  # marks are stacked, never moved along the axis: their place is their penalty
    for title, (across, _) in zip(page.locator(".group-picture .dot title").all_text_contents(), middles, strict=True):
        if not title.endswith("–"):  # an episode that was not counted has no penalty
            placed.setdefault(float(title.rpartition("penalty ")[2]), []).append(across)
    assert all(max(xs) - min(xs) < 0.5 for xs in placed.values())
    (low, *_, high), least_x, most_x = sorted(placed), min(map(min, placed.values())), max(map(max, placed.values()))
    for value, xs in placed.items():
        assert abs(xs[0] - (least_x + (value - low) / (high - low) * (most_x - least_x))) < 1


def test_one_walks_from_group_to_group_and_opens_two_episodes_side_by_side(look):
    page = look("runs/roc-0/groups/2/0")
    page.get_by_role("link", name="Next →").click()
    expect(page.get_by_role("heading", name="Step 2, group 1")).to_be_visible()
    boxes = page.get_by_role("checkbox")
    boxes.nth(0).check()
    boxes.nth(1).check()
    page.get_by_role("link", name="Open two side by side").click()
    for nth in (1, 2):
        side = page.get_by_role("region", name=f"Episode {nth}:")
        expect(side.get_by_role("list", name="Conversation")).to_be_visible()
        expect(side.get_by_text("value =").first).to_be_visible()


def test_the_sampler_shows_what_is_hard_and_how_its_curriculum_moves(look):
    page = look("runs/curriculum/sampler")
    expect(page.get_by_text("Sampler curriculum")).to_be_visible()
    for title in ("Groups by outcome", "Kinds of problems", "Sampler: level"):
        expect(page.get_by_role("region", name=title, exact=True)).to_be_visible()
    page.get_by_text("Data of “Sampler: level”").click()
    levels = page.get_by_role("region", name="Sampler: level", exact=True).locator("table td")
    assert {text for text in numbers(levels) if text} >= {"1"}
    page.get_by_text("Data of “Kinds of problems”").click()
    steps = page.get_by_role("region", name="Data of Kinds of problems").locator("tbody th")
    expect(steps).to_have_text([str(step) for step in range(1, 9)])  # it tells nothing of the step before the first
    hard = page.get_by_role("region", name="Hardest problems").locator("tbody tr")
    shares = [float(text.rstrip("%")) for text in numbers(hard.locator("td:nth-child(3)"))]
    assert shares == sorted(shares)
    assert shares[0] < 100
    page.locator("summary", has_text="After step 8").click()
    expect(page.get_by_label("State after step 8").locator("code")).to_contain_text('"level"')


def test_a_problem_has_its_success_over_time_and_its_episodes(look, runs):
    run = read_run(runs / "roc-0")
    entries = [entry for step in run.steps for entry in run.episodes(step)]
    name = entries[0].episode.problem_id
    own = [entry for entry in entries if entry.episode.problem_id == name]
    page = look("runs/roc-0/problems")
    page.get_by_role("searchbox", name="Problem").fill(name)
    expect(page.get_by_role("grid", name="Problems")).to_have_attribute("aria-rowcount", "2")
    page.get_by_role("link", name=name).click()
    page.get_by_role("heading", name=name).wait_for()
    rows = page.get_by_role("region", name="Episodes of the problem").locator("tbody tr")
    assert rows.count() == len(own)
    right = [text for text in rows.all_inner_texts() if "correct" in text]
    assert len(right) == sum(entry.episode.correct and entry.episode.available for entry in own)


def test_problems_are_filtered_by_how_often_they_were_solved_and_sorted(look):
    page = look("runs/roc-0/problems?solved=sometimes&sort=-success")
    grid = page.get_by_role("grid", name="Problems")
    bars = grid.locator(".table-body .bar .number")
    expect(bars.first).to_be_visible()
    shares = [float(text.rstrip("%")) for text in numbers(bars)]
    assert shares == sorted(shares, reverse=True)
    assert all(0 < share < 100 for share in shares)
    bars = look("runs/roc-0/problems").get_by_role("grid", name="Problems").locator(".table-body .bar .number")
    expect(bars.first).to_be_visible()
    shares = [float(text.rstrip("%")) for text in numbers(bars)]
    assert shares == sorted(shares), "the problem that is solved least comes first"


def test_two_runs_are_compared_problem_by_problem(look, runs):
    sides = [
        {
            name: sum(one.episode.correct for one in read_run(runs / run).held_out() if one.episode.problem_id == name)
            / 4
            for name in {one.episode.problem_id for one in read_run(runs / run).held_out()}
        }
        for run in ("eval-before", "eval-after")
    ]
    gained = [name for name in sides[0] if sides[1][name] > sides[0][name]]
    page = look("compare?a=eval-before&b=eval-after")
    figures = page.get_by_label("Figures of both runs")
    expect(figures).to_contain_text("95%")
    expect(figures).not_to_contain_text("after step")  # an evaluation has no steps
    before, after = (sum(side.values()) / len(side) for side in sides)
    told = re.search(r"Difference\+([\d.]+) points", figures.text_content())
    assert abs(float(told[1]) - 100 * (after - before)) <= 0.05 + 1e-9
    page.get_by_label("Change", exact=True).select_option("gained")
    grid = page.get_by_role("grid", name="Problems that occur in both runs")
    expect(grid).to_have_attribute("aria-rowcount", str(len(gained) + 1))
    assert {one.split("\n")[0] for one in numbers(grid.locator(".table-body [role=row]"))} <= set(gained)
    grid.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Two episodes").wait_for()
    both = page.get_by_role("list", name="Conversation")
    expect(both).to_have_count(2)
    asked = [re.search(r"Problem:\s*(.+)", text)[1] for text in both.all_inner_texts()]
    assert asked[0] == asked[1], "both sides are the same problem"


def test_two_steps_of_one_run_are_compared(look, runs):
    run = read_run(runs / "roc-0")
    rates = {step: [one.episode.correct for one in run.held_out(step)] for step in run.evaluated_steps}
    first, last = min(rates), max(rates)
    assert first < last
    page = look("runs/roc-0/problems?split=eval")
    page.get_by_role("link", name="Compare two steps").click()
    figures = page.get_by_label("Figures of both runs")
    for step in (first, last):
        expect(figures).to_contain_text(f"after step {step}")
        expect(figures).to_contain_text(f"{100 * sum(rates[step]) / len(rates[step]):.1f}%".replace(".0%", ""))
    assert f"a_step={first}" in page.url
    steps = page.get_by_role("group", name="Compared episodes")
    steps.get_by_label("Second step").select_option(str(first))
    expect(figures).not_to_contain_text(f"after step {last}")
    expect(page.get_by_text("choose two steps")).to_be_visible()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="roc-0").click()
    expect(page.get_by_role("region", name="Health")).to_be_visible()


def test_another_run_is_compared_at_the_last_step_of_both(look):
    page = look("compare?a=roc-0&b=roc-0&split=eval&a_step=0&b_step=8")
    page.get_by_label("Second run").select_option("roc-1")
    told = page.locator(".in-words")
    expect(told).to_contain_text("roc-1")
    expect(told).not_to_contain_text("step")
    figures = page.get_by_label("Figures of both runs")
    expect(figures.get_by_text("after step 8")).to_have_count(2)
    page.get_by_label("Step of the first run").select_option("4")
    expect(told).to_contain_text(re.compile("in roc-1 after step 8 (than|as) in roc-0 after step 4"))


def test_steps_without_an_evaluation_lead_to_those_with_one(look):
    page = look("compare?a=roc-0&b=roc-0&split=eval&a_step=3&b_step=7")
    expect(page.locator(".in-words")).to_have_text("There is no evaluation after step 3 or after step 7.")
    grid = page.get_by_role("grid", name="Problems that occur in both runs")
    expect(grid).to_contain_text("These steps share no problems in this split.")
    offered = page.get_by_label("First step").locator("option:not([disabled])")
    assert offered.all_inner_texts() == ["the last", "0", "4", "8"]
    page.get_by_role("link", name="Compare steps 4 and 8").click()
    expect(page.get_by_label("Figures of both runs")).to_contain_text("after step 4")
    page.get_by_label("Split").select_option("train")
    expect(page.get_by_label("First step")).to_have_value("1")
    expect(page.get_by_label("Second step")).to_have_value("8")


def test_changes_of_problems_with_one_sample_are_shown_with_a_caution(serve, pages, tmp_path):
    write_counts(tmp_path / "a.jsonl", {"p": (1, 1), "q": (0, 1)})
    write_counts(tmp_path / "b.jsonl", {"p": (0, 1), "q": (0, 1)})
    server = serve([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    page = pages.open(f"{server.link}#/compare?a=a&b=b")
    expect(page.get_by_role("note")).to_contain_text(
        "Problems with only one sample on a side may be gained or lost by chance"
    )
