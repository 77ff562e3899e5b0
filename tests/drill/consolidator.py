"""A consolidator: the actor does what was done, in every task that shares a module. For actions of either kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Array, Float

from modlife.domains.env import PRNGKey
from modlife.learners.offline import Learnt, Plain, begin, check_batch, epoch_steps, some_steps
from modlife.learners.replay_table import Layout, Lesson, Rows
from modlife.policies.acting import Rule
from modlife.policies.bank import Bank, Chain
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
class Cloning(Plain):
    """The negative log-likelihood of the actions taken, and nothing else."""

    layout: Layout
    config: CloningConfig
    discount: float

    def __post_init__(self) -> None:
        check_batch(self)

    @property
    def weights(self) -> Mapping[str, float]:
        return {"likelihood": 1.0}

    @property
    def epoch_steps(self) -> int:
        return epoch_steps(self)

    @property
    def steps(self) -> int:
        return self.config.epochs * self.epoch_steps

    def targets(self, own: Chain, rows: Rows, extra: None) -> None:
        return None

    def terms(self, output: AnyOutput, rows: Rows, targets: None) -> Float[Array, " 1"]:
        return -output.distribution.log_prob(rows.transition.action).mean()[None]

    def init(self, own: Chain) -> Learnt:
        return begin(self, own)

    def modules(self, state: Learnt) -> Chain:
        return state.own

    def run(
        self, bank: Bank, lessons: Sequence[Lesson], state: Learnt, *, done: int, key: PRNGKey
    ) -> Iterator[tuple[int, Learnt, Mapping[str, float] | None]]:
        table = self.layout.fill(bank, lessons)
        for opened in self.layout.with_features(table, lessons):
            table = opened
            yield done, state, None
        while done < self.steps:
            done, state, means = some_steps(self, state, table, None, number=done, most=self.steps, key=key)
            yield done, state, means


def acting(config: CloningConfig) -> Rule:
    return Rule("actor")
