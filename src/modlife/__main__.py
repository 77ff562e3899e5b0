"""`python -m modlife` is the command `modlife`."""

from modlife_command import main

if __name__ == "__main__":
    main()
