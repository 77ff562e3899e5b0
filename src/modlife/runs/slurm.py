"""Many lives as an array of a Slurm cluster: a script for `sbatch`, with one element for each life."""

import shlex
import sys
from collections.abc import Sequence

from modlife.errors import InputError
from modlife.runs.many import Planned

SCRIPT = """\
#!/bin/bash
# {count} lives, an array element each. `sbatch THIS-FILE` submits them, and options of sbatch win over those below:
# for example sbatch --time=08:00:00 --mem=4G --partition=NAME THIS-FILE
#SBATCH --job-name=modlife
#SBATCH --array=0-{last}{at_once}
#SBATCH --cpus-per-task=1
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append

case "$SLURM_ARRAY_TASK_ID" in
{lives}
*) echo "There is no life of number '$SLURM_ARRAY_TASK_ID'." >&2; exit 2 ;;
esac

# Two minutes before the time is up Slurm sends SIGTERM to this shell, which hands it on; then the life is saved.
asked=
child=
trap 'asked=1; [ -z "$child" ] || kill -TERM $child' TERM

python={python}
"${{PYTHON:-$python}}" -m modlife train "${{life[@]}}" --parent $$ &
child=$!
[ -z "$asked" ] || kill -TERM $child
while :; do
  wait $child
  code=$?
  [ -n "$asked" ] || break
  asked=
done

# A life that was stopped goes on when its turn comes again; one that has ended, or cannot be lived, does not.
if [ $code = 143 ]; then
  scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit $code
"""


def script(lives: Sequence[Planned], at_once: int | None) -> str:
    """The script; every machine must have the run directories and this Python under the same names."""
    if not lives:
        raise InputError("All lives have ended: there is nothing for Slurm to do.")
    lines = [f"{number}) life=({shlex.join(life.anywhere())}) ;;" for number, life in enumerate(lives)]
    return SCRIPT.format(
        count=len(lives),
        last=len(lives) - 1,
        at_once=f"%{at_once}" if at_once else "",
        lives="\n".join(lines),
        python=shlex.quote(sys.executable),
    )
