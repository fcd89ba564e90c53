"""The choice of the columns of a table: which are visible, their order, and where the choice is kept."""

from __future__ import annotations

from playwright.sync_api import expect

EPISODES = "runs/roc-0/episodes?split=train"


def heads(page):
    """The names of the visible columns, in order."""
    return [text.split("▲")[0].split("▼")[0].strip() for text in page.get_by_role("columnheader").all_inner_texts()]


def opened(page):
    """The panel of the columns, opened."""
    page.locator("summary", has_text="Columns").click()
    panel = page.get_by_role("list", name="Columns of the table")
    expect(panel).to_be_visible()
    return panel


def test_columns_are_hidden_shown_moved_and_reset_by_the_keyboard_alone(look):
    page = look(EPISODES)
    page.evaluate("delete Element.prototype.moveBefore")  # as in browsers where a moved element loses the focus
    usual = heads(page)
    assert {"Episode", "Turns"} <= set(usual)
    assert "Round" not in usual
    page.locator("summary", has_text="Columns").focus()
    page.keyboard.press("Enter")
    for label in ("Turns", "Round"):
        box = page.get_by_role("checkbox", name=label, exact=True)
        box.focus()
        page.keyboard.press("Space")
        expect(box).to_be_checked(checked=label == "Round")
        expect(box).to_be_focused()
    chosen = [name for name in usual if name != "Turns"] + ["Round"]
    expect(page.get_by_role("columnheader")).to_have_count(len(chosen))
    assert heads(page) == chosen
    left, said = page.get_by_role("button", name="Move Round left"), page.get_by_role("status")
    left.focus()
    for place in (len(chosen) - 1, len(chosen) - 2):
        page.keyboard.press("Enter")
        expect(said.filter(has_text=f"Round: column {place} of {len(chosen)}")).to_be_visible()
        expect(left).to_be_focused()
    assert heads(page)[-3] == "Round"
    right = page.get_by_role("button", name="Move Round right")
    right.focus()
    page.keyboard.press("Enter")
    expect(said.filter(has_text=f"Round: column {len(chosen) - 1} of {len(chosen)}")).to_be_visible()
    expect(right).to_be_focused()
    assert heads(page)[-2] == "Round"
    page.get_by_role("button", name="Reset columns").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader")).to_have_count(len(usual))
    assert heads(page) == usual


def test_a_column_at_an_end_does_not_move_further(look):
    page = look(EPISODES)
    usual = heads(page)
    opened(page)
    for name, way in ((usual[0], "left"), (usual[-1], "right")):
        button = page.get_by_role("button", name=f"Move {name} {way}", exact=True)
        expect(button).to_have_attribute("aria-disabled", "true")
        button.focus()
        for key in ("Enter", "Space"):
            page.keyboard.press(key)
        expect(button).to_be_focused()
        assert heads(page) == usual
        assert "columns=" not in page.url, "nothing was chosen"
    page.get_by_role("button", name=f"Move {usual[0]} right", exact=True).click()
    expect(page.get_by_role("columnheader").first).to_contain_text(usual[1])
    expect(page.get_by_role("button", name=f"Move {usual[0]} left", exact=True)).to_have_attribute(
        "aria-disabled", "false"
    )


def test_a_chosen_column_has_the_values_of_the_episodes_and_rows_still_lead_to_them(look):
    page = look(f"{EPISODES}&columns=step,key,member&step=3")
    assert heads(page) == ["Step", "Episode", "Member"]
    rows = page.locator(".table-body [role=row]")
    expect(rows.first.get_by_role("gridcell").first).to_have_text("3")
    expect(rows.first.get_by_role("gridcell").last).to_have_text("0")
    page.get_by_role("button", name="Member").click()
    expect(rows.first.get_by_role("gridcell").last).not_to_have_text("0")
    expect(rows.first.get_by_role("link")).to_contain_text("train-3-")
    rows.first.get_by_role("link").click()
    expect(page.get_by_role("list", name="Conversation")).to_be_visible()


def test_a_choice_is_kept_in_the_link_and_in_the_browser(look, server):
    page = look(EPISODES)
    panel = opened(page)
    panel.get_by_role("checkbox", name="Reward", exact=True).uncheck()
    panel.get_by_role("checkbox", name="Last call", exact=True).check()
    chosen = heads(page)
    assert chosen[-1] == "Last call"
    assert "columns=key%2C" in page.url
    assert heads(look(page.url.partition("#/")[2])) == chosen, "a link shows the columns of its sender"
    assert "Last call" not in heads(look(EPISODES)), "another browser has its own choice"
    again = page.context.new_page()
    again.goto(f"{server.link}#/runs/grpo-0/episodes")
    expect(again.get_by_role("columnheader", name="Last call")).to_be_visible()
    assert heads(again) == chosen
    again.goto(f"{server.link}#/runs/roc-0/problems")
    expect(again.get_by_role("columnheader", name="Success")).to_be_visible()
    assert "Reward" not in heads(again)
    assert "Last step" in heads(again), "each table has its own choice"


def test_more_columns_than_fit_scroll_inside_the_table(look):
    page = look(EPISODES, width=390)
    narrow = heads(page)
    panel = opened(page)
    for label in ("Calls", "Selection", "Tokens", "Advantage"):
        panel.get_by_role("checkbox", name=label, exact=True).check()
    assert heads(page) == [*narrow, "Calls", "Selection", "Tokens", "Advantage"]
    grid = page.get_by_role("grid", name="Episodes")
    assert grid.evaluate("node => node.scrollWidth > node.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    head, cell = (
        page.locator(f"{part} [role=row] >> nth=0").locator("> *").last.bounding_box()
        for part in (".table-head", ".table-body")
    )
    assert head["x"] == cell["x"]
    assert head["width"] == cell["width"]
