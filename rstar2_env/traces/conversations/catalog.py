"""Sets of conversations by name: the sources of rStar2-Agent's non-reasoning cold start (arXiv 2508.20722).

Section 4.1 of the paper names the sets, but not the rows that were selected from them; the paper also had a model
rewrite some responses and prompts. ``doubts`` lists the unknown facts about each set. No data set is bundled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rstar2_env.core.episode import Message
from rstar2_env.core.errors import UnknownNameError
from rstar2_env.traces.conversations.apigen import apigen
from rstar2_env.traces.conversations.chat import input_output, messages
from rstar2_env.traces.conversations.glaive import glaive
from rstar2_env.traces.conversations.programs import programs
from rstar2_env.traces.conversations.toolace import toolace

Convert: TypeAlias = Callable[[Mapping[str, Any]], list[Message]]


@dataclass(frozen=True, slots=True)
class ConversationSet:
    """A set of conversations on the Hugging Face Hub.

    Attributes:
        name: Name of the set in a pipeline.
        title: A short description.
        hub: ``owner/name`` on the Hub.
        columns: The columns to read; a column that the set does not have is ignored.
        convert: Converts a row to messages.
        config: The configuration on the Hub, if there are several.
        split: The split on the Hub.
        licence: Licence of the set, as stated on its page.
        doubts: Conditions of use, facts that rStar2-Agent's paper does not state, and steps of that paper that are not
            done here.
    """

    name: str
    title: str
    hub: str
    columns: tuple[str, ...]
    convert: Convert
    config: str | None = None
    split: str = "train"
    licence: str = "not stated"
    doubts: str = ""


_SHAREGPT = ("conversations", "system")

CONVERSATION_SETS: Mapping[str, ConversationSet] = {
    entry.name: entry
    for entry in (
        ConversationSet(
            "toolace",
            "ToolACE: function calls over 26K interfaces; rStar2-Agent uses 11K",
            "Team-ACE/ToolACE",
            _SHAREGPT,
            toolace,
            licence="apache-2.0",
        ),
        ConversationSet(
            "apigen-mt",
            "APIGen-MT: dialogues of an airline's and a shop's agent; rStar2-Agent uses 5K",
            "Salesforce/APIGen-MT-5k",
            (*_SHAREGPT, "tools"),
            apigen,
            licence="cc-by-nc-4.0",
            doubts="Its conditions must be accepted on the Hub, and it is not for commercial use.",
        ),
        ConversationSet(
            "glaive",
            "Glaive function calling v2; rStar2-Agent uses 101K",
            "glaiveai/glaive-function-calling-v2",
            ("system", "chat"),
            glaive,
            licence="apache-2.0",
            doubts="It has more rows than rStar2-Agent uses, and the paper does not state how the rows were chosen.",
        ),
        ConversationSet(
            "magicoder",
            "Magicoder's instructions with programs, as calls of the Python tool; rStar2-Agent uses 48K",
            "ise-uiuc/Magicoder-Evol-Instruct-110K",
            ("instruction", "response"),
            programs,
            licence="apache-2.0",
            doubts="The paper of rStar2-Agent does not state which of Magicoder's sets it uses, nor how they were "
            "rewritten.",
        ),
        ConversationSet(
            "tulu-if",
            "Tulu 3's instruction following with constraints; rStar2-Agent uses 30K",
            "allenai/tulu-3-sft-personas-instruction-following",
            ("messages",),
            messages,
            licence="odc-by",
            doubts="The paper of rStar2-Agent names only Tulu 3 and instruction following; this set of Tulu 3 has the "
            "size that the paper states. In the paper, o4-mini rewrote the responses, which is not done here.",
        ),
        ConversationSet(
            "nemotron-chat",
            "Llama-Nemotron post-training data, chat; rStar2-Agent uses 27K",
            "nvidia/Llama-Nemotron-Post-Training-Dataset",
            ("input", "output", "reasoning", "system_prompt"),
            input_output,
            config="SFT",
            split="chat",
            licence="cc-by-4.0",
            doubts="For rStar2-Agent, o4-mini rewrote the prompts, which is not done here.",
        ),
    )
}
"""Every set of conversations."""


def conversation_set(name: str) -> ConversationSet:
    """Return the set of conversations with the given name.

    Raises:
        UnknownNameError: There is no such set; the message suggests the nearest name.
    """
    if name not in CONVERSATION_SETS:
        raise UnknownNameError("set of conversations", name, CONVERSATION_SETS)
    return CONVERSATION_SETS[name]
