"""A probe whose actions are real numbers: a point is to be set where a sign and the task say. All is known of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from modlife.domains.env import Outcome, Part, PRNGKey
from modlife.domains.graph import Continuous, Factor, ProblemGraph
from modlife.domains.graph import Part as StatePart
from modlife.learners.replay import Packing, Replay, Transition, with_finals
from modlife.policies.arm_modules import ArmModules
from modlife.policies.modular import GaussianOutput

SPREAD = -1.0
MODULES = ArmModules((SPREAD,))


class SteerState(eqx.Module):
    task: Int[Array, " 2"]
    sign: Float[Array, ""]
    time: Int[Array, ""]


@dataclass(frozen=True)
class Steer:
    """Pays 1 - (a - place)², where the place is half the sign, turned or not; cut off after four steps."""

    horizon: int = 4

    @property
    def graph(self) -> ProblemGraph:
        factors = (
            Factor("sign", ("plain", "turned"), ("number",)),
            Factor("hand", ("one", "other"), ("number", "hand")),
        )
        return ProblemGraph("steer", factors, (StatePart("number", (1,)), StatePart("hand", (1,))), Continuous(1))

    def reset(self, task: Int[Array, " 2"], *, key: PRNGKey) -> SteerState:
        return SteerState(task.astype(jnp.int32), jax.random.rademacher(key, (), jnp.float32), jnp.int32(0))

    def restart(self, state: SteerState, *, key: PRNGKey) -> SteerState:
        return self.reset(state.task, key=key)

    def step(self, state: SteerState, action: Float[Array, " 1"]) -> tuple[SteerState, Outcome]:
        place = jnp.where(state.task[0] == 0, 0.5, -0.5) * state.sign
        late = state.time + 1 >= self.horizon
        reward = 1 - (action[0] - place) ** 2
        after = SteerState(state.task, -state.sign, state.time + 1)
        return after, Outcome(reward, jnp.zeros_like(late), late, reward > 0.9)

    def observe(self, state: SteerState) -> Float[Array, " 2"]:
        return jnp.stack([state.sign, jnp.float32(1)])

    def parts(self, observations: Float[Array, "B 2"]) -> dict[str, Part]:
        return {"number": observations.T[:1], "hand": observations.T[1:]}


STEER = Steer()
SEEN = STEER.parts(jnp.array([[-1.0, 1.0], [1.0, 1.0]]))
"""Both signs."""


def real(output: object) -> GaussianOutput:
    assert isinstance(output, GaussianOutput)
    return output


def replay_of(mean: Sequence[float], *, times: int, envs: int = 4, seed: int = 0) -> Replay:
    """What a policy with these means, for the signs -1 and 1, did in the plain task; with what time limits cut off."""
    rng = np.random.default_rng(seed)
    sign = np.where((np.arange(times)[:, None] + np.arange(envs)) % 2, 1.0, -1.0)
    action = np.where(sign > 0, mean[1], mean[0]) + np.exp(SPREAD) * rng.normal(size=sign.shape)
    reward = 1 - (action - 0.5 * sign) ** 2
    late = np.broadcast_to((np.arange(times) % STEER.horizon == STEER.horizon - 1)[:, None], sign.shape)
    seen, after = (np.stack([one, np.ones_like(one)], axis=-1) for one in (sign, -sign))
    seen, after, action, reward = (jnp.asarray(one, jnp.float32) for one in (seen, after, action[..., None], reward))
    packing = Packing.of(STEER)
    rows = np.asarray(packing.pack(Transition(seen, action, reward, jnp.zeros(sign.shape, bool), jnp.asarray(late))))
    reached = np.asarray(packing.seen(STEER, after))
    return with_finals(rows, reached[-1], reached, late)
