"""Hyper-parameters of the learners. No JAX here, so that the command line can read them quickly."""

from dataclasses import dataclass
from typing import Literal

from modlife.checks import check_between, check_fields, check_positive, check_range
from modlife.errors import InputError
from modlife.types import Acting

MOST = 2**20
"""Largest number of environments, of their steps between updates, of samples in a gradient step."""
HEAVIEST = 1e9
"""Largest weight, clip and norm: products with it stay finite in 32 bits."""


@dataclass(frozen=True)
class PPOConfig:
    """Hyper-parameters of PPO; the defaults are the paper's for the 2-D world, as its authors ran them.

    Those for robots: `domains.robot.world.USUAL`.
    """

    envs: int = 16
    """Environments per task."""
    length: int = 256
    """Steps of each environment between updates."""
    epochs: int = 4
    """Passes over the data of an update."""
    minibatch: int = 256
    """Samples of each task in a gradient step; divides envs * length."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    adam_eps: float = 1e-8
    """Adam's guard against division by zero."""
    discount: float = 0.99
    """Gamma: what a reward one step later is worth."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation."""
    clip: float = 0.2
    """Epsilon: how far the policy's ratio, and the value, may move before the loss stops rewarding it."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    entropy_weight: float = 0.01
    """Weight of the entropy bonus. The paper's table prints 0.5, with which a policy stays near uniform."""
    max_grad_norm: float | None = 0.5
    """Gradients are scaled down to this norm; None for no limit."""
    clip_value: bool = True
    """Let the loss stop rewarding the value, too, for moving further than the clip."""
    stop_divergence: float | None = None
    """The actor stops learning from the data of an update once the mean of log(old / new) is more; None for never.

    Only where it shares no parameters with the critics, as with robots.
    """
    timid_start: float = 1.0
    """Factor on output layers of known modules that meet a new task's goal in no episode: below 1 they say less."""
    normalise_advantages: bool = False
    """Shift and scale the advantages of each minibatch to mean 0 and deviation 1."""
    bootstrap_truncated: bool = False
    """Let the value of its last state stand for what a time limit cut off; the authors treat it as an end."""

    @property
    def batch(self) -> int:
        """Steps per task and update."""
        return self.envs * self.length

    def __post_init__(self) -> None:
        check_fields(self)
        check_between(self, 1, MOST, "envs", "length", "minibatch")
        check_between(self, 1, 10_000, "epochs")
        if self.batch >= 2**31:
            raise InputError(
                f"envs * length = {self.envs} * {self.length} = {self.batch}, but it must be less than 2**31."
            )
        if self.batch % self.minibatch:
            raise InputError(
                f"minibatch = {self.minibatch} does not divide envs * length = "
                f"{self.envs} * {self.length} = {self.batch}."
            )
        check_positive(self, "learning_rate", "adam_eps", most=1)
        check_positive(self, "clip", most=HEAVIEST)
        for name in ("max_grad_norm", "stop_divergence"):
            if getattr(self, name) is not None:
                check_positive(self, name, most=HEAVIEST)
        check_between(self, 0, HEAVIEST, "value_weight", "entropy_weight")
        for name in ("discount", "gae_lambda", "timid_start"):
            check_range(name, getattr(self, name), 0, 1)


@dataclass(frozen=True)
class ElasticConfig:
    """How parameters are held back that old tasks depend on."""

    strength: float = 10_000.0
    """Lambda: weight of the penalty. It depends on how information is counted: here its mean over states."""
    decay: float = 1.0
    """Gamma: what is left of the information of earlier tasks when a new one's is added."""
    samples: int = 4096
    """States from the end of a task by which its information is estimated."""
    normalise: bool = False
    """Divide a task's information by its mean over parameters that have any, so that tasks count alike."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_between(self, 0, 1e12, "strength")
        check_range("decay", self.decay, 0, 1)
        check_between(self, 1, MOST, "samples")


@dataclass(frozen=True)
class EWCConfig(ElasticConfig):
    """Online elastic weight consolidation; the defaults are the paper's."""

    fisher: Literal["exact", "released"] = "exact"
    """Information: squares of each state's own gradient, or (released code) of the last update's mean divergence."""


@dataclass(frozen=True)
class DistillConfig:
    """Distilling the policies of many tasks into one network."""

    epochs: int = 10
    """Passes over the kept transitions of the new task."""
    batch: int = 256
    """Samples of the new task in a gradient step, and as many of all old ones together."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    new_share: float = 0.5
    """Share of the new task in the loss, if there are old ones."""
    old_rows: int = 10_000
    """Transitions that are kept of a task once it has been distilled."""
    max_grad_norm: float | None = None
    """Gradients are scaled down to this norm, if it is given."""
    clone_old: Literal["forward", "reversed"] = "forward"
    """Divergence of old tasks: KL(then || now) as of the new one, or KL(now || then) as the authors have it."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_between(self, 1, MOST, "batch")
        check_between(self, 0, 10_000, "epochs")
        check_between(self, 1, MOST, "old_rows")
        check_positive(self, "learning_rate", most=1)
        if self.max_grad_norm is not None:
            check_positive(self, "max_grad_norm", most=HEAVIEST)
        if not 0 < self.new_share < 1:
            raise InputError(f"new_share = {self.new_share}, but it must be more than 0 and less than 1.")


