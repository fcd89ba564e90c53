"""Write the script that drops the little words of a question before the search looks for it.

The index of the search has no little words, such as "a" and "how" (lunr's list of stop words). The search looks for
each word of a question as the beginning of a word. So an "a" would find every word that begins with it, and the answer
would drown. The script drops a little word that another word follows; the last one may be the beginning of a word that
is not finished.

Words of a wish, such as "use", are in the index, but say as little in a question, and would lead to every title that
begins with them.

Covered: the list, read from the theme's own search, and the script. Not covered: the order of results
(``search_order``).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import material

_LIST = re.compile(r'generateStopWordFilter\((\["a"[^\]]*\])\)')
WISHES = ("use", "using", "need")
_SCRIPT = """\
// Drops the little words of a question, which the index does not have; see tools/docs_site/search_words.py.
(() => {
  const little = new Set(WORDS);
  const send = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...more) {
    if (message && message.type === 2 && typeof message.data === "string") {
      const words = message.data.split(/\\s+/);
      const kept = words.filter((word, at) => at === words.length - 1 || !little.has(word.toLowerCase()));
      message = { ...message, data: kept.join(" ") };
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
    folder = Path(material.__file__).parent / "templates" / "assets" / "javascripts" / "workers"
    for path in folder.glob("search.*.js"):
        if found := _LIST.search(path.read_text("utf-8")):
            words: list[str] = json.loads(found[1])
            return words
    raise LookupError(f"{folder}: expected a script search.*.js with lunr's list of stop words.")


def script() -> str:
    """Return the script, which works whether a worker or a frame runs the search."""
    return _SCRIPT.replace("WORDS", json.dumps([*stop_words(), *WISHES]))
