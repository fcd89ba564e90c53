"""``python -m rstar2_env.cli``: the command line, for an interpreter or a launcher that takes a module."""

from rstar2_env.cli import main

if __name__ == "__main__":
    main()