@dataclass(frozen=True)
class CompressConfig(ElasticConfig):
    """How Progress & Compress folds the active column into the knowledge base; the defaults are the paper's."""

    strength: float = 10.0
    """Lambda: weight of EWC's penalty, beside the mean divergence. It depends on how information is counted."""
    epochs: int = 10
    """Passes over the kept transitions of the task."""
    batch: int = 256
    """Samples in a gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    max_grad_norm: float = 0.5
    """Gradients, with EWC's pull, are scaled down to this norm."""
    fisher: Literal["exact", "released"] = "exact"
    """Information: squares of each state's own gradient, or (released code) of the mean divergence when it ends."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 1, MOST, "batch")
        check_between(self, 0, 10_000, "epochs")
        check_positive(self, "learning_rate", most=1)
        check_positive(self, "max_grad_norm", most=HEAVIEST)

    @property
    def distilling(self) -> DistillConfig:
        """How the divergence is learnt."""
        return DistillConfig(self.epochs, self.batch, self.learning_rate, max_grad_norm=self.max_grad_norm)


@dataclass(frozen=True)
class ClearConfig:
    """CLEAR: old tasks are rehearsed in every gradient step, off-policy and by cloning."""

    ratio: float = 1.5
    """Eta: samples of old tasks for each sample of the new one."""
    unroll: int = 16
    """Consecutive steps in a piece of replay."""
    keep: Literal["last", "reservoir"] = "last"
    """What replay keeps of a task: the last transitions, or pieces drawn evenly from its online phase (CLEAR)."""
    clone: Literal["distributions", "actions"] = "distributions"
    """What the actor goes on saying: the distribution that it had (CLEAR), or the action it drew (released code)."""
    policy_weight: float = 0.01
    """Weight of that; CLEAR's."""
    value_weight: float = 0.005
    """Weight of the squared error to the values that the critic had; CLEAR's."""
    clip_step: float = 1.0
    """Largest weight of a step of replay in V-trace: rho bar."""
    clip_trace: float = 1.0
    """Largest weight with which what comes after it counts: c bar."""
    surrogate: Literal["plain", "clipped"] = "plain"
    """The policy's loss: V-trace's gradient (CLEAR), or with PPO's clipped ratio (released code)."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_positive(self, "ratio", most=100)
        check_positive(self, "clip_step", "clip_trace", most=HEAVIEST)
        check_between(self, 1, 4096, "unroll")
        check_between(self, 0, HEAVIEST, "policy_weight", "value_weight")


@dataclass(frozen=True)
class BCQConfig:
    """Batch-constrained Q-learning; the defaults are the paper's, and the released code's where it is silent."""

    epochs: int = 10
    """Passes over the kept transitions of every task that shares a module with the new one."""
    batch: int = 256
    """Samples of each of those tasks in a gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    target_period: int = 1000
    """Gradient steps between two copies of the critic to the target network."""
    td_weight: float = 1e-3
    """Weight of the critic's squared error."""
    likelihood_weight: float = 1.0
    """Weight of the actor's negative log-likelihood of the action taken."""
    logit_weight: float = 1e-2
    """Weight of the sum of squared logits, which keeps the cloned actor from growing overconfident."""
    threshold: float = 0.3
    """Tau: an action is likely if its probability is more than this share of the likeliest one's."""
    bootstrap: Literal["constrained", "released"] = "constrained"
    """Next action in the critic's target: the best likely one (paper), or the best of all (released code)."""
    bootstrap_truncated: bool = False
    """Let the value of its last state stand for what a time limit cut off; the authors treat it as an end."""
    acting: Acting = "filtered-boltzmann"
    """How to act after the offline phase; unfiltered Boltzmann sampling, the paper's words, is near random."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_between(self, 1, MOST, "batch")
        check_between(self, 1, 10**9, "target_period")
        check_between(self, 0, 10_000, "epochs")
        check_between(self, 0, HEAVIEST, "td_weight", "likelihood_weight", "logit_weight")
        check_positive(self, "learning_rate", most=1)
        if not 0 <= self.threshold < 1:
            raise InputError(f"threshold = {self.threshold}, but it must be at least 0 and less than 1.")


@dataclass(frozen=True)
class RealBCQConfig:
    """Batch-constrained Q-learning for real-valued actions; the defaults are the paper's, and the released code's."""

    epochs: int = 100
    """Passes over the kept transitions of every task that shares a module with the new one."""
    batch: int = 1200
    """Samples of each of those tasks in a gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    target_rate: float = 0.005
    """How much of the way target networks follow in each gradient step."""
    candidates: int = 10
    """Actions drawn from the actor in the next state, of which the best counts."""
    caution: float = 0.75
    """Lambda: weight of the lower of the two critics, beside the higher one."""
    td_weight: float = 1.0
    """Weight of the critics' squared errors. Actor and critics that share nothing do not mind."""
    likelihood_weight: float = 1.0
    """Weight of the actor's negative log-likelihood of the action taken."""
    bootstrap_truncated: bool = True
    """Let the value of its last state stand for what a time limit cut off."""
    acting: Acting = "actor"
    """How to act after the offline phase: by the actor, or by its mean (actor-greedy)."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_between(self, 1, MOST, "batch")
        check_between(self, 0, 10_000, "epochs")
        check_between(self, 1, 1024, "candidates")
        check_between(self, 0, HEAVIEST, "td_weight", "likelihood_weight")
        check_positive(self, "learning_rate", "target_rate", most=1)
        check_range("caution", self.caution, 0, 1)


@dataclass(frozen=True)
class AWACConfig(RealBCQConfig):
    """Advantage-weighted actor-critic: as `RealBCQConfig`, but for what stands here.

    The critics learn what the actor itself would get (no caution, no best candidate), and the actor learns most of
    actions that turned out better than its own.
    """

    temperature: float = 3.0
    """Beta: how little that matters, in deviations of the advantage.

    Where the advantage rises evenly with the action, the actor moves 1 / (2 beta squared) nats away from what was done,
    whether critics are right or not: .056 by default, about the divergence at which the paper's PPO stops (.05).
    """
    most: float = 20.0
    """Largest weight of an action."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "temperature", "most", most=HEAVIEST)
        if self.caution != RealBCQConfig.caution:
            raise InputError(f"caution = {self.caution}, but AWAC takes the lower of two critics: leave it out.")


