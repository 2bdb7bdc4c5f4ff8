"""``python -m convexlaw`` is the command line."""

from convexlaw.cli import main

if __name__ == "__main__":
    main()
