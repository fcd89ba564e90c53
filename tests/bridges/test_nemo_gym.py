"""NeMo Gym's Gymnasium servers by their published schema: its package needs Python 3.12, so none of its code runs here.

What is fixed here is what ``resources_servers/gymnasium/base.py`` and ``responses_api_agents/gymnasium_agent/app.py``
of NVIDIA-NeMo/Gym have at 07d6b0d: paths, fields, cookies, and the Responses API's types, which are ``openai``'s own.
"""

from __future__ import annotations

import http.cookiejar
import json
import urllib.error
import urllib.request

import pytest
import uvicorn
from bridged import SCRIPTS, SUMS, answer, direct
from openai.types.responses import Response
from page_blocks import fenced
from places import DOCS
from served_app import served
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from rstar2_env.adapters.nemo_gym import NemoGymEnv, make_app, response, rows
from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.testing import check_text_env

ROW = {"responses_create_params": {"input": []}, "seed": 4, "problem_id": "p3"}


@pytest.fixture(scope="module")
def ours():
    with served(make_app(SUMS)) as url:
        yield url


class Agent:
    """Asks a server as ``gymnasium_agent`` does: the row and the response in every body, the cookies kept."""

    def __init__(self, url):
        self.url = url
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def post(self, path, body):
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), method="POST")
        with self.opener.open(request, timeout=60) as reply:
            return json.load(reply)

    def run(self, row, turns):
        trace = [self.post("/reset", row)]
        for turn in turns:
            said = turn if isinstance(turn, dict) else response(turn)
            trace.append(self.post("/step", row | {"response": said}))
            if trace[-1]["terminated"] or trace[-1]["truncated"]:
                break
        return trace


@pytest.mark.parametrize("name", ["right", "wrong", "malformed", "no answer", "turns"])
def test_an_episode_of_ours_is_the_one_that_is_played_directly(ours, name):
    (first, asked), *steps = direct(SUMS, 4, SCRIPTS[name], "p3")
    told, *made = Agent(ours).run(ROW, SCRIPTS[name])
    assert told == {"observation": first, "info": {**asked, "supports_explicit_close": True}}
    fields = ("observation", "reward", "terminated", "truncated", "info")
    assert made == [dict(zip(fields, [step[0] or None, *step[1:]], strict=True)) for step in steps]


def test_what_a_turn_is_sent_as_is_a_response_of_the_responses_api():
    read = Response.model_validate(response("So: 6"))
    assert read.output_text == "So: 6"


