"""The discrete 2-D world of the paper (Appendix B.1), in JAX.

`spec` says which world and which tasks, `world` holds its rules (reset, step, observe), `vision` what an agent
can see, `render` draws it.
"""
