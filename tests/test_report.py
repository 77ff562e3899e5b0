"""The page that shows lives, in a real browser; and its parts, by numbers."""

import importlib.util
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import REQUIRED, Browser, browser, program
from lives import Lived
from PIL import Image
from terminal import command
from test_figures import IMAGE, RESULTS, made_up, renamed

import modlife
from modlife.analysis.report import colours, page, told
from modlife.analysis.report.charts import Range, span
from modlife.analysis.report.headline import made_of, terms_of
from modlife.analysis.report.lines import path_of, thinned
from modlife.analysis.report.markup import Markup, element
from modlife.analysis.report.panels.modules import choosing
from modlife.analysis.report.panels.tasks import table_of
from modlife.analysis.report.told import Told, read, read_all, study_of
from modlife.cli import report as reporting
from modlife.lifelong.agents import AGENTS
from modlife.runs.config import life_from_options
from modlife.runs.store import RunDirectory

AXES = ("axe_core_python", "axe_playwright_python")
"""Packages that carry axe-core, which looks for what keeps people from using a page."""
SECTIONS = ["learning", "phases", "memory", "modules", "search", "tasks", "times", "origin"]


def installed(found: str | None, sentence: str) -> str:
    """What was found; where there is nothing, a skipped test, or a failed one where all of them are to run."""
    if found is None and os.environ.get(REQUIRED) == "required":
        pytest.fail(f"{sentence} {REQUIRED}=required asks for it; without that, these tests are skipped.")
    return found or pytest.skip(sentence)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser(installed(program(), "No Chromium or Chrome is installed.")) as found:
        yield found


@pytest.fixture(scope="module")
def committed() -> list[Told]:
    """Twenty lives and more, the longest first."""
    return [read(path) for path in (*sorted(RESULTS.glob("comp-*")), *sorted(RESULTS.glob("mtl-*")))]


@pytest.fixture(scope="module")
def one(committed: list[Told], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a life of 64 tasks."""
    out = tmp_path_factory.mktemp("one") / "report.html"
    page.write(out, study_of(committed[:1]))
    return out


@pytest.fixture(scope="module")
def several(committed: list[Told], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of twenty lives."""
    out = tmp_path_factory.mktemp("several") / "report.html"
    page.write(out, study_of(committed))
    return out


@pytest.fixture(scope="module")
def axe() -> str:
    found = next((spec.origin for name in AXES if (spec := importlib.util.find_spec(name))), None)
    sentence = "axe-core is not installed; `pip install axe-core-python` brings it."
    return Path(installed(found, sentence)).with_name("axe.min.js").read_text()


def test_a_missing_browser_fails_where_it_is_required_and_is_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"No browser\."):
        installed(program(), "No browser.")
    monkeypatch.setenv(REQUIRED, "required")
    with pytest.raises(pytest.fail.Exception, match=r"No browser\. MODLIFE_BROWSER_TESTS=required asks for it"):
        installed(program(), "No browser.")
    assert f"export {REQUIRED}=required" in (RESULTS.parent / ".ci/run").read_text()


def charts(found: Browser) -> list[dict[str, Any]]:
    """What stands in each chart."""
    return found.ask("""[...document.querySelectorAll(".plot")].map((plot) => ({
        title: plot.closest("figure").querySelector("figcaption").textContent,
        marks: plot.querySelectorAll(".area path, .area rect, .area circle").length,
        drawn: [...plot.querySelectorAll(".area path")].every((path) => path.getAttribute("d").length > 8),
        width: plot.querySelector(".area svg").getBoundingClientRect().width,
        cells: plot.closest("figure").querySelectorAll("td").length,
    }))""")


def opening(found: Browser, out: Path) -> Iterator[float]:
    """Milliseconds until a page was complete, of up to three times: the machine may be busy."""
    for _ in range(3):
        found.open(out)
        yield found.ask("performance.getEntriesByType('navigation')[0].domComplete")


