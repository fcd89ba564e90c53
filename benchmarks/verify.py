"""Compare the quality and speed of verification with math-verify: docs/verification-measured.md.

    python benchmarks/verify.py [--pairs 100000] [--json FILE] [--write]

Needs the labelled pairs of ``../shared`` for the rows that use them. math-verify runs in our workers, so that both are
timed alike and neither can hang. ``--write`` writes docs/data/verification.json and the
table of the page.

What it does not show: how often a policy's answers are of each kind; the labelled pairs are hard ones.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random
from types import ModuleType

from rstar2_env import load_problems
from rstar2_env.testing.hacks import CAUSES, Hack, echoes, hacks
from rstar2_env.verification import Reason, Verdict, verify, verify_many, verify_response
from rstar2_env.verification.api import math_verify_alone
from rstar2_env.verification.report import percentile
from rstar2_env.verification.workers.pool import set_workers, shared_pool
from rstar2_env.verification.workers.process import cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tools")]

from answer_samples import differ, latex, mutate, random_term, rewrite  # noqa: E402
from figures import write_results  # noqa: E402

SHARED = ROOT / ".." / "shared"
LONG_S = 20.0
"""Deadline where accuracy is measured: a busy machine must not cost a case."""

ITS_DEADLINE_S = 5.0
"""math-verify's own default deadline."""

Row = tuple[str, str, str]

DEBATABLE = frozenset(
    (
        *(
            "math-verify-0034",
            "math-verify-0094",
            "math-verify-0098",
            "math-verify-0100",
            "math-verify-0102",
            "math-verify-0109",
        ),
        *("math-verify-0254", "math-0330", "math-0337"),
        *("tinyv-0493", "pairs1-115", "pairs2-235"),
    )
)
"""Labels that contradict a rule: tests/rstar2_env/verification/test_cases.py argues those of its sets. The answers of
pairs1-115 (a difference) and of pairs2-235 (a root) are not computed."""


