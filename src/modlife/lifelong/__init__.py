"""How many tasks are learnt in turn."""
