"""The robot domain of the paper (Appendix B.2): four arms lift four objects past three obstacles, on MuJoCo.

`world` says which tasks; `scene` writes their MuJoCo scenes from the data beside it; `control` and `control_numba` run
the joint controller inside the physics; `physics` steps batches of episodes on the host; `rewards` has observations and
rewards; `environment` gives it all to learners as pure functions; `gym` to everyone else. Only `world` can be imported
without the `robot` extra.
"""
