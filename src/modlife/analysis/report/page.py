"""One page for one life or many, that needs nothing else: no network, and no script but its own."""

import base64
import hashlib
import html
import itertools
import time
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from modlife import __version__
from modlife.analysis.lives import colour, write_together
from modlife.analysis.report import films
from modlife.analysis.report.charts import Chart
from modlife.analysis.report.colours import classes, told_apart, variables
from modlife.analysis.report.films import Strip
from modlife.analysis.report.headline import headline, subtitle_of, terms_of, title_of
from modlife.analysis.report.markup import Markup, element, escaped, joined
from modlife.analysis.report.panels import ORIGINS, PANELS
from modlife.analysis.report.sections import Fold, Part, Section
from modlife.analysis.report.told import Study
from modlife.pauses import counted

ASSETS = files("modlife.analysis.report") / "assets"


def asset(name: str) -> str:
    """A file of this package."""
    return (ASSETS / name).read_text("utf-8")


def page(study: Study, strips: Sequence[Strip] = (), *, reload: int | None = None) -> str:
    """The page, as HTML; `reload` is the number of seconds after which it shows itself anew."""
    panels = [*PANELS, lambda study: films.section(strips), *ORIGINS]
    sections = [section for panel in counted(panels, "sections drawn") if (section := panel(study)) is not None]
    style, script = stylesheet(study), asset("script.js")
    title, again = title_of(study), element("meta", http_equiv="refresh", content=reload) if reload else ""
    return Template(asset("page.html")).substitute(
        policy=html.escape(policy(style, script)),
        again=again,
        title=escaped(title),
        subtitle=joined(element("p", text, class_="about") for text in (subtitle_of(study), *terms_of(study)) if text),
        where=element("code", study.only.life.path) if study.only else "",
        state="" if study.has_ended else element("span", "not ended", class_="badge"),
        headline=headline(study),
        contents=joined(element("a", one.short, href=f"#{one.name}") for one in sections),
        sections=rendered(sections),
        made=escaped(f"modlife {__version__}, {time.strftime('%Y-%m-%d %H:%M:%S')}"),
        style=style,
        script=script,
    )


def write(out: Path, study: Study, strips: Sequence[Strip] = (), *, reload: int | None = None) -> int:
    """Writes the page, whole, and returns its number of bytes."""
    data = page(study, strips, reload=reload).encode()
    write_together({out: data})
    return len(data)


def stylesheet(study: Study) -> str:
    """The stylesheet with the colours of these lives."""
    series = told_apart([colour(group.agent) for group in study.groups])
    themes = {theme: variables(theme, series) for theme in ("light", "dark")}
    return Template(asset("style.css")).substitute(**themes, classes=classes(len(series)))


def policy(style: str, script: str) -> str:
    """What the page may do: nothing but its own style and script, and pictures inside it."""
    return (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """The hash of a script or stylesheet for a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def rendered(sections: Sequence[Section]) -> Markup:
    """Sections with numbered charts."""
    numbers = itertools.count(1)
    return joined(
        element(
            "section",
            element("h2", section.title, id=f"{section.name}-title"),
            element("p", section.about, class_="about"),
            parts_of(section.parts, numbers),
            id=section.name,
            aria_labelledby=f"{section.name}-title",
        )
        for section in sections
    )


def parts_of(parts: Sequence[Part], numbers: Iterator[int]) -> Markup:
    """Parts side by side where there is room; charts get the next numbers."""
    return element("div", *(part_of(part, numbers) for part in parts), class_="parts")


def part_of(part: Part, numbers: Iterator[int]) -> Markup:
    """A chart, text, or what opens on demand."""
    if isinstance(part, Chart):
        return part.html(next(numbers))
    if isinstance(part, Fold):
        title, content = element("summary", part.title), parts_of(part.parts, numbers)
        content = element("noscript", content) if part.is_late else content  # where there are scripts, that is text
        return element("details", title, content, open="" if part.is_open else None)
    return part
