"""The notebook runs from top to bottom."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "spiral.ipynb"


# The kernel's client opens an event loop and sockets of its own, and leaves them to the garbage collector.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
def test_the_spiral_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "commit the notebook without outputs"
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[1] / "src"))
    # The kernel of this very interpreter, whatever kernels the machine knows.
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
    client.km = client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    text = "\n".join(
        str(output.get("text", ""))
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if cell.cell_type == "code"
    )
    assert "factor a layer at width 48: 0.71" in text
