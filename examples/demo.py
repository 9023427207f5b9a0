"""From a table and its public schema to a private model, its receipt, its scores and a page about it: `make demo`.

The steps are the verbs of the command line, on the bundled census table.
"""

import shlex
import subprocess
import sys
from pathlib import Path

from hushfit.data.tables import SchemaFile, schema_to_toml
from hushfit.datasets import load_adult

OUT = Path("out") / "demo"
HUSHFIT = Path(sys.executable).with_name("hushfit")


def write_tables() -> None:
    """The census table in two files, and its schema as the census documents it: nothing in it was read from the rows."""
    OUT.mkdir(parents=True, exist_ok=True)
    for split in ("train", "test"):
        load_adult(split=split).to_frame().to_csv(OUT / f"{split}.csv", index=False)
    (OUT / "schema.toml").write_text(schema_to_toml(SchemaFile(load_adult().schema)))
    for old in ("ledger.db", "ledger.db-wal", "ledger.db-shm", "model.json", "report.html"):
        (OUT / old).unlink(missing_ok=True)


def hushfit(*words: str) -> None:
    print(f"\n$ hushfit {shlex.join(words)}", flush=True)
    subprocess.run([HUSHFIT, *words], check=True)


def main() -> None:
    write_tables()
    train, test, schema, ledger, model, report = (
        str(OUT / name) for name in ("train.csv", "test.csv", "schema.toml", "ledger.db", "model.json", "report.html")
    )
    print(f"The Adult census table and its public schema: {train}, {test}, {schema}")
    hushfit("ledger", "init", ledger, "--dataset", "adult", "--epsilon", "2", "--delta", "1e-6")
    budget = ("--epsilon", "1", "--delta", "1e-6", "--ledger", ledger, "--dataset", "adult")
    hushfit("fit", train, "--schema", schema, *budget, "-o", model)
    hushfit("evaluate", model, test)
    hushfit("report", model, "--held-out", test, "-o", report)
    print(f"\nModel: {model}\nReceipt: {ledger}\nReport: {report} (open it in a browser)")


if __name__ == "__main__":
    main()
