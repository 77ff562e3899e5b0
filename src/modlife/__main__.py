"""`python -m modlife` is the command `modlife`."""

from modlife.cli.main import main

if __name__ == "__main__":
    main()
