"""An episode of training shows its answer, the right one and why it was graded so; its problem's source is a filter."""

from __future__ import annotations

from playwright.sync_api import expect

from rstar2_env.core.run_folder import read_run


def test_an_episode_of_training_shows_answer_gold_and_the_verifiers_reason(look, runs):
    entries = read_run(runs / "roc-0").episodes(1)
    number, wrong = next(
        (at, one) for at, one in enumerate(entries) if one.episode.answer is not None and not one.episode.correct
    )
    page = look(f"runs/roc-0/episodes/train-1-{number}")
    card = page.locator(".verdict")
    expect(card).to_contain_text("the answer is wrong (number)")
    expect(card).to_contain_text(wrong.more["gold"])
    expect(card).not_to_contain_text("not recorded")


def test_episodes_of_training_are_chosen_by_the_source_of_their_problem(look, runs):
    run = read_run(runs / "roc-0")
    entries = [entry for step in run.steps for entry in run.episodes(step)]
    source = entries[0].more["problem_source"]
    page = look("runs/roc-0/episodes?split=train")
    page.get_by_role("button", name="More filters").click()
    page.get_by_label("Source", exact=True).select_option(source)
    found = sum(entry.more["problem_source"] == source for entry in entries)
    assert found < len(entries)
    expect(page.get_by_role("grid", name="Episodes")).to_have_attribute("aria-rowcount", str(found + 1))
