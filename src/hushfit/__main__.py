"""``python -m hushfit``: the command line, where the ``hushfit`` script is not on the path."""

from hushfit.cli import main

if __name__ == "__main__":
    main()
