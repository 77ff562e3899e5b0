"""JAX programs as ONNX graphs: the operations that networks are made of, whichever package the network is from.

A program is traced once, with a batch of a size that no other dimension has: a dimension that is a multiple of `BATCH`
follows the batch. Whole numbers are 32 bits wide inside, whatever they were: few runtimes reckon in bytes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import onnx
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from onnx import TensorProto, helper, numpy_helper

from modlife.errors import InputError

BATCH = 8191
"""A prime number: samples in the batch that a program is traced with."""
OPSET, IR = 18, 8
"""Versions of ONNX that runtimes since 2023 know."""
END = 2**31 - 1
"""Beyond the end of any axis."""


def is_batch(size: int) -> bool:
    """Whether a dimension follows the batch."""
    return size > 0 and size % BATCH == 0


def kind_of(dtype: Any) -> int:
    """The type in which a graph reckons with numbers of a type."""
    kinds = {"b": TensorProto.BOOL, "i": TensorProto.INT32, "u": TensorProto.INT32}
    return kinds.get(np.dtype(dtype).kind, TensorProto.FLOAT)


@dataclass
class Graph:
    """A graph that grows: nodes in their order, constants, and where the batch's size comes from."""

    batch: str
    """The input whose first axis is the batch."""
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output, whose name is returned."""
        return self.several(kind, *inputs, count=1, **attributes)[0]

    def several(self, kind: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """A node with so many outputs."""
        names = [f"n{len(self.nodes)}_{place}" for place in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def constant(self, value: Any) -> str:
        """An array that does not depend on the input, in a type that the graph reckons in."""
        array = np.asarray(value)
        return self.raw(array.astype(helper.tensor_dtype_to_np_dtype(kind_of(array.dtype))))

    def whole(self, *numbers: int) -> str:
        """Sizes, axes and such, which ONNX has in 64 bits."""
        return self.raw(np.array(numbers, np.int64))

    def raw(self, array: np.ndarray) -> str:
        """A constant as it is."""
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def cast(self, name: str, dtype: Any) -> str:
        """In the type in which numbers of a type are reckoned with."""
        return self.add("Cast", name, to=kind_of(dtype))

    def shape(self, sizes: Sequence[int]) -> str:
        """A shape, of which some dimensions may follow the batch."""
        if not any(map(is_batch, sizes)):
            return self.whole(*sizes)
        samples = self.add("Slice", self.add("Shape", self.batch), self.whole(0), self.whole(1))
        each = [
            self.add("Mul", samples, self.whole(size // BATCH)) if is_batch(size) else self.whole(size)
            for size in sizes
        ]
        return self.add("Concat", *each, axis=0)


@dataclass(frozen=True)
class Step:
    """An operation of a program, and the names of what it is applied to."""

    name: str
    params: dict[str, Any]
    shapes: list[tuple[int, ...]]
    """Of what it is applied to."""
    out: Any
    """Shape and type of what comes out first."""
    inputs: list[str]
    count: int
    """How many come out."""


def refuse(step: Step) -> InputError:
    """The error for what has no counterpart here."""
    return InputError(f"The network uses JAX's operation '{step.name}' in a way that cannot be written as ONNX here.")


Rule = Callable[[Graph, Step], str | list[str]]


def dot_general(graph: Graph, step: Step) -> str:
    """A product over some axes of two arrays, with some axes in common."""
    (contract, batch), (left, right) = step.params["dimension_numbers"], step.shapes
    if (contract, batch, len(left), len(right)) == (((1,), (0,)), ((), ()), 2, 2):
        return graph.add("MatMul", *step.inputs)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    names = [next(letters) for _ in left], [next(letters) for _ in right]
    for a, b in (*zip(*batch, strict=True), *zip(*contract, strict=True)):
        names[1][b] = names[0][a]
    kept = [names[0][n] for n in batch[0]]
    free = [name for side in (0, 1) for n, name in enumerate(names[side]) if n not in (*contract[side], *batch[side])]
    equation = f"{''.join(names[0])},{''.join(names[1])}->{''.join([*kept, *free])}"
    return graph.add("Einsum", *step.inputs, equation=equation)


def broadcast_in_dim(graph: Graph, step: Step) -> str:
    """New axes, and axes of one that become longer."""
    shape, places = step.params["shape"], step.params["broadcast_dimensions"]
    new = [axis for axis in range(len(shape)) if axis not in places]
    name = graph.add("Unsqueeze", step.inputs[0], graph.whole(*new)) if new else step.inputs[0]
    before = [step.shapes[0][places.index(axis)] if axis in places else 1 for axis in range(len(shape))]
    longer = [1 if old == size else size for old, size in zip(before, shape, strict=True)]
    return graph.add("Expand", name, graph.shape(longer)) if set(longer) - {1} else name


def reshape(graph: Graph, step: Step) -> str:
    """Another shape; one axis may follow the batch."""
    sizes = step.params["new_sizes"]
    if sum(map(is_batch, sizes)) > 1 or step.params.get("dimensions") is not None:
        raise refuse(step)
    return graph.add("Reshape", step.inputs[0], graph.whole(*(-1 if is_batch(size) else size for size in sizes)))


def cut(graph: Graph, step: Step) -> str:
    """A part of some axes; of the batch's, all."""
    params, shape = step.params, step.shapes[0]
    steps = params["strides"] or (1,) * len(shape)
    rows = list(zip(range(len(shape)), params["start_indices"], params["limit_indices"], steps, shape, strict=True))
    rows = [row for row in rows if row[1:4] != (0, row[4], 1)]
    if any(is_batch(size) for *_, size in rows):
        raise refuse(step)
    axes, starts, ends, strides, _ = zip(*rows, strict=True) if rows else ((),) * 5
    return graph.add("Slice", step.inputs[0], *(graph.whole(*one) for one in (starts, ends, axes, strides)))


