"""Opens pages of committed lives in a real Chromium: how long that takes, and what axe-core finds.

    PYTHONPATH=tests python scripts/report_checks.py

The pages: one life of 64 tasks; all compositional and multi-task lives. Tests look at the first only once, and not at
the second, which keeps axe-core busy for too long.
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

from browser import Browser, browser, program

from modlife.analysis.report import page
from modlife.analysis.report.told import read, study_of

RESULTS = Path(__file__).parent.parent / "results"
OPENED = 7
"""How often each page is opened."""
SCREENS = (("light", 1280), ("dark", 375))


def opening(found: Browser, out: Path) -> list[float]:
    """Milliseconds until a page was complete, in order."""
    took = []
    for _ in range(OPENED):
        found.open(out)
        took.append(found.ask("performance.getEntriesByType('navigation')[0].domComplete"))
    return sorted(took)


def main() -> None:
    """Writes the pages, opens them, tells."""
    name, package = program(), importlib.util.find_spec("axe_core_python")
    if name is None or package is None or package.origin is None:
        sys.exit("This needs Chromium and axe-core (`pip install axe-core-python`).")
    axe = Path(package.origin).with_name("axe.min.js").read_text()
    lives = [read(path) for path in (*sorted(RESULTS.glob("comp-*")), *sorted(RESULTS.glob("mtl-*")))]
    with tempfile.TemporaryDirectory() as folder, browser(name) as found:
        for some in (lives[:1], lives):
            out = Path(folder) / f"{len(some)}.html"
            page.write(out, study_of(some))
            took = opening(found, out)
            print(
                f"{len(some)} lives: {out.stat().st_size:,} bytes; complete after {took[OPENED // 2]:.0f} ms", end=" "
            )
            print(f"(median of {OPENED}; {took[0]:.0f} to {took[-1]:.0f})")
            for theme, width in SCREENS:
                found.like(width=width, prefers_color_scheme=theme)
                found.open(out)
                print(f"  {theme}, {width} wide: axe-core finds {found.violations(axe) or 'nothing'}")


if __name__ == "__main__":
    main()
