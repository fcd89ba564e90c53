"""Nobody but the page asks the viewer's server, and nothing but the page and its answers comes out of it."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import pytest
from hostile_run import write_hostile
from run_sample import write_run
from viewed import viewed

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.server import ViewOptions, ViewServer


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    base = tmp_path_factory.mktemp("open")
    write_run(base / "runs" / "run")
    with viewed(base / "runs", base=base, options=ViewOptions(port=0, names=("box.example",))) as asker:
        asker.read("run")
        yield asker


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    base = tmp_path_factory.mktemp("locked")
    write_run(base / "runs" / "run")
    options = ViewOptions.create("127.0.0.1", 0, token=True, names=("box.example",))
    with viewed(base / "runs", base=base, options=options) as asker:
        yield asker


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "box.example", "", "["])
def test_a_page_that_lets_its_name_resolve_to_this_machine_is_refused(ask, host):
    assert ask("/api/runs", Host=host).status in (400, 403)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1:1", "[::1]:1", "LOCALHOST"])
def test_names_of_this_machine_are_known(ask, host):
    assert ask("/api/runs", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
    ],
    ids=str,
)
def test_pages_of_others_are_refused(ask, headers):
    assert ask("/api/runs", **headers).status == 403


def test_the_page_itself_is_not(ask):
    own = f"127.0.0.1:{ask.port}"
    headers = {"Host": own, "Origin": f"http://{own}", "Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "cors"}
    assert ask("/api/runs", **headers).status == 200


def test_a_link_on_a_page_of_others_leads_to_the_page(ask):
    assert ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_get_is_answered(ask, method):
    reply = ask("/api/runs", method)
    assert (reply.status, reply.json["error"]) == (405, "This server is read-only and accepts only GET requests.")


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/static/../app.py",
        "//etc/passwd",
        "/app.js%00.html",
        "/api/runs/..%2f..%2fetc",
        "/api/runs/run/episodes/..%2f..%2frun.json",
        "/api/runs/run/episodes/train-1-0-rank0%2f..",
        "/index.html/..%2f..%2frun.json",
    ],
)
def test_no_path_leads_out(ask, path):
    reply = ask(path)
    assert reply.status in (400, 404)
    assert b"root:" not in reply.body


def test_every_answer_forbids_what_a_page_does_not_need(ask):
    for path in ("/", "/app.js", "/api/runs", "/nothing"):
        headers = ask(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        for name in ("base-uri", "form-action", "frame-ancestors"):
            assert f"; {name} 'none'" in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_answers_are_no_pages(ask):
    headers = ask("/api/runs").headers
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert headers["cache-control"] == "no-store"


def test_an_answer_that_no_page_could_hold_is_not_sent(ask, monkeypatch):
    monkeypatch.setattr("rstar2_env.view.server.app._MOST_ANSWER", 200)
    reply = ask("/api/runs/run/metrics")
    assert (reply.status, reply.json["error"]) == (413, "The response is too large to be sent.")


def test_a_long_address_is_refused(ask):
    assert ask("/api/runs?q=" + "x" * 9000).status in (400, 414)


@pytest.mark.parametrize(
    "query",
    ["sort=e.id;DROP", "limit=x", "step=a-b", "kept=perhaps", "status=nope", "min_reward=x", "split=a'b&sort=%22"],
)
def test_a_question_of_another_form_is_told_what_is_wrong(ask, query):
    reply = ask(f"/api/runs/run/episodes?{query}")
    assert reply.status == 400 or reply.json["total"] == 0


@pytest.mark.parametrize(
    "q", ['"', '""', "*", "NEAR(", "a AND", "x OR ) -", "body:x", "'; DROP TABLE episodes", "\x00a"]
)
def test_no_search_is_a_statement(ask, q):
    assert ask(f"/api/runs/run/episodes?q={quote(q)}").status in (200, 400)
    assert ask.json("runs/run/episodes")["total"] == 42


def test_a_token_is_asked_for_once_and_kept_in_a_cookie(locked):
    token = locked.server.link.partition("token=")[2]
    port = urlsplit(locked.server.link).port
    assert len(token) == 48
    assert locked("/").status == locked("/api/runs").status == locked("/api/runs?token=wrong").status == 401
    reply = locked(f"/?token={token}")
    assert reply.status == 200
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    shown = cookie.partition(";")[0]
    # Browsers send the cookies of all ports of a machine to each.
    assert shown == f"rstar2_view_{port}={token}"
    assert locked("/api/runs", Cookie=shown).status == 200
    assert locked("/api/runs", Cookie=shown[:-1]).status == 401
    assert "set-cookie" not in locked("/api/runs", Cookie=shown).headers
    assert token not in locked("/api/runs", Cookie=shown).body.decode()


def test_with_a_token_names_that_were_told_and_addresses_are_known(locked):
    shown = locked(f"/?token={locked.server.link.partition('token=')[2]}").headers["set-cookie"].partition(";")[0]
    found = {host: locked("/api/runs", Host=host, Cookie=shown).status for host in ("box.example", "10.0.0.1:80", "x")}
    assert found == {"box.example": 200, "10.0.0.1:80": 200, "x": 403}


@pytest.mark.parametrize("token", ["x" * 15, "x" * 15 + ";", "é" * 16])
def test_a_token_is_long_and_plain(token):
    with pytest.raises(ConfigurationError, match="at least 16 letters and digits"):
        ViewOptions(token=token)


def test_an_address_that_others_reach_has_a_token():
    assert ViewOptions.create("0.0.0.0", 0).token
    assert ViewOptions.create("127.0.0.1", 0).token is None
    with pytest.raises(ConfigurationError, match="other machines"):
        ViewOptions(host="0.0.0.0")


def test_a_hostile_run_comes_out_as_it_is_and_nothing_breaks(tmp_path):
    hostile = write_hostile(tmp_path)
    with viewed(hostile.folder, base=tmp_path) as ask:
        (row,) = ask.json("runs")["runs"]
        run = row["run"]
        assert set(run) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
        found = ask.read(run)
        assert found["episodes"]["eval"] == hostile.held_out
        assert found["episodes"]["train"] == hostile.train
        told = " ".join(found["notes"])
        for name in hostile.broken:
            if name != "train-000004.jsonl.gz":  # one that is cut short may still grow
                assert name in told
        rows = ask.json(f"runs/{run}/episodes?limit=1000")["rows"]
        for row in rows:
            answer = ask(f"/api/runs/{run}/episodes/{row['key']}")
            assert answer.status == 200, answer.body[:300]
            assert answer.headers["content-type"].startswith("application/json")
        for path in ("metrics", "sampler", "groups", "problems", "statuses?split=train"):
            assert ask(f"/api/runs/{run}/{path}").status == 200


def test_a_page_that_is_not_built_is_told_how(tmp_path):
    write_run(tmp_path / "run")
    with pytest.raises(ConfigurationError, match=r"make view.*then reinstall the package"):
        ViewServer([tmp_path / "run"], cache=tmp_path / "cache", static=tmp_path)
