"""One policy of a run as an ONNX model: observations as Gymnasium gives them in, what the policy says of them out.

    inputs      `observation`, or one for each entry where observations are dictionaries; [batch, ...]
    outputs     where actions are a few: `probabilities` as the agent acts, the actor's `logits`, the critic's `values`
                where they are real numbers: `mean` and `log_std` of what is drawn, and `value` where the critic is V

What the model says is compared with what the agent says before it is written.
"""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
from gymnasium import spaces

from modlife import __version__
from modlife.domains.env import Environment, PRNGKey, step_batch
from modlife.domains.film import random_action
from modlife.domains.graph import Discrete
from modlife.errors import InputError, StoreError
from modlife.exports.face import Face, face_of, spec_of
from modlife.exports.jaxpr_onnx import as_onnx
from modlife.learners.rollout import start
from modlife.pauses import counted
from modlife.policies.distributions import Distribution, Gaussian
from modlife.policies.modular import AnyOutput, GaussianOutput
from modlife.runs.load import Run
from modlife.types import Pytree, Task

ENVS, STEPS = 50, 20
"""A model is checked with what so many environments show in so many steps."""
BATCHES = (1, 7, ENVS * STEPS - 8)
"""They are given to the model in batches of several sizes."""
TOLERANCE = 1e-4
"""How far a number may be from ours, as a share of 1 + |ours|."""
OBSERVATION = "observation"
"""The name of the input where observations are single arrays."""
RUNTIME: Any = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
UNFIT = (
    onnx.checker.ValidationError,
    onnx.shape_inference.InferenceError,
    RUNTIME.Fail,
    RUNTIME.InvalidArgument,
    RUNTIME.InvalidGraph,
    RUNTIME.NotImplemented,
    RUNTIME.RuntimeException,
)
"""What ONNX and its runtime raise where a model cannot be."""

Arrays = Mapping[str, Any]


def export_onnx(run: Run, name: str | None, path: Path) -> str:
    """Writes the policy for a task, by default the last one learnt; a sentence on what was written and checked."""
    task = run.task(name)
    policy, face = run.policy(task), face_of(run.domain, run.agent.env)

    def function(inputs: Arrays) -> dict[str, Any]:
        return answers(run, policy, face.parts(unnamed(inputs)))

    model = as_onnx(function, shapes_of(face))
    try:
        onnx.checker.check_model(model, full_check=True)
        farthest = difference(run, policy, task, face, model)
    except UNFIT as error:
        raise InputError(f"The policy cannot be an ONNX model, as its network is: {error}") from error
    if not farthest <= TOLERANCE:
        raise StoreError(
            f"'{path}' was not written: of {ENVS * STEPS} observations, the model says what differs from the agent's "
            f"answer by up to {farthest:.1e}, and {TOLERANCE:.0e} is allowed."
        )
    checked = f"{ENVS * STEPS} observations, farthest {farthest:.1e} of {TOLERANCE:.0e} allowed"
    onnx.helper.set_model_props(model, {**about(run, task), "checked": checked})
    path.write_bytes(model.SerializeToString())
    return f"checked with {checked}"


def answers(run: Run, policy: Pytree, parts: Arrays) -> dict[str, Any]:
    """What an agent says of a batch, by name, the batch first."""
    output = run.agent.network(policy, dict(parts))
    return told(output, run.agent.acting(output))


def told(output: AnyOutput, says: Distribution) -> dict[str, Any]:
    """What a network says, and how an agent acts by it."""
    if isinstance(output, GaussianOutput):
        assert isinstance(says, Gaussian)
        value = {} if output.value is None else {"value": output.value}
        return {"mean": says.mean.T, "log_std": says.log_std, **value}
    return {"probabilities": jnp.exp(says.numbers).T, "logits": output.logits.T, "values": output.values.T}


def named(seen: Any) -> dict[str, Any]:
    """Observations as inputs by name."""
    return dict(seen) if isinstance(seen, Mapping) else {OBSERVATION: seen}


def unnamed(inputs: Arrays) -> Any:
    """Inputs by name as observations."""
    return inputs[OBSERVATION] if set(inputs) == {OBSERVATION} else inputs


def shapes_of(face: Face) -> dict[str, jax.ShapeDtypeStruct]:
    """Shape and type of each input, without the batch."""
    space = face.observation_space
    each = named(space.spaces if isinstance(space, spaces.Dict) else space)
    return {name: jax.ShapeDtypeStruct(one.shape, one.dtype) for name, one in each.items()}


def difference(run: Run, policy: Pytree, task: Task, face: Face, model: onnx.ModelProto) -> float:
    """The largest difference between what the agent and the model say, relative to 1 + |what the agent says|."""
    observations = observed(run.agent.env, task)
    ours = jax.device_get(jax.jit(lambda seen: answers(run, policy, run.agent.env.parts(seen)))(observations))
    theirs = said_by(model, {name: np.asarray(one) for name, one in named(face.seen(observations)).items()})
    return max(float(apart(theirs[name], np.asarray(one))) for name, one in ours.items())


def apart(theirs: np.ndarray, ours: np.ndarray) -> np.floating[Any]:
    """How far two arrays are apart at most; NaN if something in them is not a number."""
    with np.errstate(invalid="ignore"):  # what is infinite may be the same
        return np.where(theirs == ours, 0.0, np.abs(theirs - ours) / (1 + np.abs(ours))).max()


def observed(env: Environment, task: Task) -> Pytree:
    """What is seen in a task where any action is taken."""
    states, found = start(env, jnp.array(env.graph.indices(task)), count=ENVS, key=jax.random.key(0)).states, []

    @jax.jit
    def go_on(states: Pytree, key: PRNGKey) -> tuple[Pytree, Pytree]:
        acting, restarting = jax.random.split(key)
        actions = random_action(env, (ENVS,), key=acting)
        return step_batch(env, states, actions, key=restarting).states, jax.vmap(env.observe)(states)

    for time in counted(range(STEPS), "observations to check the model with", each=ENVS):
        states, seen = go_on(states, jax.random.key(time))
        found.append(seen)
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *found)


def said_by(model: onnx.ModelProto, inputs: Arrays) -> dict[str, np.ndarray]:
    """What a model says of a thousand observations, given in batches of several sizes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    found, end = [], 0
    for size in BATCHES:
        begin, end = end, end + size
        said = session.run(names, {name: array[begin:end] for name, array in inputs.items()})
        found.append(dict(zip(names, map(np.asarray, said), strict=True)))
    each = {one.name: one.shape[:1] == ["batch"] for one in session.get_outputs()}
    return {name: np.concatenate([one[name] for one in found]) if each[name] else found[0][name] for name in names}


def about(run: Run, task: Task) -> dict[str, str]:
    """What is written into the model: where it comes from, and what its numbers mean."""
    graph, known = run.agent.env.graph, run.agent.about(run.knowing([task]), [task])
    actions = list(graph.actions.names) if isinstance(graph.actions, Discrete) else graph.actions.size
    factors = {factor.name: component for factor, component in zip(graph.factors, task.components, strict=True)}
    spec = spec_of(run.domain, run.config.world, task)
    gym = spec and {"id": spec.id, "kwargs": spec.kwargs}
    facts = {"factors": factors, "actions": actions, "gymnasium": gym, **{name: one[0] for name, one in known.items()}}
    return {
        "modlife": __version__,
        "run": run.path.resolve().name,
        "agent": run.config.agent,
        "domain": run.domain.name,
        "seed": str(run.config.seed),
        "task": str(task),
        "acting": run.agent.acting.name,
        **{name: json.dumps(value) for name, value in facts.items() if value is not None},
    }
