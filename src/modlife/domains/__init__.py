"""What is asked of an agent: problem graphs, curricula and environments."""
