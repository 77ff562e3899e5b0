"""The table of trials."""

from trials import bits, damage, faults, fuzz, kills, power, races, signals
from trials.bench import Trial, batches

TRIALS = {
    one.name: one
    for one in (
        Trial(
            "kills",
            "Killed at any moment (SIGKILL) and resumed, a life ends with the same bytes; no saved checkpoint is lost",
            "kills",
            "500",
            kills.run,
            batches(kills.PER_LIFE),
            processes=False,
        ),
        Trial(
            "signals",
            "Asked to stop (SIGINT, SIGTERM) at any moment, a life is saved within 15 s and can be resumed",
            "signals",
            "300",
            signals.run,
            batches(signals.PER_LIFE),
            processes=False,
        ),
        Trial(
            "bits",
            "Every bit of what a run directory tells of its life is checked: any flip is noticed by eval and resume",
            "bits flipped",
            "all",
            bits.run,
            bits.units,
        ),
        Trial(
            "damage",
            "Whatever happens to its files, a run directory is read as it was, or a sentence names the file",
            "damages",
            "10000",
            damage.run,
            batches(damage.PER_UNIT),
        ),
        Trial(
            "faults",
            "Whichever call of the operating system fails, a sentence says so, and nothing that was saved is lost",
            "calls that failed",
            "2000",
            faults.run,
            faults.units,
        ),
        Trial(
            "power",
            "After power loss, whatever the disk had time for, a run directory opens with what was saved last",
            "states of the disk",
            "10000",
            power.run,
            batches(power.PER_UNIT),
        ),
        Trial(
            "races",
            "Of several writers that want one run directory, processes or threads, exactly one gets it",
            "races",
            "500",
            races.run,
            batches(races.PER_UNIT),
        ),
        Trial(
            "fuzz",
            "Whatever is typed, or given as a config: a sentence and an exit code of 0, 1 or 2, never a traceback",
            "command lines and configs",
            "1000",
            fuzz.run,
            batches(fuzz.PER_UNIT),
        ),
    )
}
