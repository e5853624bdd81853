"""``python -m trifecta``: the command line, where the script is not on the path."""

from trifecta.cli.main import main

if __name__ == "__main__":
    main()
