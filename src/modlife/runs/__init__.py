"""A life on disk: its config, its run directory, checkpoints, and how it is lived into them and read back."""
