"""A package of somebody else: a domain, an agent, a consolidator, a search and a figure for modlife, one file each."""

import modlife
from modlife.analysis.figures import Figure
from modlife.domains.domain import Domain
from modlife.lifelong.agents import AgentEntry
from modlife.lifelong.settings import ConsolidatorEntry, SearchEntry

modlife.register(
    Domain(
        "reach",
        "a point that is to be steered to a target",
        config="drill.domain:Reach",
        environment="drill.domain:ReachEnv",
        modules="modlife.policies.dense_modules:DenseModules",
        pictures="drill.domain:ReachPictures",
        returns="Each step pays 1 less the distance to the target; the return is the sum.",
    ),
    AgentEntry(
        "carry-on",
        "one network that goes on learning, whatever the task",
        "Carry on",
        "#8c564b",
        build="drill.agent:build",
    ),
    ConsolidatorEntry(
        "cloning",
        "does what was done; for any actions",
        config="drill.consolidator:CloningConfig",
        build="drill.consolidator:Cloning",
        acting="drill.consolidator:acting",
    ),
    SearchEntry(
        "some",
        "tries a few combinations of modules, drawn at random",
        config="drill.search:SomeConfig",
        build="drill.search:Some",
    ),
    Figure("finals", "the return of every task at the end of each life", draw="drill.figure:draw"),
)
