"""The tables of the README and the pages that follow from committed results are as these are."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

import docs_tables
from digest_lives import short

from modlife.errors import InputError

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", docs_tables.PAGES)
def test_tables_are_current(name: str):
    """If this fails: python scripts/docs_tables.py."""
    text = (ROOT / name).read_text()
    assert "<!-- modlife: " in text
    assert docs_tables.rewritten(text) == text


def test_every_table_stands_on_a_page_once():
    pages = "".join((ROOT / name).read_text() for name in docs_tables.PAGES)
    assert sorted(docs_tables.MARKED.findall(pages)) == sorted(docs_tables.TABLES)


def test_a_table_that_is_not_current_is_replaced_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(docs_tables, "TABLES", {"one": lambda: "| new |\n", "two": lambda: "| other |\n"})
    text = "a\n<!-- modlife: one -->\n| old |\n| row |\n<!-- end -->\n\n| mine |\nb <!-- modlife: two --><!-- end -->\n"
    new = docs_tables.rewritten(text)
    one, two = "<!-- modlife: one -->\n\n| new |\n<!-- end -->", "<!-- modlife: two -->\n\n| other |\n<!-- end -->"
    assert new == f"a\n{one}\n\n| mine |\nb {two}\n"
    assert docs_tables.rewritten(new) == new


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<!-- modlife: fig4 -->\n<!-- end -->", "No table 'fig4'. Did you mean 'fig"),
        ("<!-- modlife: fig3 -->\n| a |\n", "no <!-- end -->"),
        ("<!-- modlife: fig3 -->\n| a |\n<!-- modlife: metrics -->\n<!-- end -->", "no <!-- end -->"),
    ],
)
def test_marks_that_are_wrong_get_a_sentence(text: str, sentence: str):
    with pytest.raises(InputError, match=re.escape(sentence)):
        docs_tables.rewritten(text)


def test_numbers_are_short_and_halves_go_away_from_zero():
    assert [short(one) for one in (0.4335, 0.8, -0.0004, 1.25, float("nan"))] == [".434", ".800", ".000", "1.250", ""]
    assert (short(0.0125, "+", digits=2), short(-0.365, "+")) == ("+.01", "-.365")


def test_a_cell_is_what_its_lives_came_to():
    """Figure 2, 48 tasks, unseen combinations, modular: by hand from two summaries."""
    values = [
        json.loads((ROOT / "results" / f"mtl-48-{seed}" / "summary.json").read_text())["unseen"]["mean_return"]
        for seed in (0, 1)
    ]
    line = next(line for line in docs_tables.figure_2().splitlines() if line.startswith("| 48 | unseen"))
    error = abs(values[0] - values[1]) / 2
    assert line.split(" | ")[2] == f"{short(float(np.mean(values)))} ({short(error)})"
