"""Online elastic weight consolidation: parameters that old tasks depend on are drawn back to where they were.

    L = L_PPO + λ/2 Σᵢ Fᵢ (θᵢ - θ*ᵢ)²,   after each task   F <- decay F + F_new,   θ* <- θ

Kirkpatrick et al. 2017; one anchor and one F for all tasks as in Schwarz et al. 2018. F_new: `learners.fisher`.
"""

from dataclasses import dataclass, field, replace

import equinox as eqx
import jax

from modlife.arrays import zeros
from modlife.domains.env import PRNGKey
from modlife.learners.config import EWCConfig
from modlife.learners.fisher import fisher, normalised, released_fisher
from modlife.learners.ppo import PPO, Anchor, LearnerState
from modlife.lifelong.agent import AgentState
from modlife.lifelong.agents import Plan
from modlife.lifelong.explore import Explore, Exploring
from modlife.lifelong.finetune import OneNetwork
from modlife.policies.bank import Chain
from modlife.policies.modular import Monolithic
from modlife.types import Pytree, Task


class Elastic(eqx.Module):
    """A network, and what holds it back."""

    now: Chain
    anchor: Chain
    importance: Chain
    """F; zero before the first task has been learnt."""

    def after(self, now: Chain, new: Chain, *, decay: float) -> "Elastic":
        """When another task has been learnt, that needs so much of each parameter."""
        importance = jax.tree.map(lambda old, more: decay * old + more, self.importance, new)
        return Elastic(now, now, importance)


@dataclass(frozen=True)
class EWC(OneNetwork):
    """One network that is held back where old tasks need it."""

    network: Monolithic
    config: EWCConfig = field(default_factory=EWCConfig)

    def init(self, *, key: PRNGKey) -> AgentState:
        """A fresh network that nothing holds back."""
        return AgentState(elastic(self.network.init(key=key)))

    def parameters(self, state: AgentState) -> Chain:
        """Those of the network."""
        return state.params.now

    def begin(self, state: AgentState, task: Task, *, key: PRNGKey) -> LearnerState:
        """PPO with the pull of what is known."""
        known, indices = state.params, self.indices(task)
        weights = jax.tree.map(lambda part: self.config.strength * part, known.importance)
        learner = self.ppo.init(known.now, indices, indices, Anchor.at(known.anchor, weights), key=key)
        return replace(learner, before=known.now) if self.config.fisher == "released" else learner

    def learnt(self, state: AgentState, explore: Explore, work: Exploring) -> tuple[AgentState, Pytree]:
        """The network as it is, with what the new task needs of it; from states of the task's last steps."""
        learner, replay = work.learner, explore.replay(work, explore.length(state))
        now, structure = learner.params, learner.structures[0]
        if self.config.fisher == "released":
            new = released_fisher(self.env, self.network, now, learner.before, structure, replay)
        else:
            new = fisher(self.env, self.network, now, structure, replay)
        new = normalised(new) if self.config.normalise else new
        known = state.params.after(now, new, decay=self.config.decay)
        return replace(state, params=known), self.network.pick(now, structure)

    @property
    def times(self) -> int:
        """As many as the information is estimated from."""
        return -(-min(self.config.samples, self.steps) // self.ppo.config.envs)


def elastic(fresh: Chain) -> Elastic:
    """A fresh network that nothing holds back."""
    return Elastic(fresh, fresh, jax.tree.map(lambda leaf: zeros(*leaf.shape, dtype=leaf.dtype), fresh))


def build(plan: Plan) -> EWC:
    """Online EWC."""
    network = Monolithic.usual(plan.env.graph, plan.modules)
    ppo = PPO(plan.env, network, plan.settings.ppo, plan.devices)
    return EWC(plan.env, network, ppo, plan.steps, episodes=plan.episodes, config=plan.settings.ewc)
