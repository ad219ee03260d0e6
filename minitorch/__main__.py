"""`python -m minitorch` is the command `minitorch`."""

from minitorch.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
