"""The list of runs, the table of episodes and one episode, as the browser shows them."""

from __future__ import annotations

import csv
import re

from playwright.sync_api import expect

from rstar2_env.core.run_folder import read_run


def trained(runs, name="roc-0"):
    """Every episode of training of a run."""
    run = read_run(runs / name)
    return [entry for step in run.steps for entry in run.episodes(step)]


def count_is(page, number):
    """Wait until the table has so many rows."""
    expect(page.get_by_role("grid", name="Episodes")).to_have_attribute("aria-rowcount", str(number + 1))


def test_the_list_shows_every_run_and_leads_into_each(look, runs):
    page = look()
    names = page.locator(".run-name")
    expect(names).to_have_count(len(list(runs.iterdir())))
    page.get_by_role("link", name="roc-0", exact=True).click()
    expect(page.get_by_role("heading", name="roc-0")).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    page.go_back()
    page.get_by_label("Select roc-0").check()
    page.get_by_label("Select roc-1").check()
    page.get_by_role("button", name=re.compile("Curves side by side")).click()
    expect(page.locator("canvas").first).to_be_visible()


def test_episodes_are_filtered_as_the_folder_says(look, runs):
    entries = trained(runs)
    page = look("runs/roc-0/episodes?split=train")
    count_is(page, len(entries))
    page.get_by_label("Selection", exact=True).select_option(label="kept")
    count_is(page, sum(entry.kept for entry in entries))
    page.get_by_label("Answer", exact=True).select_option(label="correct")
    right = [entry for entry in entries if entry.kept and entry.episode.correct]
    count_is(page, len(right))
    page.get_by_label("Steps", exact=True).fill("3-5")
    wanted = [entry for entry in right if 3 <= entry.step <= 5]
    count_is(page, len(wanted))
    reward = sum(entry.episode.reward for entry in wanted) / len(wanted)
    expect(page.locator(".aggregates")).to_contain_text(f"100% correct, mean reward {reward:.3g}, ")
    words = f"attempt {max(entry.episode.turns for entry in wanted) - 1}"
    page.get_by_role("searchbox").fill(f'"{words}"')
    said = [one for one in wanted if any(words in message.content for message in one.episode.messages)]
    count_is(page, len(said))
    again = look(page.url.partition("#/")[2])
    count_is(again, len(said))


def test_a_click_on_a_head_sorts_the_whole_table(look, runs):
    tokens = [entry.episode.policy_tokens for entry in trained(runs)]
    page = look("runs/roc-0/episodes?split=train")
    heads = page.get_by_role("columnheader")
    expect(page.locator(".aggregates")).to_be_visible()
    requested = []
    page.on("request", lambda request: requested.append(request.url))
    page.get_by_role("button", name="Tokens", exact=False).first.click()
    expect(page.get_by_role("columnheader", name="Tokens")).to_have_attribute("aria-sort", "descending")
    at = [text.split()[0] for text in heads.all_inner_texts()].index("Tokens")
    cells = page.locator(f".table-body [role=row] [role=gridcell]:nth-child({at + 1})")
    expect(cells.first).to_have_text(str(max(tokens)))
    shown = [int(text.replace(",", "")) for text in cells.all_inner_texts() if text.strip()]
    assert shown == sorted(tokens, reverse=True)[: len(shown)]
    page.get_by_role("button", name="Tokens", exact=False).first.click()
    expect(cells.first).to_have_text(str(min(tokens)))
    assert any("sort=" in url for url in requested)
    assert not any("aggregates" in url for url in requested), "the same episodes in another order"


def test_episodes_that_are_still_indexed_are_not_summed_up(look):
    page = look("runs/roc-0/episodes")
    expect(page.locator(".aggregates")).to_be_visible()
    page.route("**/roc-0/episodes?*", lambda route: route.fulfill(json={**route.fetch().json(), "partial": True}))
    requested = []
    page.on("request", lambda request: requested.append(request.url))
    page.reload()
    expect(page.get_by_role("status").filter(has_text="still indexing")).to_be_visible()
    assert [url for url in requested if "aggregates" in url] == []
    page.unroute_all()
    page.get_by_label("Answer", exact=True).select_option(label="correct")
    expect(page.locator(".aggregates")).to_contain_text("100% correct")


