"""Episodes of chosen tasks as strips of pictures, which the page plays. JAX must have been started."""

import base64
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modlife.analysis.report.markup import Markup, element
from modlife.analysis.report.sections import Section, plural

COLUMNS = 8
"""Pictures in a row of a strip."""
WIDEST = 320
"""Pixels of a picture's width, at most."""
COLOURS = 64
"""Of a strip: it is drawn, or nearly so."""


@dataclass(frozen=True)
class Strip:
    """An episode: its pictures row after row in one."""

    run: str
    task: str
    png: bytes
    frames: int
    size: tuple[int, int]
    """Width and height of a picture."""
    fps: float
    total: float
    """The return."""
    is_solved: bool

    @property
    def words(self) -> str:
        """What is seen."""
        end = "the goal is met" if self.is_solved else "the goal is not met"
        return f"{self.run} in {self.task}: return {self.total:.2f}, {end}"


def filmed(path: Path, tasks: Sequence[str], *, seed: int = 0) -> list[Strip]:
    """An episode of each task by the agent that a run directory holds."""
    from modlife.domains.film import film
    from modlife.runs.load import Run

    run = Run.load(path)
    env, strips = run.agent.env, []
    pictures = run.domain.of("pictures", env)
    for name in tasks:
        task = run.task(name)
        with tempfile.TemporaryDirectory() as folder:
            gif = Path(folder, "film.gif")
            returns, solved = film(env, pictures, task, run.actor(task), gif, episodes=1, seed=seed)
            png, frames, size = strip_of(gif)
        who = path.resolve().name
        strips.append(Strip(who, str(task), png, frames, size, pictures.fps, returns[0], solved[0]))
    return strips


def strip_of(gif: Path) -> tuple[bytes, int, tuple[int, int]]:
    """The frames of a GIF as one PNG, their number and their size."""
    from PIL import Image, ImageSequence

    with Image.open(gif) as film:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(film)]
    width = min(WIDEST, frames[0].width)
    size = (width, round(frames[0].height * width / frames[0].width))
    columns = min(COLUMNS, len(frames))
    sheet = Image.new("RGB", (columns * size[0], -(-len(frames) // columns) * size[1]))
    for place, frame in enumerate(frames):
        small = frame if frame.size == size else frame.resize(size)
        sheet.paste(small, (place % columns * size[0], place // columns * size[1]))
    data = io.BytesIO()
    sheet.quantize(COLOURS).save(data, "PNG", optimize=True)
    return data.getvalue(), len(frames), size


def section(strips: Sequence[Strip]) -> Section | None:
    """The films; without a script, all pictures of each."""
    if not strips:
        return None
    about = f"{plural(len(strips), 'episode')} of the agent as it was last saved. Nothing moves until you press play."
    return Section("films", "What does it look like?", "Films", about, [player(strip) for strip in strips])


def player(strip: Strip) -> Markup:
    """A film with what the script needs to play it."""
    source = "data:image/png;base64," + base64.b64encode(strip.png).decode()
    picture = Markup(f'<img src="{source}" alt="">')  # too long for what text may be
    about: dict[str, Any] = {
        "data_frames": strip.frames,
        "data_columns": min(COLUMNS, strip.frames),
        "data_width": strip.size[0],
        "data_height": strip.size[1],
        "data_fps": f"{strip.fps:g}",
    }
    strip_box = element(
        "div", picture, class_="strip", role="img", aria_label=f"Pictures of {strip.words}", tabindex="0"
    )
    return element("figure", element("figcaption", strip.words), strip_box, class_="film third", **about)
