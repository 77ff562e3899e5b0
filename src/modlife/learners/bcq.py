"""Discrete batch-constrained Q-learning: an actor that clones the data, and a critic that stays among likely actions.

    a' = argmax of Q(s', a) over the actions with π(a|s') > τ max π(·|s')
    y  = r + discount Q'(s', a')                                     Q': the target network
    L  = w₁ (Q(s, a) - y)² - w₂ log π(a|s) + w₃ Σ logits²            mean over a batch and over tasks

Every `target_period` steps the critic is copied to the target network; its values do not change in between, so they are
computed for all rows once per copy. Fujimoto et al. 2019; Algorithm 1 of the paper.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from modlife.domains.env import PRNGKey
from modlife.domains.graph import Discrete
from modlife.errors import InputError
from modlife.learners import losses
from modlife.learners.config import BCQConfig, RealBCQConfig
from modlife.learners.offline import Consolidator, Learnt, begin, check_batch, some_steps
from modlife.learners.replay_table import Layout, Lesson, ReplayTable, Rows, gather, over_rows, put
from modlife.learners.sharding import THIRD
from modlife.policies.acting import Rule
from modlife.policies.bank import Bank, Chain
from modlife.policies.distributions import chosen, log_softmax
from modlife.policies.modular import AnyOutput, Output, tells_actions

Values = Float[Array, "task time E A"]
"""Q of the target network in each row of a table."""


class BCQState(eqx.Module):
    """The learner between two gradient steps."""

    learner: Learnt
    target: Chain
    """The modules as they were when last copied."""


@dataclass(frozen=True)
class BCQ(Consolidator):
    """All tasks that share a module, in every step."""

    layout: Layout
    config: BCQConfig
    discount: float

    def __post_init__(self) -> None:
        check_batch(self)
        self.check_actions()

    def check_actions(self) -> None:
        """Actions can be counted, and the critic tells what each is worth."""
        if not isinstance(self.layout.env.graph.actions, Discrete):
            raise InputError(
                "This batch-constrained Q-learning takes a value per action, and the actions of "
                f"'{self.layout.env.graph.name}' are real numbers: choose another way to learn offline, such as "
                "`--offline real-bcq` or `--offline bounded`."
            )
        if not tells_actions(self.layout.env.graph, self.layout.network.critic):
            raise InputError(
                "This batch-constrained Q-learning takes a value per action, and a critic of states has none: leave "
                "`--critic states` out, or give `--offline bounded --offline.td none --offline.acting actor`."
            )

    @property
    def weights(self) -> Mapping[str, float]:
        """The terms of the loss."""
        config = self.config
        return {"td": config.td_weight, "likelihood": config.likelihood_weight, "logits": config.logit_weight}

    def init(self, own: Chain) -> BCQState:
        """A learner of these modules."""
        return BCQState(begin(self, own), own)

    def modules(self, state: BCQState) -> Chain:
        """The modules as they are now."""
        return state.learner.own

    def run(
        self, bank: Bank, lessons: Sequence[Lesson], state: BCQState, *, done: int, key: PRNGKey
    ) -> Iterator[tuple[int, BCQState, Mapping[str, float] | None]]:
        """Gradient steps, the target network copied and its values computed anew when its time has come."""
        period, number, valued = self.config.target_period, done, False
        table = self.layout.fill(bank, lessons)
        for opened in self.layout.with_features(table, lessons):
            table = opened
            yield done, state, None
        values = self.layout.devices.zeros((self.layout.room, *self.layout.extent, self.actions), THIRD)
        while number < self.steps:
            if number % period == 0:
                state, valued = replace(state, target=state.learner.own), False
            if not valued:
                for task in range(int(table.count)):
                    values = jax.block_until_ready(self.valued(values, table, task, state.target))
                    yield number, state, None
                valued = True
            number, learner, means = some_steps(
                self, state.learner, table, values, number=number, most=period - number % period, key=key
            )
            state = replace(state, learner=learner)
            yield number, state, means

    @property
    def actions(self) -> int:
        """How many actions there are."""
        return self.layout.env.graph.actions.size

    def targets(self, own: Chain, rows: Rows, extra: Any) -> Any:
        """What Q of the action taken is drawn to; the extra are the target network's values."""
        config, sample, after = self.config, rows.transition, rows.after
        following = after.reader()(own)
        assert isinstance(following, Output)
        return losses.bcq_target(
            sample.reward,
            jnp.where(sample.terminated if config.bootstrap_truncated else sample.ended, 0.0, self.discount),
            log_softmax(following.logits),
            following.values,
            gather(extra, rows.task, after.index).T,
            threshold=config.threshold if config.bootstrap == "constrained" else 0.0,
        )

    def terms(self, output: AnyOutput, rows: Rows, targets: Any) -> Float[Array, " terms"]:
        """Squared error of Q, negative log-likelihood, sum of squared logits."""
        assert isinstance(output, Output)
        action = rows.transition.action
        error = chosen(output.values, action) - targets
        likelihood = chosen(log_softmax(output.logits), action)
        return jnp.stack([(error**2).mean(), -likelihood.mean(), (output.logits**2).sum(axis=0).mean()])

    def valued(self, values: Values, table: ReplayTable, task: int, target: Chain) -> Values:
        """The values with those of one task by this target network, and by the bank where no module moves."""
        pattern, number = self.layout.patterns[np.asarray(table.patterns)[task]], np.int32(task)
        chains = zip(pattern, target, table.bank.pick(np.asarray(table.structures)[task]), strict=True)
        policy = tuple(mine if moves else other for moves, mine, other in chains)
        depth, times = pattern.index(True), self.layout.extent[0]
        return put(values, number, over_rows(self.layout, depth, times, target_values, table, number, policy))


def target_values(
    layout: Layout, depth: int, table: ReplayTable, task: Array, index: Int[Array, " B"], policy: Chain
) -> Float[Array, "B A"]:
    """Q in rows of a task by a chain, whose modules before a depth are the bank's."""
    parts = layout.env.parts(layout.samples(table, task, index).observation)
    features = layout.features(table, task, index, depth=depth)
    output = layout.network.onward(policy, parts, features, depth=depth)
    assert isinstance(output, Output)
    return output.values.T


def acting(config: BCQConfig) -> Rule:
    """How an agent acts whose modules were learnt so: by the critic, within what the actor finds likely."""
    return Rule(config.acting, config.threshold)


def keeps_finals(config: BCQConfig | RealBCQConfig) -> bool:
    """Whether replay must tell what time limits cut off."""
    return config.bootstrap_truncated