def test_the_page_of_a_life_is_small_and_opens_at_once(chromium: Browser, one: Path):
    assert one.stat().st_size < 500_000
    assert any(took < 1000 for took in opening(chromium, one))


def test_the_page_of_twenty_lives_is_small_and_opens_at_once(chromium: Browser, several: Path):
    assert several.stat().st_size < 5_000_000
    chromium.like()
    assert any(took < 1000 for took in opening(chromium, several))
    assert chromium.complaints == []
    assert all(chart["marks"] and chart["drawn"] for chart in charts(chromium))
    assert (
        chromium.ask(
            "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector('header .scroll'))"
        )
        == 0
    )  # no column is cut off
    kinds = chromium.ask("document.querySelectorAll('header tbody tr').length")
    lives = {path.name.rpartition("-")[0] for path in RESULTS.iterdir() if path.name.startswith(("comp-", "mtl-"))}
    assert kinds == len(lives) >= 2 + 9  # lifelong, and multi-task with three networks and three numbers of tasks


def test_lives_of_a_comparison_have_no_elements_until_they_are_opened(chromium: Browser, several: Path):
    chromium.like()
    chromium.open(several, script=False)
    whole = chromium.ask("document.querySelectorAll('*').length")
    assert chromium.ask("document.querySelectorAll('#memory .plot').length") > 20  # all is there without a script
    chromium.open(several)
    assert chromium.ask("document.querySelectorAll('*').length") < whole / 4
    second = "document.querySelectorAll('#memory > .parts > details')[1]"
    assert chromium.ask(f"{second}.querySelectorAll('*').length") == 2
    for _ in range(2):  # it is remembered
        chromium.ask(f"{second}.open = true")
        chromium.until(f"{second}.querySelectorAll('.plot').length === 2")
        chromium.ask(f"{second}.querySelector('.plot').focus()")
        chromium.key("ArrowRight")
        assert "tasks were learnt: return" in chromium.ask("document.getElementById('said').textContent")
        chromium.open(several)
    assert chromium.ask(f"{second}.open && {second}.querySelectorAll('.plot').length") == 2
    assert chromium.complaints == []
    chromium.ask("sessionStorage.clear()")


@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_is_drawn_without_complaint(chromium: Browser, one: Path, theme: str, width: int):
    chromium.like(width=width, prefers_color_scheme=theme)
    chromium.open(one)
    assert chromium.complaints == []
    assert chromium.requests == [one.as_uri()]
    found = charts(chromium)
    assert len(found) == 10
    assert all(one["marks"] and one["drawn"] and one["cells"] and one["width"] > 150 for one in found), found
    assert chromium.ask("[...document.querySelectorAll('section')].map((one) => one.id)") == SECTIONS
    assert chromium.ask("document.documentElement.scrollWidth") == width  # nothing stands out
    grounds = {"light": "rgb(244, 246, 249)", "dark": "rgb(14, 17, 22)"}
    assert chromium.ask("getComputedStyle(document.body).backgroundColor") == grounds[theme]


def pixels(found: Browser, page: Path, theme: str) -> np.ndarray:
    """The whole page in a theme, every fourth line and column of it: [row, column, red green blue]."""
    found.like(prefers_color_scheme=theme)
    found.open(page)
    picture = page.with_name(f"{theme}.png")
    found.picture(picture)
    with Image.open(picture) as image:
        return np.asarray(image.convert("RGB"))[::4, ::4]


