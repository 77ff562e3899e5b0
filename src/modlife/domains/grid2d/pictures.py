"""Pictures of the 2-D world: the grid, the agent's field of view lit, the wanted target ringed."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from modlife.domains.grid2d.environment import DOOR, FIRST_TARGET, FLOOR, FOOD, LAVA, WALL, Grid2D, State, view_cells
from modlife.domains.grid2d.world import COLOURS, PRIMITIVES
from modlife.domains.pictures import Picture, captioned, contact_sheet

LIT, UNLIT, GRID = "#fff6cf", "#d3d3d8", "#b4b4ba"
PALETTE = {
    **{"red": "#e0312d", "green": "#2aa43a", "blue": "#2c63e0", "purple": "#9b35c9"},
    **{"yellow": "#e8c413", "grey": "#6f7680", "orange": "#f08019", "cyan": "#17b7c9"},
    **{"pink": "#f27fb2", "brown": "#8a5a33", "olive": "#7f8a1c", "navy": "#1d2c6b"},
}
SHARPNESS = 3
"""Drawn this many times larger, then scaled down: smooth edges."""
SHEET_TILE = 18
"""Pixels to a cell in a picture of all tasks."""


@dataclass(frozen=True)
class GridPictures:
    """Pictures for films and contact sheets."""

    env: Grid2D
    fps: float = 6
    every: int = 1
    linger: int = 1

    def draw(self, state: State, note: str = "", *, tile: int = 32) -> Picture:
        """The grid with so many pixels to a cell and, below it, the task and a note."""
        task = " / ".join(self.env.graph.named(np.asarray(state.task).tolist()).components)
        return captioned(draw_grid(self.env, state, tile=tile), task + note, size=max(10, tile // 2))

    def action(self, state: State, action: int) -> str:
        """What an action does by the task's dynamics, such as: turn left."""
        primitive = self.env.world.action_table()[int(state.task[2])][int(action)]
        return PRIMITIVES[primitive].replace("_", " ") if primitive < len(PRIMITIVES) else "do nothing"

    def sheet(self, seed: int) -> Picture:
        """A first layout of every task."""
        env, graph = self.env, self.env.graph
        tasks = jnp.array([graph.indices(task) for task in graph.tasks])
        keys = jax.random.split(jax.random.key(seed), len(tasks))
        states = jax.jit(jax.vmap(lambda task, key: env.reset(task, key=key)))(tasks, keys)
        each = [jax.tree.map(lambda leaf, n=n: leaf[n], states) for n in range(len(tasks))]
        columns = min(2 * env.world.dynamics_count, 16)
        return contact_sheet([self.draw(state, tile=SHEET_TILE) for state in each], columns=columns)


def draw_grid(env: Grid2D, state: State, *, tile: int) -> Picture:
    """The grid alone."""
    size, scale = env.world.size, tile * SHARPNESS
    image = Image.new("RGB", (size * scale, size * scale), GRID)
    pen = ImageDraw.Draw(image)
    lit = lit_cells(env, state)
    rows, columns = np.indices((size, size), dtype=np.int8)
    codes = np.asarray(env.content(state, jnp.asarray(columns), jnp.asarray(rows)))
    wanted = FIRST_TARGET + int(state.task[1])
    for y in range(size):
        for x in range(size):
            cell = Brush(pen, x, y, scale)
            cell.box(0.015, fill=LIT if lit[y, x] else UNLIT)
            draw_content(cell, int(codes[y, x]), wanted=wanted)
    if int(state.static) == WALL and not state.closed:
        Brush(pen, int(state.column), int(state.gap), scale).box(0.08, outline=PALETTE["brown"], width=0.1)
    draw_agent(Brush(pen, int(state.x), int(state.y), scale), int(state.direction))
    return np.asarray(image.resize((size * tile, size * tile), Image.Resampling.BOX))