def native(*calls):
    """A response of function calls."""
    items = [
        {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": name, "arguments": arguments}
        for n, (name, arguments) in enumerate(calls)
    ]
    made = {**response("I call."), "output": [*response("I call.")["output"], *items]}
    assert len(Response.model_validate(made).output) == 1 + len(calls)
    return made


def test_function_calls_are_calls_with_statuses_and_outputs_of_their_own(ours):
    turns = [
        native(("say", '{"word": "hello"}'), ("say", '{"word": "exception"}')),
        native(("say", '{"word": '), ("shout", "{}")),
        answer("6"),
    ]
    _, first, second, last = Agent(ours).run(ROW, turns)
    assert first["observation"] is None
    assert [call["status"] for call in first["info"]["tool_calls"]] == ["ok", "exception"]
    outputs = first["info"]["tool_outputs"]
    assert [(one["call_id"], one["output"]) for one in outputs] == [("c0", "hello"), ("c1", "stub: exception")]
    assert [call["status"] for call in second["info"]["tool_calls"]] == ["malformed", "unknown_tool"]
    assert (last["reward"], last["terminated"], last["info"]["tool_errors"]) == (1.0, True, 3)


def refused(agent, path, body):
    with pytest.raises(urllib.error.HTTPError) as caught:
        agent.post(path, body)
    return caught.value.code, json.loads(caught.value.read())["detail"]


def test_what_counts_for_nothing_and_what_is_wrong_is_an_error_of_http(ours):
    agent = Agent(ours)
    assert refused(agent, "/step", ROW | {"response": response("hm")})[0] == 409
    code, said = refused(agent, "/reset", {"responses_create_params": {"input": []}})
    assert (code, "problem_id" in said) == (422, True)
    agent.run(ROW, SCRIPTS["unavailable"][:1])
    code, said = refused(agent, "/step", ROW | {"response": response(SCRIPTS["unavailable"][1])})
    assert (code, "not available" in said) == (503, True)
    assert refused(agent, "/step", ROW | {"response": response("hm")})[0] == 409


def test_the_session_that_is_idle_the_longest_gives_way_and_a_closed_one_is_gone():
    with served(make_app(SUMS, sessions=2)) as url:
        agents = [Agent(url) for _ in range(3)]
        for agent in agents:
            agent.run(ROW, ())
        assert refused(agents[0], "/step", ROW | {"response": response("hm")})[0] == 409
        agents[1].post("/close", {})
        assert refused(agents[1], "/step", ROW | {"response": response("hm")})[0] == 409
        assert agents[2].run(ROW, SCRIPTS["right"])[-1]["reward"] == 1.0
        means = agents[0].post("/aggregate_metrics", {"verify_responses": [{"reward": 1.0}, {"reward": 0.5}]})
    assert means["key_metrics"] == {"mean/reward": 0.75}


def test_the_page_on_bridges_shows_what_works(monkeypatch):
    (block,) = [block for block in fenced(DOCS / "bridge-environments.md") if "make_app(" in block.text]
    given = []
    monkeypatch.setattr(uvicorn, "run", lambda app, port: given.append((app, port)))
    exec(block.text, {})
    ((app, port),) = given
    assert port == 8001
    with served(app) as url:
        (row,) = rows("rstar2/MathTool-v0", 1, agent="my_gymnasium_agent")
        assert "Problem:" in Agent(url).run(row, ())[0]["observation"]


def test_the_rows_name_what_to_play(ours):
    made = rows(SUMS, 3, agent="rstar2_agent", native=True)
    (tool,) = made[0]["responses_create_params"]["tools"]
    assert (tool["type"], tool["name"], tool["parameters"]["required"]) == ("function", "say", ["word"])
    told = rows(SUMS, 3, agent="rstar2_agent")
    assert told[0]["responses_create_params"]["input"][0]["role"] == "system"
    for row in told:
        assert row["agent_ref"] == {"type": "responses_api_agents", "name": "rstar2_agent"}
        expected = direct(SUMS, row["seed"], (), row["problem_id"])[0][0]
        assert Agent(ours).run(row, ())[0]["observation"] == expected


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_episode_of_ours_comes_back_through_the_server(ours, name):
    env = NemoGymEnv(url=ours, rows=[ROW])
    text, info = env.reset(seed=0)
    (first, _), *steps = direct(SUMS, 4, SCRIPTS[name], "p3")
    assert text == first
    for turn, step in zip(SCRIPTS[name], steps, strict=False):
        text, reward, terminated, truncated, info = env.step(turn)
        assert [text, reward, terminated, truncated] == step[:4]
        if info.get("end") != "unavailable":
            assert info == step[4]
    env.close()
    assert info["end"] == step[4]["end"]


def counting():
    """A server as ``example_multi_turn_gymnasium`` of NeMo Gym is one: follow-ups of the row, then a substring."""
    turns = {}

    async def reset(request):
        session = str(len(turns))
        turns[session] = 0
        reply = JSONResponse({"observation": None, "info": {}})
        reply.set_cookie("session", session)
        return reply

    async def step(request):
        body = await request.json()
        said = Response.model_validate(body["response"]).output_text
        session = request.cookies["session"]
        follow = body.get("follow_ups", [])
        if turns[session] < len(follow):
            turns[session] += 1
            told = {"observation": follow[turns[session] - 1], "reward": 0.0, "terminated": False}
        else:
            told = {"observation": None, "reward": float(body["expected_answer"] in said), "terminated": True}
        return JSONResponse(told | {"truncated": False, "info": {}})

    return Starlette(routes=[Route("/reset", reset, methods=["POST"]), Route("/step", step, methods=["POST"])])


THEIRS = [
    {
        "responses_create_params": {
            "input": [
                {"role": "developer", "content": "Be short."},
                {"role": "user", "content": "The capital of France?"},
            ]
        },
        "follow_ups": ["How many live there?", "Name a landmark."],
        "expected_answer": "Eiffel",
    }
]


def test_a_server_of_theirs_is_an_environment_of_ours():
    with served(counting()) as url:
        env = NemoGymEnv(url=url, rows=THEIRS)
        text, info = env.reset(seed=1)
        assert (text, info["system"]) == ("The capital of France?", "Be short.")
        assert env.step("Paris")[0] == "How many live there?"
        assert env.step("Two million")[0] == "Name a landmark."
        text, reward, terminated, truncated, info = env.step("The Eiffel Tower")
        assert (text, reward, terminated, truncated, info["correct"]) == ("", 1.0, True, False, True)
        assert len(check_text_env(lambda: NemoGymEnv(url=url, rows=THEIRS), actions=["Eiffel"])) == 10
    with pytest.raises(ServiceError, match="did not answer"):
        env.reset(seed=1)


def test_rows_that_are_none_are_refused():
    with pytest.raises(ConfigurationError, match="responses_create_params"):
        NemoGymEnv(url="http://127.0.0.1:1", rows=[{"prompt": []}])
