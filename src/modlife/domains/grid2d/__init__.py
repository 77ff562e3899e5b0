"""The discrete 2-D world of the paper (Appendix B.1), in JAX.

`world` says which world and which tasks, `environment` holds its rules (reset, step, observe), `vision` what an agent
can see, `pictures` draws it, `gym` is its Gymnasium face, `farama` the same tasks on Farama's minigrid.
"""