def load_test(name: str) -> ModuleType:
    """A module of the tests, for the lists that it holds."""
    path = ROOT / "tests" / "rstar2_env" / "verification" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"_benchmark_{Path(name).name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(path: Path) -> list[dict]:
    """Return the records of a JSONL file; an empty list if it does not exist."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").strip().split("\n")] if path.is_file() else []


def score(cases: list[dict], verdicts: list[Verdict]) -> str:
    """Accuracy, recall and errors of verdicts on labelled cases."""
    pairs = list(zip(cases, verdicts, strict=True))
    wrong_yes = sum(verdict.correct and not case["expected"] for case, verdict in pairs)
    wrong_no = sum(not verdict.correct and case["expected"] for case, verdict in pairs)
    positives = sum(case["expected"] for case in cases)
    times = [verdict.seconds for verdict in verdicts]
    return (
        f"accuracy {1 - (wrong_yes + wrong_no) / len(cases):.3f}, recall {1 - wrong_no / positives:.3f}, "
        f"{wrong_yes} false positives; p50 {1e3 * percentile(times, 0.5):.2f} ms, "
        f"p99 {1e3 * percentile(times, 0.99):.1f} ms, {sum(times):.2f} s in all"
    )


def answers(cases: list[dict], name: str = "labelled answers") -> Row:
    """The labelled answers, one after the other; debatable labels count, and are left out of a second accuracy."""
    cases = [case for case in cases if case.get("level", "answer") == "answer"]
    cases = [
        {"gold_answer": case.get("gold"), "pred_answer": case.get("pred", case.get("answer")), **case} for case in cases
    ]
    ours = [
        verify(case["gold_answer"], case["pred_answer"], question=case.get("question"), timeout_s=LONG_S)
        for case in cases
    ]
    theirs = [math_verify_alone(case["gold_answer"], case["pred_answer"], timeout_s=LONG_S) for case in cases]
    kept = [at for at, case in enumerate(cases) if case["id"] not in DEBATABLE and not case.get("debatable")]
    apart = sum(ours[at].correct is cases[at]["expected"] for at in kept) / len(kept)
    hacks = [at for at, case in enumerate(cases) if "hack" in str(case.get("category")) and not case["expected"]]
    paid = [
        f"; {sum(each[at].correct for at in hacks)} of {len(hacks)} hacks accepted" if hacks else ""
        for each in (theirs, ours)
    ]
    result = f"{score(cases, ours)}; {apart:.3f} without {len(cases) - len(kept)} debatable labels{paid[1]}"
    return f"{len(cases)} {name}", score(cases, theirs) + paid[0], result


_PHRASE = re.compile(r"(?<![\w.])\$?(\d[\d,]*(?:\.\d+)?)((?:\s+[A-Za-z]+(?:['-][A-Za-z]+)*){1,3})")
_WORK = re.compile(r"<<.*?>>")


def phrases(records: list[dict], count: int = 3000) -> Row:
    """Each number of the solutions with its next one to three words, as answers whose gold is the number."""
    found: list[tuple[str, str, str]] = []
    for record in records:
        for match in _PHRASE.finditer(_WORK.sub("", record["solution"])):
            number, words = match[1].rstrip(","), match[2].split()
            found += [(number, " ".join([number, *words[:at]]), record["question"]) for at in range(1, len(words) + 1)]
    found = Random(3).sample(found, min(count, len(found)))
    read = sum(verify(gold, text, question=asked, timeout_s=LONG_S).correct for gold, text, asked in found)
    alone = sum(verify(gold, text, timeout_s=LONG_S).correct for gold, text, _ in found)
    result = f"{read:,} read, {alone:,} without the question"
    return f"{len(found):,} numbers of GSM8K with the words after them", "not measured", result


def respelled_golds(golds: dict[str, list[str]]) -> Row:
    """The gold answers of other data sets, respelled."""
    shares: list[str] = []
    for name, texts in golds.items():
        pairs = [(text, respelled(text)) for text in texts]
        same = sum(verdict.correct for verdict in verify_many(pairs, timeout_s=LONG_S))
        shares.append(f"{name} {same:,} of {len(pairs):,}")
    return "golds of other data sets, respelled", "not measured", ", ".join(shares)


def languages() -> Row:
    """Short answers in the languages of MGSM, and others that are not the number."""
    module = load_test("test_languages")
    right = [("18", text) for texts in module.SAID.values() for text in texts] + module.WRITTEN
    wrong = [("18", text) for text in module.OTHERS.split(";")]

    def figures(grade: Callable[..., Verdict]) -> str:
        read = sum(grade(*pair, timeout_s=LONG_S).correct for pair in right) / len(right)
        return f"{read:.3f} accepted, {sum(grade(*pair, timeout_s=LONG_S).correct for pair in wrong)} wrong ones too"

    return (
        f"{len(right)} right and {len(wrong)} wrong short answers in eleven languages",
        figures(math_verify_alone),
        figures(verify),
    )


def new_hacks(count: int) -> Row:
    """New hacks of every cause, and the causes of which any is paid."""
    tried = list(hacks(count=count))

    def figures(grade: Callable[[Hack], Verdict]) -> str:
        tallies: dict[str, int] = {}
        for hack in tried:
            tallies[hack.cause] = tallies.get(hack.cause, 0) + grade(hack).correct
        some = ", ".join(f"{name} {paid}" for name, paid in tallies.items() if paid)
        return f"{sum(tallies.values())} accepted" + (f" ({some})" if some else "")

    theirs = figures(lambda hack: math_verify_alone(hack.gold, hack.answer, timeout_s=ITS_DEADLINE_S))
    ours = figures(lambda hack: verify(hack.gold, hack.answer, question=hack.question, timeout_s=LONG_S))
    return f"{len(tried):,} new hacks of {len(CAUSES)} causes", theirs, ours


GENERATORS = (
    *("simple_equations", "polynomial_multiplication", "polynomial_equations", "simple_integration"),
    *("intermediate_integration", "complex_arithmetic", "fraction_simplification", "decimal_arithmetic"),
    *("basic_arithmetic", "chain_sum", "gcd", "lcm", "prime_factorization", "power_function", "simple_geometry"),
)
"""Generators of Reasoning Gym whose answers are numbers or expressions."""


def procedural_records(count: int) -> list[dict]:
    """Problems of the family ``arithmetic``, asked as formulas, and of Reasoning Gym where it is installed."""
    family = load_problems("arithmetic")
    found = [(f"Compute ${problem.meta['expression']}$.", problem.answer) for problem in islice(family, count)]
    if importlib.util.find_spec("reasoning_gym") is not None:
        gym = importlib.import_module("reasoning_gym")
        each = [gym.create_dataset(name, size=count // len(GENERATORS), seed=1) for name in GENERATORS]
        found += [(item["question"], item["answer"]) for items in each for item in items]
    return [{"question": question, "answer": str(answer)} for question, answer in found]


def echo_attacks(records: list[dict], name: str = "questions of college_math") -> Row:
    """Every formula of every question in every dress; math-verify gets the last one in parentheses only."""
    tried = [(at, hack) for at, record in enumerate(records) for hack in echoes(record["question"], record["answer"])]
    paid = [
        at for at, hack in tried if verify(hack.gold, hack.answer, question=hack.question, timeout_s=LONG_S).correct
    ]
    last = {at: hack for at, hack in tried if hack.answer.startswith("(") and hack.answer.endswith(")")}
    theirs = sum(math_verify_alone(hack.gold, hack.answer, timeout_s=ITS_DEADLINE_S).correct for hack in last.values())
    result = f"{len(paid)} of {len(tried):,} accepted, in {len(set(paid))} problems"
    return f"echoes of {len(records):,} {name}", f"{theirs} questions accept one disguise", result


def whole_texts(cases: list[dict]) -> Row:
    """math-verify's own cases as whole texts, with the options that they carry."""
    cases = [case for case in cases if case["id"].startswith("math-verify") and not case.get("exempt")]

    def grade(case: dict) -> Verdict:
        options = case.get("options") or {}
        tolerance = 10.0 ** -options["precision"] if options.get("precision", 6) < 6 else None
        strict = options.get("strict", True)
        return verify_response(case["gold"], case["pred"], strict=strict, tolerance=tolerance, timeout_s=LONG_S)

    verdicts = [grade(case) for case in cases]
    wrong = [
        case["id"][-4:] for case, verdict in zip(cases, verdicts, strict=True) if verdict.correct != case["expected"]
    ]
    share = 1 - len(wrong) / len(cases)
    return (
        f"math-verify's own {len(cases)} cases, whole texts",
        ".992 (its own)",
        f"{share:.3f}; not {', '.join(wrong)}",
    )


