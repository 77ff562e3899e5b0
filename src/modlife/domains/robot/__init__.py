"""The robot domain of the paper (Appendix B.2): four arms lift four objects past three obstacles, on MuJoCo.

`spec` says which tasks; `model` writes their MuJoCo scenes from the data beside it; `control` and `native` run the
joint controller inside the physics; `physics` steps batches of episodes on the host; `task` has observations and
rewards; `world` gives it all to learners as pure functions; `gym` to everyone else. Only `spec` can be imported
without the `robot` extra.
"""
