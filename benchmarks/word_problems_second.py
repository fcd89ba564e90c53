"""Word problems with a second held-out set of sentences: ``python benchmarks/word_problems_second.py FILE [-n 500]``.

The training sentences of ``word_arithmetic`` were extended because of what a model got wrong on the test split, so that
split no longer measures unseen sentences. The sentences of word_sentences_second.json were written without a look at
those of training and test. FILE (JSONL) is for ``rstar2 eval --problems FILE``.
"""

from __future__ import annotations

import argparse
import itertools
import json
from functools import partial
from pathlib import Path

from rstar2_env.problems.procedural import ProceduralSource
from rstar2_env.problems.word_arithmetic import draw

SENTENCES = Path(__file__).with_name("word_sentences_second.json")


def second_problems(seed: int = 0) -> ProceduralSource:
    """Return the test split of ``word_arithmetic`` told with the second set of sentences."""
    sentences = json.loads(SENTENCES.read_text("utf-8"))
    told = partial(draw, split="test", least_steps=3, most_steps=5, max_number=999, sentences=sentences)
    return ProceduralSource("word_arithmetic_second", told, "test", seed)


def main() -> None:
    """Write the problems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSONL file to write")
    parser.add_argument("-n", type=int, default=500, help="number of problems")
    asked = parser.parse_args()
    with asked.file.open("w", encoding="utf-8") as file:
        for problem in itertools.islice(second_problems(), asked.n):
            row = {"id": problem.id, "question": problem.question, "answer": problem.answer}
            file.write(json.dumps(row) + "\n")
    print(f"{asked.n} problems in {asked.file}.")


if __name__ == "__main__":
    main()