def false_positives() -> Row:
    """The known false positives, and answers whose work is not done."""
    module = load_test("test_false_positives")
    pairs = [
        pair
        for test in (module.test_a_known_false_positive_is_refused, module.test_work_left_undone_is_no_answer)
        for mark in test.pytestmark
        for pair in mark.args[1]
    ]
    ours = sum(verify(*pair, timeout_s=LONG_S).correct for pair in pairs)
    theirs = sum(math_verify_alone(*pair, timeout_s=LONG_S).correct for pair in pairs)
    return f"{len(pairs)} known false positives", f"{theirs} accepted", f"{ours} accepted"


def rewritings(count: int) -> Row:
    """Random expressions against an equivalent rewriting and against a different one."""
    chance = Random(0)
    equal: list[tuple[str, str]] = []
    different: list[tuple[str, str]] = []
    for number in range(10 * count):
        if len(equal) >= count and len(different) >= count:
            break
        names = (("x", "y"), ("x",), ())[number % 3]
        term = random_term(chance, 3, names)
        same = rewrite(chance, term, chance.randint(1, 6))
        other = mutate(chance, same) if number % 2 else random_term(chance, 3, names)
        if len(equal) < count and differ(term, same, chance) is False:
            equal.append((latex(chance, term), latex(chance, same)))
        if len(different) < count and differ(term, other, chance):
            different.append((latex(chance, term), latex(chance, other)))
    # A rewriting of a number is work left undone: what is measured here is whether the values are found to be equal.
    refused = sum(not verdict.correct for verdict in verify_many(equal, timeout_s=LONG_S, undone="any"))
    accepted = sum(verdict.correct for verdict in verify_many(different, timeout_s=LONG_S))
    result = f"{accepted} false positives in {len(different):,}; {refused} false negatives in {len(equal):,}"
    return "random expressions, each against an equal and a different one", "not measured", result


