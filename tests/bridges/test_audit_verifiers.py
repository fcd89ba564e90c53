"""``rstar2 audit`` of tasksets and functions of verifiers, and of servers of NeMo Gym by their schema."""

from __future__ import annotations

import json
import os

import pytest
from openai.types.responses import Response
from served_app import served
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from rstar2_env.evaluation.audit import audit
from rstar2_env.evaluation.audit.process import AuditCall, GraderProcess
from rstar2_env.evaluation.audit.targets.resolve import resolve_target

TASKSET = """
import verifiers.v1 as vf


class Data(vf.TaskData):
    answer: str = ""


class Sum(vf.Task[Data]):
    @vf.reward(weight=1.0)
    async def right(self, trace) -> float:
        said = (trace.last_reply or "").strip()
        return float({rule})


class Sums(vf.Taskset[Sum, vf.TasksetConfig]):
    def load(self):
        for number in range(2, 8):
            yield Sum(Data(prompt=f"What is {{number}} + {{number}}?", answer=str(2 * number)), self.config.task)


__all__ = ["Sums"]
"""
RULES = {"sound": "said == self.data.answer", "faulty": "self.data.answer in said"}


@pytest.fixture(scope="module", autouse=True)
def tasksets(tmp_path_factory):
    """Modules of tasksets that differ in their rule, on the path of every process."""
    folder = tmp_path_factory.mktemp("tasksets")
    for name, rule in RULES.items():
        (folder / f"sums_{name}.py").write_text(TASKSET.format(rule=rule))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        yield


def test_a_taskset_that_pays_its_answer_within_a_text_is_found():
    report = audit("verifiers:sums_faulty", timeout_s=1)
    assert report.kind == "a taskset of verifiers"
    assert report.versions["verifiers"].startswith("0.4")
    assert report.of("paid"), report.causes


def test_a_taskset_that_compares_the_whole_answer_is_not_accused():
    report = audit("verifiers:sums_sound", timeout_s=4)
    assert report.findings == []
    assert report.score.value == 1.0


def test_their_stock_function_gets_the_gold_as_its_answer(tmp_path):
    target = resolve_target("verifiers.v1:verify_boxed_math_answer")
    assert target.versions["verifiers"].startswith("0.4")
    calls = [AuditCall("5", "\\boxed{5}"), AuditCall("5", "\\boxed{6}"), AuditCall("\\boxed{5}", "5")]
    with GraderProcess(target.setup, tmp_path, grade_timeout_s=60.0) as process:
        assert [grade.score for grade in process.grade(calls)] == [1.0, 0.0, 0.0]


def verifying(rule):
    """A server with ``/verify`` of NeMo Gym's schema."""

    async def verify(request):
        row = await request.json()
        said = Response.model_validate(row["response"]).output_text.strip()
        return JSONResponse({**row, "reward": float(rule(row["expected_answer"], said))})

    return served(Starlette(routes=[Route("/verify", verify, methods=["POST"])]))


@pytest.mark.parametrize(
    ("rule", "accused"), [(lambda gold, said: said == gold, False), (lambda gold, said: said.startswith(gold), True)]
)
def test_a_server_of_nemo_gym_is_audited_over_its_rows(rule, accused, tmp_path):
    rows = [{"responses_create_params": {"input": f"{n} + {n}?"}, "expected_answer": str(2 * n)} for n in range(2, 8)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with verifying(rule) as url:
        report = audit(f"nemo-gym:{tmp_path}/rows.jsonl@{url}", timeout_s=4)
    assert report.kind == "a server of NeMo Gym"
    assert bool(report.of("paid")) is accused, report.findings
