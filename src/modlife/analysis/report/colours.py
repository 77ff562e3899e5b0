"""Colours that can be seen on light and on dark ground, whoever looks; every line also has its own dashes."""

from collections.abc import Sequence

import numpy as np

GROUNDS = {"light": "#ffffff", "dark": "#171b22"}
"""What charts stand on; the stylesheet has the same."""
CONTRAST = 4.5
"""The least between a colour and its ground: what WCAG 2 asks for between text and its ground (AA)."""
SCALES = {"light": ("#e6eef7", "#0b3c6f"), "dark": ("#22344a", "#b9dcff")}
"""The ends of the scale of a heat map: of one hue, and always darker or always lighter."""
OTHERS = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#d55e00", "#0072b2", "#f0e442")
"""Okabe and Ito's colours, which nearly everybody can tell apart: for further kinds of lives of one agent."""
STEPS = 16
"""Colours of a heat map."""
Colour = tuple[float, float, float]


def parsed(colour: object) -> Colour:
    """A colour's parts, of 1, from whatever Matplotlib calls a colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)  # pyright: ignore[reportArgumentType]  # from a table of agents
    return red, green, blue


def written(colour: Sequence[float]) -> str:
    """A colour for a stylesheet."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def luminance(colour: Sequence[float]) -> float:
    """Relative luminance: .2126 R + .7152 G + .0722 B of linear parts (WCAG 2)."""
    parts = np.array(colour, float)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: Sequence[float], other: Sequence[float]) -> float:
    """(L1 + .05) / (L2 + .05), of the lighter to the darker (WCAG 2): 1 to 21."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def readable(colour: object, theme: str) -> str:
    """The colour, or the nearest to it on the way to black or white that can be seen on a theme's ground."""
    ground, own = parsed(GROUNDS[theme]), np.array(parsed(colour))
    away = np.zeros(3) if luminance(ground) > 0.5 else np.ones(3)
    for part in np.linspace(0, 1, 41):
        mixed = tuple((1 - part) * own + part * away)
        if contrast(mixed, ground) >= CONTRAST:
            return written(mixed)
    return written(tuple(away))


def over(colour: Sequence[float]) -> str:
    """Black or white: what can better be read on a colour. Its contrast is never less than the root of 21, 4.58."""
    return max("#000000", "#ffffff", key=lambda text: contrast(parsed(text), colour))


def told_apart(colours: Sequence[str]) -> list[str]:
    """Colours of series; one that an earlier series has is replaced by the next of the others."""
    found: list[str] = []
    for colour in colours:
        free = [other for other in OTHERS if other not in found]
        found.append(colour if colour not in found or not free else free[0])
    return found


def scale(theme: str) -> list[str]:
    """The colours of a heat map, from the least value to the greatest."""
    low, high = (np.array(parsed(end)) for end in SCALES[theme])
    return [written((1 - part) * low + part * high) for part in np.linspace(0, 1, STEPS)]


def variables(theme: str, series: Sequence[object]) -> str:
    """The stylesheet's variables: --g0, ... for the series, --h0, ... for heat maps, --n0, ... for numbers in them."""
    found = {f"g{number}": readable(colour, theme) for number, colour in enumerate(series)}
    for number, colour in enumerate(scale(theme)):
        found |= {f"h{number}": colour, f"n{number}": over(parsed(colour))}
    return "".join(f"--{name}:{value};" for name, value in found.items())


def classes(series: int) -> str:
    """The rules that give elements their colours."""
    lines = [f".g{number}{{--c:var(--g{number})}}" for number in range(series)]
    cells = [f".h{number}{{fill:var(--h{number})}}.plot .n{number}{{fill:var(--n{number})}}" for number in range(STEPS)]
    return "".join([*lines, *cells])