def college(golds: list[str], neighbours: int) -> Row:
    """The gold answers of college_math against themselves, written otherwise, and against other problems'."""
    pairs = [(gold, respelled(gold)) for gold in golds]
    themselves = sum(verdict.correct for verdict in verify_many(pairs, timeout_s=LONG_S))
    theirs = sum(math_verify_alone(one, other, timeout_s=LONG_S).correct for one, other in pairs)
    chance = Random(1)
    others = [(gold, chance.choice(golds)) for gold in golds for _ in range(neighbours)]
    others = [pair for pair in others if pair[0].strip("$ ") != pair[1].strip("$ ")]
    equal = [
        pair for pair, verdict in zip(others, verify_many(others, timeout_s=LONG_S), strict=True) if verdict.correct
    ]
    for pair in equal:
        print("another problem's answer is equal:", pair, file=sys.stderr)
    result = f"{themselves / len(golds):.1%} equal themselves; {len(equal)} of {len(others):,} equal another (listed)"
    return f"{len(golds)} golds of college_math", f"{theirs / len(golds):.1%} equal themselves", result


def respelled(text: str) -> str:
    """The same answer, spelt otherwise, so that text alone does not decide."""
    inner = text.strip().strip("$") if text.count("$") == 2 else text
    return f" {inner} ".replace("\\frac", "\\dfrac").replace("\\left(", "(").replace("\\right)", ")")


def numbers() -> Row:
    """Plain numbers; math-verify with warm caches and with cold ones."""
    logging.disable(logging.CRITICAL)
    math_verify = importlib.import_module("math_verify")

    def theirs(gold: str, answer: str) -> bool:
        return bool(math_verify.verify(math_verify.parse(f"${gold}$"), math_verify.parse(f"${answer}$")))

    theirs("1", "2")
    cold = statistics.median(timed(lambda n=n: theirs(str(n), str(n + 1))) for n in range(1000, 1100))
    warm = min(timeit.repeat(lambda: theirs("1000", "1001"), number=200, repeat=5)) / 200
    ours = min(timeit.repeat(lambda: verify("12345", "12,345.0"), number=5000, repeat=5)) / 5000
    times = f"{1e3 * cold:.2f} ms cold, {1e3 * warm:.2f} ms cached"
    return "integers and plain numbers", times, f"{1e6 * ours:.1f} µs"


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def hostile() -> Row:
    """The hostile list under a deadline of one second, one worker."""
    texts = load_test("workers/test_hostile").HOSTILE
    set_workers(1)
    verify("x+1", "1+x", timeout_s=LONG_S)

    def worst(grade: Callable[[str], Verdict]) -> tuple[float, int]:
        verdicts = [grade(text) for text in texts]
        late = sum(verdict.reason is Reason.TIMEOUT for verdict in verdicts)
        return max(verdict.seconds for verdict in verdicts), late

    ours, late = worst(lambda text: verify(r"\{x+1, 2\}", text))
    memory = max([statm(pid) for pid in shared_pool().pids()], default=0.0)
    after = verify("x+1", "1+x").seconds
    theirs, their_late = worst(lambda text: math_verify_alone("7", text))
    set_workers(None)
    result = f"worst {ours:.2f} s, {late} at the deadline; worker at {memory:.0f} MB; next call {1e3 * after:.1f} ms"
    return f"{len(texts)} hostile texts, 1 s", f"worst {theirs:.2f} s, {their_late} at our deadline", result


