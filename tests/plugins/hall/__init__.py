"""A domain for tests: as small as one with three factors and a few actions can be, so that it compiles in no time."""

import modlife
from modlife.domains.domain import Domain

modlife.register(
    Domain(
        "hall",
        "a hall with an end to walk to",
        config="hall.domain:Hall",
        environment="hall.domain:HallEnv",
        modules="hall.domain:small_modules",
    )
)
