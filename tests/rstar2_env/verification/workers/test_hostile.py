"""No text hangs the verifier, makes it grow, spoils the next call, or runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rstar2_env.verification import verify
from rstar2_env.verification.compare.equality import Rules
from rstar2_env.verification.compare.grade import grade
from rstar2_env.verification.workers.pool import set_workers, shared_pool

HOSTILE = [
    r"9^{9^{9^9}}",
    r"10^{10^{10}}",
    r"2^{10^9}",
    "9!!!!",
    r"(10^9)!",
    r"\binom{10^9}{5\cdot10^8}",
    r"\sum_{k=1}^{10^9} k",
    r"\sum_{k=1}^{10^9} \frac{1}{k}",
    r"\prod_{k=1}^{10^7} k",
    r"e^{e^{e^{e^e}}}",
    r"\sin(10^{10^6})",
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}^{1000000}",
    r"(\sin x+\cos x)^{12}\tan^{12}x",
    "{" * 2000 + "}" * 2000,
    "(" * 3000 + "1" + ")" * 3000,
    r"\{" + ",".join(map(str, range(2000))) + r"\}",
    "$ " * 20_000,
    "(" * 20 + "1" + ")" * 20,
    "(" * 23 + "x" + ")" * 23,
    "(" * 60 + "1" + ")" * 60,
    r"(10^7)!",
    "1000000!",
    "99999999999999999999!",
    r"\frac{1}{10^{10^{10}}}",
    r"7^{7^{7^{7^7}}}",
    "2**2**2**2**2**2**9",
    r"x^{10^{10}}",
    r"(x+1)^{100000}",
    r"(x+1)^{99999}(x-1)^{99999}",
    r"\sqrt{" * 20 + "2" + "}" * 20,
    r"\frac{1}{" * 22 + "x" + "}" * 22,
    "1+" * 1900 + "1",
    "x+" * 1900 + "x",
    "1" * 4000,
    "0." + "1" * 3900,
    "1/" * 1500 + "1",
    r"\int_0^{10^9} \frac{\sin(x^{x})}{x} dx",
    r"\lim_{n\to\infty} \sum_{k=1}^{n} \frac{1}{k^k}",
    r"\sum_{k=1}^{\infty} \frac{\sin(k^3)}{k!}",
    r"\binom{5000}{2500}",
    "4999!",
    r"\gcd(10^{300},7^{300})",
    r"\log_{1.0000001} 10^{400}",
    "9" * 399,
    r"e^{999999999}",
    r"\tan(10^{90000})",
    "|" * 500 + "1" + "|" * 500,
    "\\boxed{" * 3000 + "1" + "}" * 3000,
    "\\text{" * 500,
    ",".join(["x"] * 1900),
    ",".join(f"x^{{{i}}}" for i in range(400)),
    r"\pm 1" * 40,
    r"1\pm2\pm3\pm4\pm5\pm6\pm7\pm8",
    r"\{x \mid " * 15 + "x>0" + r"\}" * 15,
    r"(\sin x)^{9999}+(\cos x)^{9999}-\tan(\tan(\tan(\tan(\tan x))))",
    r"\frac{d}{dx}" * 100 + "x",
    r"((((a+b)^{99}+c)^{99}+d)^{99}+e)^{99}",
    r"1.0000001^{100000}",
    "x!!!!!!!",
    "😀" * 1000,
]

PAYLOADS = [
    "__import__('os').system('touch {path}')",
    "__import__('pathlib').Path('{path}').touch()",
    "().__class__.__base__.__subclasses__()",
    "eval(\"__import__('os').mkdir('{path}')\")",
    'exec(\'open("{path}", "w")\')',
    "open('{path}','w').write('x')",
    "lambda: open('{path}','w')",
    "\\text{{__import__('os').system('touch {path}')}}",
    "x.__class__.__init__.__globals__['os'].system('touch {path}')",
    "[open('{path}','w') for _ in [1]]",
    "$__import__('os').system('touch {path}')$",
    "\\operatorname{{__import__('os').system('touch {path}')}}",
    "\\input{{{path}}}",
    "\\write18{{touch {path}}}",
]


@pytest.fixture(scope="module")
def one_worker() -> Iterator[None]:
    set_workers(1)
    assert verify("x+1", "1+x", timeout_s=30.0).correct
    yield
    set_workers(None)


@pytest.mark.usefixtures("one_worker")
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("gold", ["7", r"\{x+1, 2\}"])
def test_a_hostile_text_costs_at_most_its_deadline_and_is_never_right(gold: str, text: str) -> None:
    start = time.perf_counter()
    assert not verify(gold, text, timeout_s=1.0).correct
    # One second; four where the machine starves the worker, and time to start another.
    assert time.perf_counter() - start < 15.0


@pytest.mark.usefixtures("one_worker")
def test_hostile_texts_leave_the_worker_lean_and_the_next_call_unaffected() -> None:
    for text in HOSTILE:
        verify("x+1", text, timeout_s=1.0)
    assert verify("x+1", "1+x", timeout_s=10.0).correct
    for pid in shared_pool().pids():
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        assert pages * os.sysconf("SC_PAGE_SIZE") < 350 << 20


@pytest.mark.parametrize("payload", PAYLOADS)
def test_code_in_an_answer_is_never_run(payload: str, tmp_path: Path) -> None:
    path = tmp_path / "ran"
    text = payload.format(path=path)
    assert not verify("4", text, timeout_s=10.0).correct
    for gold in ("x+1", text[:-1], r"\sum_{k=1}^{\infty} \frac{1}{k^2}"):
        verify(gold, text, timeout_s=10.0)
        # In this process as well, where no limit and no audit hook would stop it.
        grade(gold, text, Rules())
    assert not path.exists()
