"""What can be taken away from a run: policies and replay in other people's formats, metrics in their trackers."""
