"""What is shown of lives: their records read back, figures of the paper, tables."""
