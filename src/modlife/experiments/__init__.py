"""What is shown: benchmarks, and later runs, metrics and figures."""