def test_pictures_in_both_themes_differ_and_neither_is_blank(chromium: Browser, one: Path):
    light, dark = (pixels(chromium, one, theme) for theme in ("light", "dark"))
    assert light.shape == dark.shape and light.shape[0] > 800 and light.shape[1:] == (320, 3)
    assert (light != dark).any(axis=2).mean() > 0.9 and light.mean() > 200 and dark.mean() < 80
    for shown in (light, dark):
        assert (shown != shown[0, 0]).any(axis=2).mean() > 0.5  # most of the page is cards ...
        assert (np.ptp(shown, axis=1).max(axis=1) > 50).mean() > 0.4  # ... and much of them has something on it
    fills = chromium.ask(
        "[...document.querySelectorAll('#modules .area text')].map((one) => getComputedStyle(one).fill)"
    )
    assert set(fills) == {"rgb(0, 0, 0)", "rgb(255, 255, 255)"}


def test_without_scripts_all_charts_and_tables_are_there(chromium: Browser, one: Path):
    chromium.like()
    chromium.open(one, script=False)
    assert all(chart["marks"] and chart["cells"] for chart in charts(chromium))
    assert chromium.ask("document.querySelector('.hint').hidden")  # what needs the script is not spoken of
    assert chromium.ask("document.querySelector('.plot').getAttribute('role')") == "img"


def matrix_of(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """The tasks in their order, and the evaluations after each stage."""
    records = RunDirectory(path).metrics()
    seen = [record for record in records if record.get("when") == "seen"]
    return seen[-1]["tasks"], seen


def test_pointing_at_a_cell_tells_its_value(chromium: Browser, one: Path):
    chromium.like()
    chromium.open(one)
    tasks, seen = matrix_of(RESULTS / "comp-search-64-0")
    chromium.ask("document.querySelector('#memory .area').scrollIntoView({block: 'center'})")
    left, top, width, height = chromium.ask(
        "(({x, y, width, height}) => [x, y, width, height])"
        "(document.querySelector('#memory .area').getBoundingClientRect())"
    )
    chromium.point(left + 40.5 / 64 * width, top + 20.5 / 64 * height)
    value = seen[40]["return"][seen[40]["tasks"].index(tasks[20])]
    expected = f"{tasks[20]}, when 41 tasks were learnt: return {value:.2f}"
    chromium.until(f"document.querySelector('.tip')?.textContent === {json.dumps(expected)}")
    chromium.point(2, 2)
    chromium.until("!document.querySelector('.tip')")


def test_arrow_keys_read_the_values(chromium: Browser, one: Path):
    chromium.like()
    chromium.open(one)
    chromium.ask("document.querySelector('#memory .plot').focus()")
    tasks, seen = matrix_of(RESULTS / "comp-search-64-0")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown"):  # the first shows the cursor
        chromium.key(key)
    value = seen[2]["return"][1]
    said = chromium.ask("document.getElementById('said').textContent")
    assert said == f"{tasks[1]}, when 3 tasks were learnt: return {value:.2f}"
    assert chromium.ask("!!document.querySelector('#memory .cursor')")
    chromium.key("t")
    chromium.until("document.querySelector('#memory details').open")
    chromium.key("t")
    chromium.until("!document.querySelector('#memory details').open")


def by_tab(found: Browser) -> int:
    """Which chart it is that Tab, pressed again and again, comes to next: -1 where there is none."""
    for _ in range(20):
        found.key("Tab")
        place = found.ask("[...document.querySelectorAll('.plot')].indexOf(document.activeElement)")
        if place >= 0:
            return place
    return -1


def test_every_chart_can_be_reached_and_read_by_keys(chromium: Browser, one: Path):
    chromium.like()
    chromium.open(one)
    for number in range(len(charts(chromium))):
        assert by_tab(chromium) == number
        chromium.key("ArrowRight")
        assert chromium.ask("document.activeElement.querySelector('.tip').textContent.length") > 10
        assert not chromium.ask("document.activeElement.querySelector('.cursor').hidden") or number == 4
    assert chromium.complaints == []


def test_the_theme_can_be_chosen(chromium: Browser, one: Path):
    chromium.like(prefers_color_scheme="light")
    chromium.open(one)
    chromium.ask("document.getElementById('theme').click()")
    assert chromium.ask("getComputedStyle(document.documentElement).colorScheme") == "dark"
    chromium.open(one)  # it is remembered
    assert chromium.ask("getComputedStyle(document.documentElement).colorScheme") == "dark"
    chromium.ask("sessionStorage.clear()")


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 375)])
def test_axe_finds_no_violation(chromium: Browser, searched: Lived, axe: str, tmp_path: Path, theme: str, width: int):
    page.write(tmp_path / "report.html", read_all([searched.path]))
    chromium.like(width=width, prefers_color_scheme=theme)
    chromium.open(tmp_path / "report.html")
    chromium.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert chromium.violations(axe) == []


