"""The interactive mode of ``rstar2 view --text``: lists of runs and episodes, overviews, single episodes.

The user controls it from the keyboard. Rows, filters, sort orders and searches come from ``Answers``, as for the page
and the printed view. Only this package imports textual. Control characters in text from a run are escaped, and the text
is never read as markup.
"""
