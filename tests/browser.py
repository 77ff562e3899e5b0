"""A real browser for tests: Chromium without a window, spoken to over a pipe by its own protocol (DevTools)."""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions")
RULES = """{
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations']
}"""
"""What axe-core looks for; what is right it need not describe, which halves its time."""
PATIENCE = 60.0
"""Seconds to wait for an answer."""
REQUIRED = "MODLIFE_BROWSER_TESTS"
"""The variable of the environment that says `required` where tests in a browser must not be skipped: in `.ci/run`."""


def program() -> str | None:
    """Chromium or Chrome, where it is installed."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Browser:
    """A browser with one page."""

    process: subprocess.Popen
    to: int
    """What it reads, ..."""
    from_: int
    """... and what it writes."""
    session: str | None = None
    sent: int = 0
    rest: bytes = b""
    events: list[dict[str, Any]] = field(default_factory=list)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method and waits for its answer; what happens meanwhile is kept."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.sent:
                assert "error" not in answer, answer
                return answer["result"]

    def receive(self, patience: float = PATIENCE) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.from_], [], [], patience)
            data = os.read(self.from_, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("The browser says nothing.")
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        answer = json.loads(message)
        if "id" not in answer:
            self.events.append(answer)
        return answer

    def wait_for(self, method: str) -> None:
        """Waits until something has happened."""
        while not any(event["method"] == method for event in self.events):
            self.receive()

    def open(self, page: Path, *, script: bool = True) -> None:
        """Opens a file, with scripts or without, and forgets what happened before."""
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def ask(self, expression: str) -> Any:
        """The value of an expression on the page; of a promise, what it comes to."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str, patience: float = PATIENCE) -> None:
        """Waits until an expression holds."""
        end = time.monotonic() + patience
        while not self.ask(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.02)

    def violations(self, axe: str) -> list[Any]:
        """What axe-core, given as its source, finds on the page; tables that are closed it does not look at.

        It may take minutes: the browser is asked again and again, so that it is not silent for long.
        """
        found = "all.violations.map((one) => [one.id, one.nodes[0].html])"
        failed = "(error) => { window.broken = [['axe', String(error)]]; }"
        run = f"axe.run({RULES}).then((all) => {{ window.broken = {found}; }}).catch({failed})"
        self.ask(f"{axe}; window.broken = null; {run}; 0")
        self.until("window.broken !== null", patience=240)
        return self.ask("window.broken")

    def key(self, name: str) -> None:
        """Presses a key."""
        text = {"text": name} if len(name) == 1 else {}
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Enter": 13, "Home": 36}
        code = {"windowsVirtualKeyCode": codes[name]} if name in codes else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, **text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, **code)

    def point(self, x: float, y: float) -> None:
        """Moves the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        """Presses the pointer's button and lets it go."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def like(self, *, width: int = 1280, height: int = 900, **media: str) -> None:
        """Shows pages as on a screen of a size, to somebody with wishes such as `prefers_color_scheme="dark"`."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        wishes = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.call("Emulation.setEmulatedMedia", features=wishes)

    def picture(self, path: Path) -> None:
        """A PNG of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    @property
    def complaints(self) -> list[Any]:
        """Errors and warnings, of scripts and of the browser, since the page was opened."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event["params"] for event in self.events if event["method"] in kinds]

    @property
    def requests(self) -> list[str]:
        """Addresses that were asked for since the page was opened."""
        found = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in found]


@contextlib.contextmanager
def browser(name: str) -> Iterator[Browser]:
    """Starts a browser with a new, empty profile; it ends with the block."""
    (theirs, to), (from_, mine) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [name, *FLAGS, *QUIET, "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        process = started(command, theirs, mine)
        for end in (theirs, mine):
            os.close(end)
        try:
            yield attached(Browser(process, to, from_))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for end in (to, from_):
                os.close(end)


START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


def started(command: list[str], reads: int, writes: int) -> subprocess.Popen:
    """The process, which reads commands from its file 3 and writes answers to its file 4."""
    whole = [sys.executable, "-S", "-c", START, str(reads), str(writes), *command]
    return subprocess.Popen(
        whole, pass_fds=(reads, writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def attached(found: Browser) -> Browser:
    """The browser with its page at hand."""
    target = next(one for one in found.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
    session = found.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
    found.session = session
    for part in ("Page", "Runtime", "Log", "Network"):
        found.call(f"{part}.enable")
    return found
