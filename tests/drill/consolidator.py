"""A consolidator: the actor does what was done, in every task that shares a module. For actions of either kind."""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Array, Float

from modlife.learners.offline import Consolidator, check_batch
from modlife.learners.replay_table import Layout, Rows
from modlife.policies.acting import Rule
from modlife.policies.bank import Chain
from modlife.policies.modular import AnyOutput


@dataclass(frozen=True)
class CloningConfig:
    """Its options: `--offline.epochs` and so on."""

    epochs: int = 2
    """Passes over the kept transitions."""
    batch: int = 64
    """Samples of each task in a gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size."""


@dataclass(frozen=True)
class Cloning(Consolidator):
    """The negative log-likelihood of the actions taken, and nothing else."""

    layout: Layout
    config: CloningConfig
    discount: float

    def __post_init__(self) -> None:
        check_batch(self)

    @property
    def weights(self) -> Mapping[str, float]:
        return {"likelihood": 1.0}

    def targets(self, own: Chain, rows: Rows, extra: None) -> None:
        return None

    def terms(self, output: AnyOutput, rows: Rows, targets: None) -> Float[Array, " 1"]:
        return -output.distribution.log_prob(rows.transition.action).mean()[None]


def acting(config: CloningConfig) -> Rule:
    return Rule("actor")