def test_an_episode_shows_its_conversation_calls_answer_and_why_it_was_chosen(look, runs):
    entry = next(one for one in trained(runs) if one.episode.statuses and one.episode.answer and not one.kept)
    at = [one for one in trained(runs) if one.step == entry.step].index(entry)
    page = look(f"runs/roc-0/episodes/train-{entry.step}-{at}")
    told = page.get_by_role("list", name="Conversation")
    code = told.locator("pre code").first
    expect(code).to_contain_text("value =")
    expect(told.locator("pre code [class^=hl-]").first).to_be_visible()
    for status in entry.episode.statuses:
        expect(page.get_by_text(str(status), exact=False).first).to_be_visible()
    expect(page.get_by_text(f"dropped: {entry.decision.reason}").first).to_be_visible()
    expect(page.locator("dl.verdict")).to_contain_text(entry.episode.answer)
    page.get_by_role("link", name="Why? See its group").click()
    expect(page.get_by_role("heading", name=f"Step {entry.step}, group {entry.episode.group}")).to_be_visible()


def test_the_head_of_an_episode_has_its_question_without_what_all_questions_begin_with(look, runs):
    asked = trained(runs)[0].episode.messages[1].content
    shared, _, question = asked.partition("Problem: ")
    assert len(shared) > 100
    page = look("runs/roc-0/episodes/train-1-0")
    head = page.get_by_role("main").locator(".page-head .question")
    expect(head).to_have_text(question)


def test_injected_faults_are_told_apart_from_errors(look, runs):
    runs_of = {name: trained(runs, name) for name in ("roc-0", "roc-1", "grpo-0", "curriculum")}
    name, entry = next((name, one) for name, all_of in runs_of.items() for one in all_of if one.episode.injected)
    at = [one for one in runs_of[name] if one.step == entry.step].index(entry)
    page = look(f"runs/{name}/episodes/train-{entry.step}-{at}")
    expect(page.get_by_text(f"injected {entry.episode.injected[0]}").first).to_be_visible()


def test_the_filtered_table_is_summed_up_and_downloaded(look, runs, server):
    wanted = [entry for entry in trained(runs) if "exception" in map(str, entry.episode.statuses)]
    page = look("runs/roc-0/episodes?split=train&status=exception&sort=-policy_tokens")
    count_is(page, len(wanted))
    counted = [entry.episode for entry in wanted if entry.episode.available]
    right = sum(episode.correct for episode in counted) / len(counted)
    expect(page.locator(".aggregates")).to_contain_text(f"{100 * right:.1f}% correct")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    with open(waiting.value.path(), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tokens = sorted((entry.episode.policy_tokens for entry in wanted), reverse=True)
    assert [int(row["policy_tokens"]) for row in rows] == tokens
    (row,) = server.answers.episodes("roc-0", {"limit": "1"})["rows"]
    assert rows[0].keys() == row.keys()


def test_episodes_that_answered_right_after_a_failed_call_are_found(look, runs):
    def failed_last(entry):
        return bool(entry.episode.statuses) and entry.episode.statuses[-1].is_error

    wanted = [entry for entry in trained(runs) if failed_last(entry) and entry.episode.end == "answered"]
    page = look("runs/roc-0/episodes?split=train&end=answered")
    page.get_by_role("button", name="More filters").click()
    page.get_by_label("Last call", exact=True).select_option(label="any error")
    count_is(page, len(wanted))


def test_a_link_of_a_viewer_over_another_folder_opens_the_same_episode(look, pages):
    pages.expected.append("404")
    page = look("runs/somewhere-runs-roc-0/episodes/train-3-1")
    expect(page.get_by_role("list", name="Conversation")).to_be_visible()
    assert "#/runs/roc-0/episodes/train-3-1" in page.url
    page = look("overview?runs=x-roc-0,x-roc-1")
    expect(page.locator("canvas").first).to_be_visible()
    page = look("runs/0")
    expect(page.get_by_role("alert").get_by_role("link", name="Open it in grpo-0")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_the_keyboard_alone_opens_and_walks_episodes(look):
    page = look("runs/roc-0/episodes?split=train")
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 8})  # as on a busy machine
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    grid = page.get_by_role("grid", name="Episodes")
    for _ in range(60):
        page.keyboard.press("Tab")
        if grid.evaluate("node => node === document.activeElement"):
            break
    expect(grid).to_be_focused()
    for key in ("ArrowDown", "j", "End", "Home", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("list", name="Conversation")).to_be_visible()
    head = page.locator("h1")
    for key, needs, name in (("j", "Next", "train-8-2"), ("k", "Previous", "train-8-1"), ("t", "Next", "train-8-1")):
        expect(page.get_by_role("link", name=needs)).to_be_visible()  # a key without its link does nothing
        page.keyboard.press(key)
        expect(head).to_have_text(f"Episode {name}")
    expect(page).to_have_url(re.compile("tab=tokens"))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("u")
    expect(grid).to_be_visible()