def lit_cells(env: Grid2D, state: State) -> np.ndarray:
    """Which cells of the grid the agent sees, as [y, x]; its own counts here."""
    lit = np.zeros((env.world.size, env.world.size), bool)
    x, y = (np.asarray(values) for values in view_cells(state))
    seen = np.asarray(env.visible_cells(state)) & (x >= 0) & (y >= 0) & (x < len(lit)) & (y < len(lit))
    lit[y[seen], x[seen]] = True
    lit[int(state.y), int(state.x)] = True
    return lit


class Brush:
    """Draws in one cell, with coordinates from 0 to 1 in it."""

    def __init__(self, pen: ImageDraw.ImageDraw, x: int, y: int, scale: int):
        self.pen, self.x, self.y, self.scale = pen, x, y, scale

    def at(self, *points: tuple[float, float]) -> list[tuple[float, float]]:
        """Points of the cell as pixels."""
        return [((self.x + px) * self.scale, (self.y + py) * self.scale) for px, py in points]

    def box(self, inset: float, *, fill: str | None = None, outline: str | None = None, width: float = 0) -> None:
        """A square, `inset` away from the cell's edge."""
        corners = self.at((inset, inset), (1 - inset, 1 - inset))
        self.pen.rectangle(corners, fill=fill, outline=outline, width=round(width * self.scale))

    def disc(self, x: float, y: float, radius: float, *, fill: str) -> None:
        """A filled circle."""
        self.pen.ellipse(self.at((x - radius, y - radius), (x + radius, y + radius)), fill=fill)

    def line(self, *points: tuple[float, float], fill: str, width: float) -> None:
        """A line through points."""
        self.pen.line(self.at(*points), fill=fill, width=round(width * self.scale), joint="curve")


def draw_content(cell: Brush, code: int, *, wanted: int) -> None:
    """What lies in a cell."""
    if code in OBJECTS:
        OBJECTS[code](cell)
    elif code >= FIRST_TARGET:
        cell.box(0.16, fill=PALETTE[COLOURS[code - FIRST_TARGET]])
        if code == wanted:
            cell.box(0.04, outline="black", width=0.09)


def draw_wall(cell: Brush) -> None:
    """A dark block."""
    cell.box(0, fill="#565b66")


def draw_floor(cell: Brush) -> None:
    """A blue tile."""
    cell.box(0.06, fill="#9fb8d6")
    cell.line((0.06, 0.5), (0.94, 0.5), fill="#7f9cc0", width=0.05)
    cell.line((0.5, 0.06), (0.5, 0.94), fill="#7f9cc0", width=0.05)


def draw_food(cell: Brush) -> None:
    """An apple."""
    cell.disc(0.5, 0.56, 0.26, fill="#b5442f")
    cell.line((0.5, 0.34), (0.62, 0.14), fill="#3d7d2c", width=0.08)


def draw_lava(cell: Brush) -> None:
    """An orange block with waves."""
    cell.box(0.015, fill="#ff7f0e")
    for height in (0.3, 0.55, 0.8):
        wave = [(0.1 + 0.2 * n, height - 0.08 * (n % 2)) for n in range(5)]
        cell.line(*wave, fill="#7a2a00", width=0.06)


def draw_door(cell: Brush) -> None:
    """A closed door with a knob."""
    cell.box(0.04, fill=PALETTE["brown"])
    cell.disc(0.76, 0.5, 0.08, fill="#f2d16b")


OBJECTS = {WALL: draw_wall, FLOOR: draw_floor, FOOD: draw_food, LAVA: draw_lava, DOOR: draw_door}


def draw_agent(cell: Brush, direction: int) -> None:
    """A dark triangle that points ahead."""
    corners = [(0.85, 0.5), (0.2, 0.82), (0.2, 0.18)]
    for _ in range(direction):
        corners = [(1 - y, x) for x, y in corners]
    cell.pen.polygon(cell.at(*corners), fill="#15161a")
    cell.line(*corners, corners[0], fill="white", width=0.06)
