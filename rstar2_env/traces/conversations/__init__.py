"""Conversations for supervised fine-tuning without reasoning: tool use, instruction following, chat.

One file for each conversation format of data sets; ``catalog`` lists the sets, ``mixture`` mixes them.
"""

from __future__ import annotations

from rstar2_env.traces.conversations.catalog import CONVERSATION_SETS, ConversationSet
from rstar2_env.traces.conversations.mixture import Mixture, mix_conversations

__all__ = ["CONVERSATION_SETS", "ConversationSet", "Mixture", "mix_conversations"]
