"""Runs and episodes in a terminal: the overview, the table of episodes, one episode as a conversation.

All text from models and files is made harmless: it cannot move the cursor, or change the colours or the title of the
terminal.
"""
