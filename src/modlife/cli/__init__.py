"""The command line: `main` finds the command, one file per command does it."""
