"""Write the table of counted words that the verifier accepts after a number: ``python tools/counted_words.py FILE``.

FILE is a JSONL file of word problems with ``question`` and ``solution`` (GSM8K's training problems). A word in lower
case is in the table if it is among the three words after a number at least four times. Numbers, units and the operators
of ``read/vocabulary.txt`` are left out, since they change the value of a number.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

from rstar2_env.verification.read.units import read_unit
from rstar2_env.verification.read.vocabulary import COUNTED_FILE, OPERATORS
from rstar2_env.verification.read.words import number

LEAST = 4
"""Least number of times that a word must follow a number."""
_AFTER_NUMBER = re.compile(r"(?<![\w.])\$?\d[\d,]*(?:\.\d+)?((?:\s+[a-z]+(?:-[a-z]+)?){1,3})")
_WORK = re.compile(r"<<.*?>>")


def counted_words(lines: list[str]) -> list[str]:
    """Return the table's words, sorted."""
    after: Counter[str] = Counter()
    for line in lines:
        problem = json.loads(line)
        text = f"{problem['question']} {_WORK.sub('', problem['solution'])}"
        after.update(word for words in _AFTER_NUMBER.findall(text) for word in words.split())
    return sorted(
        word
        for word, times in after.items()
        if times >= LEAST
        and len(word) > 2
        and not {word, *word.split("-")} & OPERATORS
        and all(number(part) is None for part in word.split("-"))
        and read_unit(word) is None
    )


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the problems")
    words = counted_words(parser.parse_args().file.read_text(encoding="utf-8").strip().split("\n"))
    COUNTED_FILE.write_text("\n".join(words) + "\n", encoding="utf-8")
    print(f"{len(words)} words are in {COUNTED_FILE}.")


if __name__ == "__main__":
    main()
