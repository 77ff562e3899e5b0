"""Every test runs with JAX's strict rules: no silent promotion of shapes or types."""

import os

os.environ.setdefault("NPROC", "1")

import jax

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