@dataclass(frozen=True)
class BoundedConfig(BCQConfig):
    """Consolidation whose cost does not grow with the number of tasks: some old ones in turn, taught by what they said.

    What stands here differs from the paper's choice, or has none there; the rest is as in `BCQConfig`.
    """

    epochs: int = 3
    """Passes over the kept transitions of the new task."""
    logit_weight: float = 0.0
    """Weight of the sum of squared logits; what is cloned has its own confidence."""
    tasks: int | None = 8
    """Tasks in a gradient step: the new one, and old ones that share a module with it, in turn; None for all."""
    new_share: float | None = None
    """Least share of the new task in the loss, if there are old ones; None for as much as each of those has."""
    old_rows: int | None = 10_000
    """Transitions that are kept of a task once it has been folded in; None for all."""
    clone: Literal["distributions", "actions"] = "distributions"
    """What the actor is taught: the distribution over actions that the task's policy had, or the action it drew."""
    td: Literal["current", "all", "none"] = "current"
    """Tasks whose critic learns from rewards; that of the others is taught the values that were last learnt so."""
    value_weight: float = 1e-2
    """Weight of the squared error to those values."""
    anneal: float = 0.05
    """Share of the learning rate that is left at the end of a phase, to which it falls evenly; 1 for a constant one."""
    repair: int = 4
    """Rounds of repair, at most, for old tasks that were harmed; 0 to look at none."""
    drift: float = 0.15
    """How much further than at its own time a policy may be from its teacher, in nats, before it is repaired."""
    drop: float = 0.05
    """How much of its return a task may lose, beyond twice the error, before it is repaired."""
    refuse: bool = False
    """Leave modules as they were where a task that shares them was harmed and could not be repaired."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between(self, 0, HEAVIEST, "value_weight")
        check_between(self, 0, 1000, "repair")
        check_positive(self, "anneal", most=1)
        check_positive(self, "drift", "drop", most=HEAVIEST)
        if self.refuse and not self.repair:
            raise InputError(
                "refuse = True beside repair = 0: nobody looks at old tasks then. Give `--offline.repair 1`."
            )
        if self.tasks is not None:
            check_between(self, 2, 1024, "tasks")
        if self.new_share is not None and not 0 < self.new_share < 1:
            raise InputError(f"new_share = {self.new_share}, but it must be more than 0 and less than 1.")
        if self.old_rows is not None:
            check_between(self, 1, MOST * 16, "old_rows")
        if self.td == "all" and self.old_rows is not None:
            raise InputError(
                f"td = all beside old_rows = {self.old_rows}: what came after a transition is not known in replay that "
                "was thinned. Give `--offline.old-rows None` too."
            )
