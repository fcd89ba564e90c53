"""Shows runs and episodes in a terminal: the overview, the table of episodes, one episode as a conversation.

Control characters in text from models and files are escaped, so that the text cannot move the cursor, or change the
colours or the title of the terminal.
"""
