"""How one task, or a group of tasks at once, is learnt."""