def statm(pid: int) -> float:
    """Resident memory of a process, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def throughput(golds: list[str]) -> Row:
    """Pairs a second of one worker, on the answers of college_math against themselves and against others'."""
    pairs = [(gold, respelled(gold)) for gold in golds]
    pairs += [(gold, golds[(at + 37) % len(golds)]) for at, gold in enumerate(golds)]
    sample = pairs[:: max(1, len(pairs) // 400)]
    set_workers(1)
    verify("x+1", "1+x", timeout_s=LONG_S)
    ours = len(pairs) / worker_seconds(lambda: verify_many(pairs, timeout_s=ITS_DEADLINE_S))
    set_workers(1)
    math_verify_alone("1", "2", timeout_s=LONG_S)
    theirs = len(sample) / worker_seconds(
        lambda: [math_verify_alone(*pair, timeout_s=ITS_DEADLINE_S) for pair in sample]
    )
    set_workers(None)
    result = f"{ours:,.0f} ({ours / theirs:.0f} x)"
    return "pairs of college_math answers per second of CPU time", f"{theirs:.0f}", result


def worker_seconds(work: Callable[[], object]) -> float:
    """CPU seconds that the one worker spends on some work; a busy machine does not count."""

    def spent() -> float:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)  # workers that were replaced on the way
        return ended.ru_utime + ended.ru_stime + sum(cpu_seconds(pid) or 0.0 for pid in shared_pool().pids())

    before = spent()
    work()
    return spent() - before


def imports() -> Row:
    """Seconds until the first verdict of a fresh process."""
    ours = "from rstar2_env.verification import verify; verify('x+1', '1+x')"
    theirs = "from math_verify import parse, verify; verify(parse('$x+1$'), parse('$1+x$'))"

    def run(program: str) -> float:
        return min(timed(lambda: subprocess.run([sys.executable, "-c", program], check=True)) for _ in range(3))

    return "first symbolic verdict of a fresh process", f"{run(theirs):.2f} s", f"{run(ours):.2f} s"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000, help="random pairs of each kind")
    parser.add_argument("--neighbours", type=int, default=20, help="other problems' answers for each gold")
    parser.add_argument("--hacks", type=int, default=200, help="new hacks of each cause")
    parser.add_argument("--problems", type=int, default=500, help="procedural problems of each kind of source")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    parser.add_argument("--write", action="store_true", help="write the file of results and the table of its page")
    options = parser.parse_args()

    cases = read(SHARED / "verify" / "cases.jsonl")
    others = read(SHARED / "verify" / "cases2.jsonl")
    unseen = read(SHARED / "verify" / "cases3.jsonl")
    records = read(SHARED / "data" / "college_math.jsonl")
    problems = read(SHARED / "data" / "gsm8k_train.jsonl")
    names = ("gsm8k_train", "gsm8k_test", "aime24", "amc23")
    sets = {name: [record["answer"] for record in read(SHARED / "data" / f"{name}.jsonl")] for name in names}
    golds = [record["answer"] for record in records]
    makers: list[Callable[[], Row]] = [numbers, imports, false_positives, hostile, languages]
    makers.append(lambda: new_hacks(options.hacks))
    makers.append(lambda: echo_attacks(procedural_records(options.problems), "procedural questions"))
    if cases:
        makers += [lambda: answers(cases), lambda: whole_texts(cases)]
    if others:
        makers.append(lambda: answers(others, "pairs as models write them, and hacks"))
    if unseen:
        makers.append(lambda: answers(unseen, "pairs by cause"))
    if problems:
        makers += [lambda: phrases(problems), lambda: respelled_golds(sets)]
    if golds:
        makers.append(lambda: echo_attacks(records))
        makers += [lambda: college(golds, options.neighbours), lambda: throughput(golds)]
    makers.append(lambda: rewritings(options.pairs))
    rows: list[Row] = []
    for make in makers:
        rows.append(make())
        print(" | ".join(rows[-1]), file=sys.stderr)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}"
    table = "\n".join(
        [f"| {machine} | math-verify | rstar2_env |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    )
    print(table)
    if options.json is not None:
        options.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1))
    if options.write:
        head = (machine, "math-verify", "rstar2_env")
        write_results("verification", "python benchmarks/verify.py --write", tables={"measured": [head, *rows]})


if __name__ == "__main__":
    main()