def test_axe_finds_no_violation_in_a_long_life(chromium: Browser, one: Path, axe: str):
    chromium.like()
    chromium.open(one)
    assert chromium.violations(axe) == []


def test_axe_finds_no_violation_in_a_comparison(chromium: Browser, axe: str, tmp_path: Path):
    lives = [
        made_up(tmp_path / f"{agent}-{seed}", agent, seed=seed) for agent in ("comp-struct", "mtl") for seed in (0, 1)
    ]
    page.write(tmp_path / "report.html", read_all(lives))
    chromium.like(prefers_color_scheme="dark")
    chromium.open(tmp_path / "report.html")
    assert chromium.violations(axe) == []


def test_an_episode_is_played_and_stopped(chromium: Browser, searched: Lived, tmp_path: Path):
    out = tmp_path / "report.html"
    task = str(searched.config.chosen[0])
    end = command("report", str(searched.path), "--film", task, "--out", str(out))
    assert end.code == 0, end.err
    chromium.like()
    chromium.open(out)
    picture = "document.querySelector('canvas').toDataURL()"
    chromium.until(f"{picture}.length > 1000")
    first = chromium.ask(picture)
    button = "document.querySelector('.film button')"
    assert chromium.ask(f"{button}.textContent") == "Play"  # nothing moves by itself
    chromium.ask(f"{button}.click()")
    chromium.until(f"{picture} !== {json.dumps(first)} && document.querySelector('.film input').value > 1")
    chromium.ask(f"{button}.textContent === 'Pause' && {button}.click()")
    assert chromium.ask(f"{button}.textContent") == "Play"
    assert chromium.complaints == []
    chromium.open(out, script=False)
    assert chromium.ask("document.querySelector('.film img').getBoundingClientRect().width") > 100


def test_a_film_needs_a_checkpoint(tmp_path: Path):
    end = command(
        "report", str(RESULTS / "stl-four-0"), "--film", "wall/red/dynamics-0", "--out", str(tmp_path / "a.html")
    )
    assert end.code == 2 and "no checkpoint" in end.err and not (tmp_path / "a.html").exists()


def test_names_from_files_are_text(chromium: Browser, tmp_path: Path):
    path = made_up(tmp_path / f"{IMAGE}".replace("/", ""), "comp-struct")
    renamed(path, lambda name: IMAGE + name)
    out = tmp_path / "report.html"
    modlife.report(path, out=out)
    chromium.like()
    chromium.open(out)
    assert chromium.complaints == []
    assert chromium.ask("document.querySelectorAll('img').length") == 0
    assert IMAGE in chromium.ask("document.querySelector('#tasks tbody th').textContent")
    assert IMAGE in chromium.ask("document.querySelector('header code').textContent")
    chromium.ask("document.querySelector('#memory .plot').focus()")
    chromium.key("ArrowRight")
    assert IMAGE in chromium.ask("document.querySelector('.tip').textContent")
    assert not any(event["method"] == "Page.javascriptDialogOpening" for event in chromium.events)


def test_control_characters_are_written_out(tmp_path: Path):
    path = made_up(tmp_path / "a\x1b[31m\u202eb", "stl")
    text = page.page(read_all([path]))
    assert "\x1b" not in text and "\u202e" not in text and "a\\x1b[31m\\u202eb" in text
    end = command("report", str(path), "--out", str(tmp_path / "a.html"))
    assert end.code == 0 and "\x1b" not in end.out + end.err


