"""The interactive mode of ``rstar2 view --text``: lists of runs and episodes, overviews, single episodes.

The user controls it from the keyboard. Rows, filters, sort orders and searches come from ``Answers``, as for the page
and the printed view. Only this package imports textual. Text from a run is harmless and never read as markup.
"""
