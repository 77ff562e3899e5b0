"""An epoch of PPO on 8,000 samples of a robot, by `policies.layers.product` and by the plain product, in turn.

Prints seconds of processor time. What the samples are does not matter to the clock.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from modlife.benchmarks.programs import learner_of, network_of, ppo_config
from modlife.domains.domain import DOMAINS
from modlife.learners.ppo import PPO, Batch
from modlife.policies import layers
from modlife.runtime import start_jax

SAMPLES, SEEN, ACTIONS = 8000, 77, 8
PRODUCTS: dict[str, Callable[..., jax.Array]] = {
    "plain": lambda weight, x: jnp.tensordot(weight, x, axes=1),
    "product": layers.product,
}


def some_batch() -> Batch:
    """Samples of one task."""
    rng = np.random.default_rng(0)
    sizes = ((SEEN,), (ACTIONS,), (), (), (), ())
    return Batch(*[jnp.array(rng.normal(size=(1, SAMPLES, *size)), jnp.float32) for size in sizes])


def epoch_by(product: Callable[..., jax.Array], minibatch: int) -> Callable[[], object]:
    """One epoch, compiled with a product."""
    layers.product = product
    jax.clear_caches()
    domain, batch, key = DOMAINS["robot"], some_batch(), jax.random.key(0)
    config = replace(ppo_config(domain), minibatch=minibatch)
    ppo, state = learner_of(domain, network_of(domain)[1], config, 1)
    compiled = PPO.epoch.lower(ppo, state, batch, key=key).compile()
    return lambda: jax.block_until_ready(compiled(state, batch, key=key))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=12)
    given = parser.parse_args()
    start_jax()
    cases = {(size, name): epoch_by(one, size) for size in (SAMPLES, 500) for name, one in PRODUCTS.items()}
    times: dict[tuple[int, str], list[float]] = {case: [] for case in cases}
    for number in range(1 + given.repeats):
        for case, run in cases.items():
            begun = time.process_time()
            run()
            times[case] += [time.process_time() - begun] if number else []
    for (size, name), each in times.items():
        found = {"best": round(min(each), 4), "median": round(statistics.median(each), 4)}
        print(json.dumps({"minibatch": size, "product": name, **found}))
