"""The verbs one after the other on the bundled Adult table:
``python -m hushfit.cli._demo FOLDER``.
"""

import os
import shlex
import sys
from pathlib import Path

import click

from hushfit.cli._app import run


def demo(folder: Path) -> int:
    """Run schema, ledger, fit, evaluate and report in a folder; returns the first exit code that
    is not 0.
    """
    from hushfit.data.tables import SchemaFile, schema_to_toml
    from hushfit.datasets import ADULT_SCHEMA

    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for split in ("train", "test"):
        write_adult(split, Path())
    for old in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        Path(old).unlink(missing_ok=True)
    # What a person would write from the draft and the survey's documentation.
    Path("schema.toml").write_text(schema_to_toml(SchemaFile(ADULT_SCHEMA)), encoding="utf-8")
    steps = [
        "schema train.csv --target income -o draft.toml --overwrite",
        "ledger init ledger.db --dataset adult --epsilon 2 --delta 1e-6",
        "fit train.csv --schema schema.toml --epsilon 1 --delta 1e-6 --ledger ledger.db --dataset "
        "adult -o model.json --overwrite",
        "evaluate model.json test.csv",
        "report model.json --held-out test.csv -o report.html --overwrite",
    ]
    for step in steps:
        click.echo(f"\n$ hushfit {step}")
        code = run(shlex.split(step))
        if code:
            return code
    names = ("draft.toml", "schema.toml", "ledger.db", "model.json", "report.html")
    click.echo("\nWritten:\n" + "\n".join(f"  {Path(name).resolve()}" for name in names))
    return 0


def write_adult(split: str, folder: Path) -> None:
    """Write one half of the bundled table as CSV."""
    import pyarrow as pa
    import pyarrow.csv

    from hushfit.datasets import load_adult

    adult = load_adult(split=split)
    pa.csv.write_csv(pa.table({**adult.columns, "income": adult.target}), folder / f"{split}.csv")


if __name__ == "__main__":
    sys.exit(demo(Path(sys.argv[1] if len(sys.argv) > 1 else "out")))
