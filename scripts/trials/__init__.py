"""Trials of what the run store and the command line promise, one file each; `scripts/soak.py` repeats them.

They use the small lives of the tests.
"""

import sys
from pathlib import Path

for folder in (Path(__file__).parents[1], Path(__file__).parents[2] / "tests"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
