"""Conversations for a cold start that does not reason: tool use, instruction following, chat.

One file for each form in which data sets write conversations; ``catalog`` names the sets, ``mixture`` mixes them.
"""

from __future__ import annotations

from rstar2_env.traces.conversations.catalog import CONVERSATION_SETS, ConversationSet
from rstar2_env.traces.conversations.mixture import Mixture, mix_conversations

__all__ = ["CONVERSATION_SETS", "ConversationSet", "Mixture", "mix_conversations"]
