"""`modlife export`."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from modlife.cli.counter import counting
from modlife.cli.words import check_file, tell, whole_file
from modlife.errors import InputError, plain
from modlife.exports.packages import need


@dataclass(frozen=True)
class Options:
    """Take a policy or data out of a run directory, in formats that other programs read."""

    run: tyro.conf.Positional[Path]
    """A run directory made by `modlife train`."""
    onnx: Path | None = None
    """Write the policy for a task as this ONNX file, checked against the agent with 1,000 observations."""
    minari: Path | None = None
    """Write the replay of each task as a Minari data set below this directory (MINARI_DATASETS_PATH)."""
    task: tuple[str, ...] = ()
    """Which tasks, each as one component per factor; by default the last one learnt for ONNX, all for Minari."""


def run(options: Options) -> None:
    """Exports."""
    check(options)
    from modlife.runtime import start_jax

    start_jax()
    from modlife.runs.load import Run

    found = Run.load(options.run)
    for complaint in found.complaints:
        tell(complaint)
    if options.onnx is not None:
        from modlife.exports.onnx_policy import export_onnx

        with whole_file(options.onnx) as aside, counting():
            sentence = export_onnx(found, next(iter(options.task), None), aside)
        print(plain(f"{found.task(next(iter(options.task), None))}: {options.onnx}, {sentence}"))
    if options.minari is not None:
        from modlife.exports.minari_sets import export_minari

        with counting():
            for sentence in export_minari(found, options.task, options.minari):
                print(plain(sentence), flush=True)


def check(options: Options) -> None:
    """Something is asked for, and can be done."""
    if options.onnx is None and options.minari is None:
        raise InputError("Say what to write: --onnx policy.onnx, or --minari DIRECTORY.")
    if options.onnx is not None:
        check_file("model", options.onnx, ".onnx")
        if len(options.task) > 1:
            raise InputError(f"--task {' '.join(options.task)}: an ONNX file holds the policy for one task.")
        need("onnx", "onnx", "onnxruntime")
    if options.minari is not None:
        need("minari", "minari", "h5py")