def concatenate(graph: Graph, step: Step) -> str:
    """Arrays one after the other; those without elements are left out."""
    some = [name for name, shape in zip(step.inputs, step.shapes, strict=True) if math.prod(shape)]
    return graph.add("Concat", *some, axis=step.params["dimension"])


def split(graph: Graph, step: Step) -> list[str]:
    """An array in pieces."""
    sizes = graph.whole(*step.params["sizes"])
    return graph.several("Split", step.inputs[0], sizes, count=step.count, axis=step.params["axis"])


def iota(graph: Graph, step: Step) -> str:
    """Numbers that count along an axis."""
    shape, along = step.params["shape"], step.params["dimension"]
    if is_batch(shape[along]):
        raise refuse(step)
    row = np.arange(shape[along]).astype(step.params["dtype"])
    line = graph.constant(row.reshape([-1 if axis == along else 1 for axis in range(len(shape))]))
    return graph.add("Expand", line, graph.shape(shape))


def select(graph: Graph, step: Step) -> str:
    """One of two arrays, by a third."""
    if len(step.inputs) != 3:
        raise refuse(step)
    which, first, second = step.inputs
    return graph.add("Where", graph.cast(which, bool), second, first)


def gather(graph: Graph, step: Step) -> str:
    """Entries of an axis, by their numbers."""
    numbers, (table, index) = step.params["dimension_numbers"], step.shapes
    axis = numbers.start_index_map[0]
    rest = tuple(n for n in range(len(table) + len(index) - 2) if not axis <= n < axis + len(index) - 1)
    sizes = tuple(1 if n == axis else size for n, size in enumerate(table))
    one = (axis,)
    if (numbers.start_index_map, numbers.collapsed_slice_dims, numbers.offset_dims) != (one, one, rest):
        raise refuse(step)
    if tuple(step.params["slice_sizes"]) != sizes or numbers.operand_batching_dims:
        raise refuse(step)
    flat = graph.add("Squeeze", step.inputs[1], graph.whole(len(index) - 1))
    return graph.add("Gather", step.inputs[0], flat, axis=axis)


def reduced(kind: str) -> Rule:
    """A sum, or the like, over some axes."""

    def rule(graph: Graph, step: Step) -> str:
        name = graph.cast(step.inputs[0], np.int32) if step.out.dtype == bool else step.inputs[0]
        out = graph.add(kind, name, graph.whole(*step.params["axes"]), keepdims=0)
        return graph.cast(out, bool) if step.out.dtype == bool else out

    return rule


def arg(kind: str) -> Rule:
    """Where the largest, or the smallest, stands first."""

    def rule(graph: Graph, step: Step) -> str:
        return graph.cast(graph.add(kind, step.inputs[0], axis=step.params["axes"][0], keepdims=0), np.int32)

    return rule


def same(kind: str) -> Rule:
    """An operation that ONNX has too, element by element."""
    return lambda graph, step: graph.add(kind, *step.inputs)


