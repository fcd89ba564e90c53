"""A long-lived program of the user that talks on its standard input and output, under layers of the sandbox."""