def test_lives_that_differ_in_the_seed_are_averaged(chromium: Browser, tmp_path: Path):
    for seed, value in ((0, 0.4), (1, 0.6)):
        made_up(tmp_path / f"stl-{seed}", "stl", value=lambda number, task, value=value: value, seed=seed)
    made_up(tmp_path / "long", "stl", value=lambda number, task: 0.55, steps=40_000)
    out = tmp_path / "report.html"
    end = command("report", *(str(tmp_path / name) for name in ("stl-0", "stl-1", "long")), "--out", str(out))
    assert end.code == 0, end.err
    chromium.like()
    chromium.open(out)
    rows = chromium.ask("[...document.querySelectorAll('header tbody tr')].map((row) => row.innerText.split('\\t'))")
    assert [row[:3] for row in rows] == [
        ["STL, 20k steps", "2", "0.500 ± 0.100"],
        ["STL, 40k steps", "1", "0.550"],
    ]
    caption = chromium.ask("document.querySelector('header caption').textContent")
    assert caption.startswith("4 tasks; means over seeds ± standard error")  # what all rows share
    lead = chromium.ask("document.querySelector('.lead').textContent")
    assert lead == "STL, 4 tasks, 40k steps has the highest mean return at the end: 0.550 (1 seed)."
    differing = chromium.ask("[...document.querySelectorAll('#differences tbody tr')].map((row) => row.innerText)")
    assert differing == ["steps\t20000\t40000"]
    assert chromium.ask("document.querySelectorAll('#learning .band').length") == 1


def amid(lived: Lived, folder: Path) -> Path:
    """A life as it was while it practised its third task."""
    described = lived.described()
    number = next(n for n, facts in described.items() if facts.stage == 2 and facts.facts.phase == "offline")
    return lived.copy(folder, number).path


def test_a_life_that_goes_on_is_shown_as_far_as_it_is(chromium: Browser, searched: Lived, tmp_path: Path):
    out = tmp_path / "report.html"
    path = amid(searched, tmp_path / "run")
    known = read(path)
    assert (known.has_ended, known.life.tasks, known.planned) == (False, 2, 4)
    assert known.cost.seconds > 0
    page.write(out, study_of([known]))
    chromium.like()
    chromium.open(out)
    assert chromium.complaints == []
    lead = chromium.ask("document.querySelector('.lead').textContent")
    assert "has learnt 2 of 4 tasks so far" in lead
    task = str(searched.config.chosen[2])
    assert task in lead
    assert f"now: {task}" in chromium.ask("document.querySelector('#learning .legend').textContent")
    assert 'http-equiv="refresh"' not in out.read_text()


def test_a_life_that_has_learnt_nothing_yet_has_a_page(searched: Lived, tmp_path: Path):
    path = searched.copy(tmp_path / "run", min(searched.described())).path
    text = page.page(read_all([path]))
    assert "has learnt 0 of 4 tasks so far" in text and "nan" not in text


def test_a_life_that_goes_on_is_never_averaged_with_one_that_has_ended(tmp_path: Path):
    """All four tasks are learnt in both lives, but one has no summary yet."""
    paths = [made_up(tmp_path / f"{seed}", seed=seed) for seed in range(3)]
    assert [len(group.lives) for group in read_all(paths).groups] == [3]
    (paths[0] / "summary.json").unlink()
    groups = {group.label: [life.config.seed for life in group.lives] for group in read_all(paths).groups}
    assert groups == {"STL, 4 tasks, 20k steps so far": [0], "STL, 4 tasks, 20k steps": [1, 2]}