RULES: dict[str, Rule] = {
    **{name: same(name.capitalize()) for name in ("add", "sub", "mul", "div", "max", "min", "neg", "abs", "sign")},
    **{name: same(name.capitalize()) for name in ("tanh", "exp", "log", "sqrt", "floor", "ceil", "erf", "sin", "cos")},
    **{name: same(name.capitalize()) for name in ("pow", "and", "or", "not")},
    **{name: same("Identity") for name in ("stop_gradient", "copy", "copy_p", "optimization_barrier")},
    "logistic": same("Sigmoid"),
    "eq": same("Equal"),
    "ne": lambda graph, step: graph.add("Not", graph.add("Equal", *step.inputs)),
    "gt": same("Greater"),
    "ge": same("GreaterOrEqual"),
    "lt": same("Less"),
    "le": same("LessOrEqual"),
    "square": lambda graph, step: graph.add("Mul", step.inputs[0], step.inputs[0]),
    "expm1": lambda graph, step: graph.add("Sub", graph.add("Exp", step.inputs[0]), graph.constant(np.float32(1))),
    "log1p": lambda graph, step: graph.add("Log", graph.add("Add", step.inputs[0], graph.constant(np.float32(1)))),
    "rsqrt": lambda graph, step: graph.add("Reciprocal", graph.add("Sqrt", step.inputs[0])),
    "integer_pow": lambda graph, step: graph.add("Pow", step.inputs[0], graph.constant(np.float32(step.params["y"]))),
    "clamp": lambda graph, step: graph.add("Min", graph.add("Max", step.inputs[1], step.inputs[0]), step.inputs[2]),
    "convert_element_type": lambda graph, step: graph.cast(step.inputs[0], step.params["new_dtype"]),
    "transpose": lambda graph, step: graph.add("Transpose", step.inputs[0], perm=step.params["permutation"]),
    "squeeze": lambda graph, step: graph.add("Squeeze", step.inputs[0], graph.whole(*step.params["dimensions"])),
    "reduce_sum": reduced("ReduceSum"),
    "reduce_max": reduced("ReduceMax"),
    "reduce_min": reduced("ReduceMin"),
    "reduce_prod": reduced("ReduceProd"),
    "reduce_or": reduced("ReduceMax"),
    "reduce_and": reduced("ReduceMin"),
    "argmax": arg("ArgMax"),
    "argmin": arg("ArgMin"),
    "dot_general": dot_general,
    "broadcast_in_dim": broadcast_in_dim,
    "reshape": reshape,
    "slice": cut,
    "concatenate": concatenate,
    "split": split,
    "iota": iota,
    "select_n": select,
    "gather": gather,
}
INSIDE = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
"""Operations that are programs themselves, and which of their parameters holds it."""


def written(graph: Graph, program: Jaxpr, constants: Sequence[Any], inputs: Sequence[str]) -> list[str]:
    """Writes a program into a graph, as far as its results need it; the names of those."""
    names: dict[Any, str] = dict(zip(program.invars, inputs, strict=True))
    names |= {var: graph.constant(value) for var, value in zip(program.constvars, constants, strict=True)}

    def name(atom: Any) -> str:
        return graph.constant(atom.val) if isinstance(atom, Literal) else names[atom]

    for step in needed(program):
        inputs = [name(atom) for atom in step.invars]
        names.update(zip(step.outvars, one(graph, step, inputs), strict=True))
    return [name(atom) for atom in program.outvars]


def one(graph: Graph, equation: Any, inputs: list[str]) -> list[str]:
    """Writes an operation; the names of its results."""
    kind, params = equation.primitive.name, equation.params
    if kind in INSIDE:
        inner = params[INSIDE[kind]]
        return written(graph, *((inner.jaxpr, inner.consts) if isinstance(inner, ClosedJaxpr) else (inner, ())), inputs)
    shapes = [tuple(getattr(atom.aval, "shape", ())) for atom in equation.invars]
    step = Step(kind, params, shapes, equation.outvars[0].aval, inputs, len(equation.outvars))
    if kind not in RULES:
        raise refuse(step)
    found = RULES[kind](graph, step)
    return [found] if isinstance(found, str) else found


def needed(program: Jaxpr) -> list[Any]:
    """The operations that the results of a program depend on, in their order."""
    wanted, found = {atom for atom in program.outvars if not isinstance(atom, Literal)}, []
    for equation in reversed(program.eqns):
        if wanted & set(equation.outvars):
            wanted |= {atom for atom in equation.invars if not isinstance(atom, Literal)}
            found.append(equation)
    return found[::-1]


def as_onnx(function: Callable[..., dict[str, Any]], inputs: dict[str, jax.ShapeDtypeStruct]) -> onnx.ModelProto:
    """A function of named arrays, whose first axis is the batch, as a model; its results are named arrays too."""
    traced = {name: jax.ShapeDtypeStruct((BATCH, *one.shape), one.dtype) for name, one in inputs.items()}
    program, results = jax.make_jaxpr(function, return_shape=True)(traced)
    graph = Graph(next(iter(traced)))
    entering = [graph.cast(name, traced[name].dtype) for name in sorted(traced)]  # as JAX goes through dictionaries
    leaving = written(graph, program.jaxpr, program.consts, entering)
    for name, inner in zip(sorted(results), leaving, strict=True):
        graph.nodes.append(helper.make_node("Identity", [inner], [name]))
    body = helper.make_graph(
        graph.nodes,
        "policy",
        [described(name, traced[name], helper.np_dtype_to_tensor_dtype(traced[name].dtype)) for name in traced],
        [described(name, results[name], kind_of(results[name].dtype)) for name in results],
        [numpy_helper.from_array(array, name) for name, array in graph.constants.items()],
    )
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)


def described(name: str, array: jax.ShapeDtypeStruct, kind: int) -> onnx.ValueInfoProto:
    """An input or output, with a named dimension where it follows the batch."""
    return helper.make_tensor_value_info(name, kind, ["batch" if is_batch(size) else size for size in array.shape])
