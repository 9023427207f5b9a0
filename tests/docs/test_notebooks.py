"""Notebooks of the documentation open and run."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parents[2] / "docs"
# The site writes its gallery as notebooks too; the programs behind them run in `make docs`.
NOTEBOOKS = sorted(set(DOCS.glob("**/*.ipynb")) - set(DOCS.glob("gallery/**/*.ipynb")))


@pytest.mark.filterwarnings("ignore")  # of the kernel's own packages
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_start_to_end(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "Clear the outputs."
    done = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}})
    done.execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())
    )
    assert "Differentially private with epsilon=1 and delta=1e-07" in printed
    assert "accuracy on rows held out: 0.8" in printed


def test_there_is_a_notebook_on_an_own_csv():
    assert "own_csv" in [path.stem for path in NOTEBOOKS]