def test_terms_are_explained_once_for_each_domain():
    grid, arm = (read(RESULTS / name) for name in ("comp-search-64-0", "comp-struct-robot-4x400k-0"))
    (words,) = terms_of(study_of([grid]))
    assert words.startswith("A task has a component for each factor (static, target, dynamics), such as wall/red/dyn")
    assert words.endswith(grid.life.config.domain.returns) and len(terms_of(study_of([grid, grid]))) == 1
    both = study_of([grid, arm])
    assert [one.split(":")[0] for one in terms_of(both)] == ["grid2d", "robot"]
    assert both.title(arm) == "comp-struct-robot-4x400k-0 (Comp.+Struct., 4 tasks, 400k steps, bounded)"
    assert study_of([arm]).title(arm) == "comp-struct-robot-4x400k-0"
    assert made_of(life_from_options("stl", "hall", {}).world.graph).endswith("such as near/west/plain.")


def test_a_line_of_means_is_drawn_where_there_are_some(tmp_path: Path):
    for tasks, shown in ((3, False), (4, True)):
        text = page.page(read_all([made_up(tmp_path / str(tasks), "comp-struct", tasks=tasks)]))
        assert ("line: mean of 3" in text) == ("mean of 3 tasks" in text) == shown and "mean of 1" not in text


def test_every_task_has_its_return_after_its_stage():
    told = read(RESULTS / "comp-search-64-0")
    _, seen = matrix_of(told.life.path)
    table = table_of(told)
    place = list(table.head).index("after its stage")
    assert [row[place] for row in table.rows] == [f"{record['return'][-1]:.3f}" for record in seen]
    firsts = dict(zip(told.life.names, (record["return"][-1] for record in seen), strict=True))
    changes = [told.life.finals[task] - first for task, first in firsts.items()]
    assert [row[-1] for row in table.rows] == [f"{change:+.3f}" for change in changes]


