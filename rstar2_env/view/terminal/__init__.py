"""Runs and episodes in a terminal: the overview, the table of episodes, one episode as a conversation.

Everything that a model or a file says is shown as text: nothing of it can move the cursor,
colour or retitle the terminal.
"""
