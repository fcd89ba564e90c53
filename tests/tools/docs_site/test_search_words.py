"""The script of the search drops the words that the theme's index does not have, and adds other forms of the others."""

import json
import re
import shutil
import subprocess

import material
import pytest
import search_words


def test_the_list_is_that_of_the_theme_and_the_words_of_a_wish():
    words = search_words.stop_words()
    assert {"a", "how", "what", "the", "my"} <= set(words)
    assert not {"train", "resume", "model", "entropy"} & set(words)
    assert json.loads(re.search(r"new Set\((.*)\)", search_words.script())[1]) == [*words, "use", "using", "need"]


def test_a_theme_without_the_list_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(material, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(LookupError, match="list of stop words"):
        search_words.stop_words()
    with pytest.raises(LookupError, match="lunr's stemmer"):
        search_words.stemmer()


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_other_forms_of_a_word_are_searched_with_less_weight():
    asked = {
        "How do I resume killed": "resume*^3 resum*^1 killed*^3 kill*^1",
        "exporting weights": "exporting*^3 export*^1 weights*^3 weight*^1",
        "Libraries policy": "Libraries*^3 Librar*^1 policy*^3 polic*^1",
        "evaluati evaluation": "evaluati*^4 evaluation*^3 evalu*^1",
        "used rating runs multi the": "used*^4 rating*^4 runs*^3 run*^1 multi*^4 the*^4",
        "ppo_clip pass@k, code-judge run.held_out(20)": (
            "ppo_clip*^4 pass@k*^4 code*^4 judge*^3 judg*^1 run*^4 held_out*^4 20*^4"
        ),
        "Which model is it for training?; @k ?": "model*^4 training*^3 train*^1 @k*^4",
        '+must -not "grad norm"': '+must -not "grad norm"',
    }
    program = (
        "globalThis.Worker = class { postMessage(message) { console.log(message.data); } };"
        f"{search_words.script()}for (const data of {json.dumps(list(asked))})"
        "new Worker().postMessage({ type: 2, data });"
    )
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(asked.values())