def test_a_watched_page_is_written_until_the_life_ends(
    searched: Lived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, out, before = amid(searched, tmp_path / "run"), tmp_path / "report.html", []
    monkeypatch.setattr(reporting, "EVERY", 0.2)

    def end_the_life() -> None:
        while not out.exists():
            pass
        before.append(out.read_text())
        for name in ("metrics.jsonl", "history.jsonl"):
            shutil.copy(searched.path / name, path / name)
        shutil.copy(searched.path / "summary.json", path / "aside")
        os.replace(path / "aside", path / "summary.json")

    thread = threading.Thread(target=end_the_life)
    thread.start()
    end = command("report", str(path), "--watch", "--out", str(out))
    thread.join()
    assert end.code == 0, end.err
    assert "2 of 4 tasks learnt; Ctrl-C ends the watch" in end.err and "4 of 4 tasks learnt" in end.out
    assert 'http-equiv="refresh"' in before[0] and 'http-equiv="refresh"' not in out.read_text()


def test_alarms_and_repairs_are_told(lives: Callable[[str], Lived]):
    path = lives("bounded").path
    records = [one for one in RunDirectory(path).metrics() if one["kind"] == "retention"]
    text = page.page(read_all([path]))
    found, looked = sum(bool(one["harmed"]) for one in records), sum(one["tasks"] > 0 for one in records)
    assert found and f"looked at {looked} times; {found} looks found some that were harmed" in text


def test_options_that_were_left_out_are_told_as_what_they_mean(one: Path):
    text = one.read_text()
    for name, value in {"modules": 4, "tasks": 64, "curriculum": "paper"}.items():
        assert f'<th scope="row">{name}<td>{value}\n' in text


def test_the_page_may_do_nothing_but_what_it_came_with(one: Path):
    text = one.read_text()
    assert "default-src &#x27;none&#x27;; script-src &#x27;sha256-" in text
    assert "unsafe" not in text and "http://" not in text and "https://" not in text
    assert " style=" not in text and "onclick" not in text


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_agents_colour_can_be_seen_in_both_themes(theme: str):
    ground = colours.parsed(colours.GROUNDS[theme])
    for entry in AGENTS:
        seen = colours.parsed(colours.readable(entry.colour, theme))
        assert colours.contrast(seen, ground) >= colours.CONTRAST - 0.05, entry.name
    shades = [colours.luminance(colours.parsed(one)) for one in colours.scale(theme)]
    assert shades == sorted(shades, reverse=theme == "light")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_in_cells_can_be_read_in_both_themes(theme: str):
    for shade in map(colours.parsed, colours.scale(theme)):
        assert colours.contrast(colours.parsed(colours.over(shade)), shade) >= colours.CONTRAST
    assert (colours.over((0, 0, 0)), colours.over((1, 1, 1))) == ("#ffffff", "#000000")


def test_contrast_is_that_of_the_standard():
    assert colours.contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert colours.contrast(colours.parsed("#777777"), (1, 1, 1)) == pytest.approx(4.48, abs=0.01)


def test_a_thinned_curve_keeps_its_ends_and_extremes():
    x = np.arange(1000.0)
    y = np.sin(x / 7)
    y[613], y[20] = 5.0, np.nan
    few_x, few_y = thinned(x, y, 50)
    assert len(few_x) <= 102 and (few_x[0], few_x[-1]) == (0, 999)
    assert np.nanmax(few_y) == 5.0 and np.nanmin(few_y) == np.nanmin(y)


def test_charts_of_a_life_have_the_colour_of_its_group():
    lives = [read(RESULTS / name) for name in ("comp-search-64-0", "comp-search-64x250k-halving-0")]
    study = study_of(lives)
    colours = [study.look(group).split()[0] for one in lives for group in study.groups if one.life in group.lives]
    assert len(set(colours)) == 2
    marks, text = {"search": "line {} d1", "memory": "m dot {}", "times": "m bar {}"}, page.page(study)
    for section, mark in marks.items():
        shown = text.split(f'id="{section}"')[1].split("</section>")[0]
        assert all(f'class="{mark.format(colour)}"' in shown for colour in colours), section


def test_the_page_says_which_combination_a_search_takes():
    exhaustive, halving = (choosing(read(RESULTS / f"comp-search-64{name}-0")) for name in ("", "x250k-halving"))
    assert "tries every combination" in exhaustive and exhaustive.endswith("the one with the highest return is taken.")
    assert "of the two that stay to the end the better one" in halving
    assert halving.endswith("another task has already counts 0.2 less than it returns.")


def test_paths_have_gaps_where_nothing_is_known():
    assert path_of([0, 0.5, 1], [0, 0.5, 1]) == "M0 1000l0 0 500-500 500-500"
    assert path_of([0, 0.5, 1], [0, np.nan, 1]) == "M0 1000l0 0M1000 0l0 0"


def test_axes_have_round_ticks():
    assert Range(0, 1).ticks() == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert span([0.2, 0.7]) == Range(0, 1)
    assert Range(-0.3, 12).ticks() == [0, 2.5, 5, 7.5, 10]


def test_everything_but_markup_is_escaped():
    assert element("p", "<b>", Markup("<b>"), title='"&') == '<p title="&quot;&amp;">&lt;b&gt;<b></p>'


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Give at least one run directory."),
        (["nowhere"], "is not a run directory"),
        ([str(RESULTS / "stl-four-0"), "--out", "page.png"], "must be a .html or .htm file"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(arguments: list[str], sentence: str, tmp_path: Path):
    end = command("report", *arguments, cwd=tmp_path)
    assert end.code == 2 and sentence in end.err and "Traceback" not in end.err


def test_odd_numbers_in_a_summary_are_not_drawn():
    odd = {"wall_seconds": {"online": "<b>", "offline": 3}, "cpu_seconds": [1], "peak_megabytes": None}
    assert told.cost_of(odd) == told.Cost({"offline": 3}, {}, None)
