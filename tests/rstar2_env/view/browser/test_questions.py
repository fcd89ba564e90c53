"""Questions about a run, each answered in a sentence that is at most three clicks or keys from its overview."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

MOST = 3


class Reader:
    """Someone who begins at the overview of a run, and whose clicks are counted."""

    def __init__(self, page) -> None:
        self.page, self.clicks = page, 0

    def click(self, role, name, *, within=None, nth=0):
        self.clicks += 1
        (within or self.page).get_by_role(role, name=name).nth(nth).click()

    def reads(self, pattern, *, within="main"):
        expect(self.page.locator(within).first).to_contain_text(re.compile(pattern))


def worse_between_two_steps(reader):
    reader.click("link", "Compare two steps")
    reader.reads(r"Difference\s*[+−]?[\d.]+ points?\s*95%: .* to ", within="dl.figures")
    reader.reads(r"Lost\s*▼ \d+", within="dl.figures")
    reader.reads(
        r"Success is ([\d.]+ points? (higher|lower)|the same) after step 8 (than|as) after step \d.*: "
        r"\d+ problems? gained, \d+ lost\."
    )


def why_an_episode_was_dropped(reader):
    answers = reader.page.get_by_role("region", name="Answers")
    expect(answers).to_contain_text("Dropped from training")
    reader.click("link", "Episodes", within=answers)
    reader.clicks += 1
    reader.page.locator(".table-body [role=row] a").first.click()
    reader.reads(r"dropped: \w+\s*[A-Z][^.]+\.", within=".fact-box[aria-label=Selection]")


def why_the_draw_dropped_an_episode(reader):
    answers = reader.page.get_by_role("region", name="Answers")
    reader.click("link", "draw", within=answers)
    reader.clicks += 1
    reader.page.locator(".table-body [role=row] a").first.click()
    reader.reads(
        r"dropped: draw\s*The random draw kept other episodes.*The selector gave it a chance of [\d.]+%\.",
        within=".fact-box[aria-label=Selection]",
    )


def what_follows_a_failed_call(reader):
    reader.reads(r"After the first failed call of an episode: the (next call|policy|episode) \w+.*? \(\d+%\)")


def whether_it_collapses(reader):
    reader.reads(
        r"Check for collapse: entropy [\d.]+ at step 8 \([\d.]+ at step 1\), tokens per episode [\d.]+ "
        r"at step 8 \([\d.]+ at step 1\)"
    )
    reader.reads(r"Entropy\s*[\d.]+\s*✓?ok", within=".health")
    reader.reads(r"Tokens per episode\s*[\d.,]+\s*✓?ok", within=".health")
    reader.click("link", "Entropy", within=reader.page.get_by_role("region", name="Health"))
    expect(reader.page.get_by_role("region", name="Entropy", exact=True)).to_be_in_viewport()


def where_the_time_goes(reader):
    reader.reads(r"Time per step: [\d.]+ s on average \(\d+% \w+")


def which_errors_dominate(reader):
    reader.reads(r"Failed calls: [\d.]+% of [\d,]+; most frequent: \w+ [\d,]+")
    reader.click("link", re.compile("^exception$"), within=reader.page.locator(".ways p", has_text="Failed calls: "))
    reader.reads(r"[\d,]+ episodes found")
    expect(reader.page.get_by_label("Status of a call")).to_have_value("exception")


def how_two_seeds_compare(reader):
    reader.click("link", "Curves of the 2 seeds")
    expect(reader.page.get_by_label("Seeds", exact=True)).to_have_value("range")
    reader.reads(r"held out\s*[\d.]+%", within=".plot-card")
    reader.reads(
        r"roc \(2 seeds\): held-out success at step 8 is [\d.]+% on average, from [\d.]+% to [\d.]+%, so the seeds "
        r"differ by [\d.]+ points?\."
    )


def whether_there_are_signs_of_reward_hacking(reader):
    reader.reads(
        r"Check for reward hacking: [\d,]+ of [\d,]+ wrong episodes have at least the mean reward of correct ones "
        r"\(\S+\); "
        r"[\d,]+ of [\d,]+ correct episodes made no call; the reward in training changed by [+-][\d.]+ .* "
        r"and the held-out success by [+-][\d.]+ points"
    )


def whether_the_engine_drifts_from_the_trainer(reader):
    sentence = r"Engine against trainer: at step 8, the log-probability of a token differs by [\d.]+ on average"
    reader.reads(sentence)
    reader.click("link", "Plot", within=reader.page.get_by_text("Engine against trainer: at step"))
    plot = reader.page.get_by_role("region", name="Engine against trainer: log-probabilities")
    expect(plot).to_be_in_viewport()


def whether_it_answers_right_after_a_failed_call(reader):
    reader.reads(
        r"Answered immediately after a failed call: [\d,]+ of [\d,]+ episodes with a failed call, "
        r"[\d,]+ of them correct"
    )


QUESTIONS = (
    worse_between_two_steps,
    why_an_episode_was_dropped,
    why_the_draw_dropped_an_episode,
    what_follows_a_failed_call,
    whether_it_collapses,
    where_the_time_goes,
    which_errors_dominate,
    how_two_seeds_compare,
    whether_there_are_signs_of_reward_hacking,
    whether_the_engine_drifts_from_the_trainer,
    whether_it_answers_right_after_a_failed_call,
)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_a_question_is_answered_in_few_clicks(look, question):
    reader = Reader(look("runs/roc-0"))
    question(reader)
    assert reader.clicks <= MOST
