"""Write the script that drops the little words of a question and adds other forms of its words before the search.

The index of the search has no little words, such as "a" and "how" (lunr's list of stop words). The search looks for
each word of a question as the beginning of a word. So an "a" would find every word that begins with it, and the answer
would drown. The script drops a little word that another word follows; the last one may be the beginning of a word that
is not finished.

Words of a wish, such as "use", are in the index, but say as little in a question, and would lead to every title that
begins with them.

The search also looks for other forms of a word: "exporting" finds, with less weight, every word that begins with
"export", and "libraries" every one that begins with "librar". These are the letters that the word shares with its stem,
of lunr's own stemmer. The words of the index stay whole: the theme has an option that stems them, but the search
suggests these words, and with stems a word that is not finished would find nothing once it is longer than its stem. A
query in lunr's own syntax, such as "+must -not", keeps its words.

Covered: the list and the stemmer, read from the theme's own search, and the script. Not covered: the order of results
(``search_order``).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import material

_LIST = re.compile(r'generateStopWordFilter\((\["a"[^\]]*\])\)')
_STEMMER = re.compile(
    r"\bt\.stemmer=(\(function\(\)\{.*?\}\)\(\)),t\.Pipeline\.registerFunction\(t\.stemmer", re.DOTALL
)
WISHES = ("use", "using", "need")
_SCRIPT = """\
// Drops the little words of a question, and adds other forms of its words; see tools/docs_site/search_words.py.
(() => {
  const little = new Set(WORDS);
  const stemmer = STEMMER;
  // A word without the signs at its end: "training?" is "training", which also begins "training;" in the index.
  const trimmed = (word) => word.replace(/[^\\p{L}\\p{N}_]+$/u, "");
  // The beginning of all forms of a word. With less than four letters it would find too much, unless it lacks only one
  // letter, as the singular of a plural does.
  const beginning = (word) => {
    const stem = stemmer({ update: (change) => change(word.toLowerCase()) });
    let end = 0;
    while (end < stem.length && stem[end] === word[end].toLowerCase()) end += 1;
    if (stem.endsWith("i") && end === stem.length && end < word.length) end -= 1;  // libraries, library
    return end > 3 || (end === 3 && word.length === 4) ? word.slice(0, end) : word;
  };
  // A word itself weighs three times as much as its other forms, and it has the same weight if it has none.
  const weighed = (word) => {
    const all = /^[a-z]+$/i.test(word) ? beginning(word) : word;
    return all === word ? `${word}*^4` : `${word}*^3 ${all}*^1`;
  };
  const send = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...more) {
    const asked = message && message.type === 2 && typeof message.data === "string";
    if (asked && !/(?:^|\\s)[+-]|["~^*]/.test(message.data)) {
      const words = message.data.split(/[\\s\\-,:!=[\\]()/]+|\\.(?!\\d)/).map(trimmed).filter(Boolean);
      const kept = words.filter((word, at) => at === words.length - 1 || !little.has(word.toLowerCase()));
      message = { ...message, data: kept.map(weighed).join(" ") };
    }
    return send.call(this, message, ...more);
  };
})();
"""


def stop_words() -> list[str]:
    """Return the words that the theme's search leaves out of its index.

    Raises:
        LookupError: The theme has no such list where it is expected.
    """
    words: list[str] = json.loads(_of_theme(_LIST, "lunr's list of stop words"))
    return words


def stemmer() -> str:
    """Return the expression of JavaScript that makes the stemmer of the theme's search.

    Raises:
        LookupError: The theme has no stemmer where it is expected.
    """
    return _of_theme(_STEMMER, "lunr's stemmer")


def script() -> str:
    """Return the script, which works whether a worker or a frame runs the search."""
    words = json.dumps([*stop_words(), *WISHES])
    return _SCRIPT.replace("WORDS", words).replace("STEMMER", stemmer())


def _of_theme(pattern: re.Pattern[str], what: str) -> str:
    """Return what the first group of a pattern matches in the script of the theme's search."""
    folder = Path(material.__file__).parent / "templates" / "assets" / "javascripts" / "workers"
    for path in folder.glob("search.*.js"):
        if found := pattern.search(path.read_text("utf-8")):
            return found[1]
    raise LookupError(f"{folder}: expected a script search.*.js with {what}.")
