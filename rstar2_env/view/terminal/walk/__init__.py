"""``rstar2 view --text`` on a terminal: runs, the overview of one, its episodes and each of them, walked by keys.

What is shown, filtered, sorted and searched comes from ``Answers``, as on the page and in print. This package is the
only one that imports textual. No text of a run is read as markup: it reaches the screen as text made harmless.
"""
