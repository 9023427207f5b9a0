"""The studio on the bundled Adult table: ``python -m hushfit.cli._demo_studio FOLDER``."""

import sys
from pathlib import Path

from hushfit.cli._app import run
from hushfit.cli._demo import write_adult


def demo(folder: Path) -> int:
    """Write the table into a folder, and serve the studio there until it is interrupted."""
    from hushfit.data.tables import SchemaFile, schema_to_toml
    from hushfit.datasets import ADULT_SCHEMA

    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "test"):
        write_adult(split, folder)
    schema = folder / "train.schema.toml"
    if not schema.is_file():
        schema.write_text(schema_to_toml(SchemaFile(ADULT_SCHEMA)), encoding="utf-8")
    if not (folder / "ledger.db").is_file():
        ledger = str(folder / "ledger.db")
        run(["ledger", "init", ledger, "--dataset", "adult", "--epsilon", "3", "--delta", "1e-6"])
    return run(["studio", str(folder / "train.csv")])


if __name__ == "__main__":
    sys.exit(demo(Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo-studio")))
