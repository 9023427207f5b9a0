"""Tables of the documentation that are made from stored results say what is stored."""

import math
import re

import pytest
from benchmarks import papers, seeds, thesis
from benchmarks._kept import counted, keep, kept


def between(page, name):
    return page.read_text(encoding="utf-8").split(f"<!-- {name}: begin -->")[1].split("<!-- ")[0]


def test_the_page_of_the_source_texts_has_the_tables_of_the_draws_that_were_kept():
    tables = seeds.tables(kept(seeds.KEPT))
    assert all(part.title in tables for part in seeds.PARTS.values())
    assert tables in between(seeds.PAGE, "seeds")


# Figures and tables of the five texts, but for tables of symbols.
SHOWN = {
    "Paper 000": [f"Figure {k}" for k in range(1, 5)],
    "Paper 001": [f"Figure {k}" for k in range(1, 8)],
    "Paper 002": [
        *("Table 3.2", "Table 5.2", "Figure 6.1", "Figure 6.2"),
        *(f"Figure {chapter}.{k}" for chapter in (3, 4, 5) for k in range(1, 5)),
        "Figure 5.5",
    ],
    "Paper 003": [f"Figure {k}" for k in range(1, 11)],
    "Paper 004": ["Table I", "Table II", *(f"Figure {k}" for k in range(1, 5))],
}


def verdicts(paper):
    """Figure, table or theorem, and the verdict on it."""
    section = seeds.PAGE.read_text(encoding="utf-8").split(f"## {paper}")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()]
    return [(row[0], row[3]) for row in rows if len(row) == 4 and all(row)][2:]  # below the head


@pytest.mark.parametrize("paper", SHOWN)
def test_every_figure_and_table_of_the_texts_has_a_row(paper):
    assert not {*SHOWN[paper]} - {what.split(", ")[0] for what, _ in verdicts(paper)}


def test_the_page_of_the_source_texts_counts_its_verdicts():
    kinds = ["holds(?! in part| at )", "holds (in part|at )", "does not", "cannot", "nothing"]
    given = [verdict for paper in SHOWN for _, verdict in verdicts(paper)]
    counts = [sum(bool(re.match(kind, verdict)) for verdict in given) for kind in kinds]
    assert sum(counts) == len(given)
    said = seeds.PAGE.read_text(encoding="utf-8").split("**In short.**")[1].split("\n\n")[0]
    assert [int(number) for number in re.findall(r"\d+", said)] == [len(given), *counts]


@pytest.mark.parametrize("relation", thesis.RELATIONS)
def test_the_page_of_benchmarks_has_the_tables_of_the_stored_results(relation):
    page = between(thesis.PAGE, f"thesis, {relation}")
    assert thesis.tables(thesis.stored(), relation) in page


def test_every_cell_of_the_papers_grids_has_five_draws():
    assert all({*draws} >= {0, 1, 2, 3, 4} for draws in kept(papers.KEPT).values())


# The experiments that need no files of their own.
@pytest.mark.parametrize("name", ["simulated", "sparse", "square"])
def test_the_page_has_the_papers_tables_of_the_draws_that_were_kept(name):
    rows, text = papers.written(name, papers.EXPERIMENTS[name](True), kept(papers.KEPT))
    assert rows
    assert text in between(papers.PAGE, f"papers, {name}")


def test_draws_are_kept_one_by_one(tmp_path):
    path = tmp_path / "draws.jsonl"
    keep(path, "a cell", 0, {"error": 0.5})
    keep(path, "a cell", 1, {"error": 0.25})
    keep(path, "another", 0, {"error": 0.0})
    assert kept(path) == {
        "a cell": {0: {"error": 0.5}, 1: {"error": 0.25}},
        "another": {0: {"error": 0.0}},
    }


def test_numbers_of_draws_are_said_in_english():
    assert counted({1}) == "1 draw"
    assert counted({5}) == "5 draws"
    assert counted({3, 1, 2}) == "1 to 3 draws"


def test_a_table_has_a_line_for_each_case_with_several_settings():
    part = seeds.Part("Title", {"ours": 1, "theirs": 2}, ("table", "epsilon"), (("t", 0.5),), None)
    found = {
        part.cell("ours", ("t", 0.5)): {0: {"error": 0.1}, 1: {"error": 0.3}},
        part.cell("theirs", ("t", 0.5)): {0: {"error": 0.4}, 1: {"error": 0.4}},
    }
    head, table = seeds.tables_of(part, found)
    error = math.sqrt(2) * 0.1 / math.sqrt(2)  # of two draws that differ by .2
    assert head == (f"**Title: error** (2 draws, standard errors up to {error:.2g}; replace-one)")
    assert [cell.strip() for cell in table.splitlines()[0].split("|")[1:-1]] == [
        *("table", "epsilon", "ours", "theirs")
    ]
    assert [cell.strip() for cell in table.splitlines()[2].split("|")[1:-1]] == [
        *("t", "0.5", "0.2", "0.4")
    ]
