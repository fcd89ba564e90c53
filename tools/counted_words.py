"""Write the table of counted words that the verifier accepts after a number: ``python tools/counted_words.py FILE``.

FILE is a JSONL file of word problems with ``question`` and ``solution`` (GSM8K's training problems). A word is in the
table if it comes right after a number, or after "of" in "5 pieces of gum", at least four times, and after "how many",
"number of" or "of" at least once, so that verbs and adverbs are left out. The lists below leave out function words and
words with a numeric meaning.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

from rstar2_env.verification.read.names import word_set
from rstar2_env.verification.read.units import read_unit
from rstar2_env.verification.read.vocabulary import COUNTED_FILE
from rstar2_env.verification.read.words import number

LEAST = 4
"""Least number of times that a word must come right after a number."""
_NUMBER = r"(?<![\w.])\$?\d[\d,]*(?:\.\d+)?\s+([a-z]+(?:-[a-z]+)?)"
_OF = rf"{_NUMBER.replace('(', '(?:').replace('(?:?', '(?')} of ([a-z]+)"
_NOUN = r"\b(?:how many|how much|number of|of|many)\s+(?:more\s+)?([a-z]+(?:-[a-z]+)?)"
_WORK = re.compile(r"<<.*?>>")
_FUNCTION_WORDS = word_set(
    """
    about above added adding additional after all an and any are as at back because been before below between both
    but buying by can combined complete correct down during each either else enough equal equally even every exactly
    extra few fewer for from full good had half has have he her here high him his how if in incorrect into is it its
    job just last least less like listen make many math mixed monthly more most much neither new no none normal nor
    not now of off on one only open or other others our out over per perfect regular remaining same selling senior
    she short since single smaller so some special stop such than that the their them then there these they this
    those time times to together too total trading under unless until unused up used was we were what when where
    whether which while who whole will with without worth you your
    """
)
_NUMERIC = word_set(
    """
    double doubles dozen dozens fold gross half halves percent quarter quarters score scores thrice triple twice
    tens hundreds thousands millions billions squares square cubes cube roots powers degrees turns minus plus
    periods period decimals digits fractions tenths hundredths third fourth fifth returns less fewer cheaper
    discount profit
    """
)


def counted_words(lines: list[str]) -> list[str]:
    """Return the table's words, sorted."""
    after: Counter[str] = Counter()
    nouns: Counter[str] = Counter()
    for line in lines:
        problem = json.loads(line)
        text = f"{problem['question']} {_WORK.sub('', problem['solution'])}".lower()
        after.update(re.findall(_NUMBER, text) + re.findall(_OF, text))
        nouns.update(re.findall(_NOUN, text))
    return sorted(
        word
        for word, times in after.items()
        if times >= LEAST
        and nouns[word]
        and len(word) > 2
        and not {word, *word.split("-")} & (_FUNCTION_WORDS | _NUMERIC)
        and number(word) is None
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
