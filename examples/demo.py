"""Train a private model on the bundled census table and show what came of it: `make demo`."""

from pathlib import Path

from hushfit import PrivateLogisticRegression
from hushfit.datasets import load_adult

OUT = Path("out")


def main() -> None:
    train, test = load_adult(split="train"), load_adult(split="test")
    print(f"Adult census table: {len(train.y)} rows to learn from, {len(test.y)} to judge by, {train.X.shape[1]} columns.\n")
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1], verbose=1).fit(train.X, train.y)
    reference = PrivateLogisticRegression(epsilon=float("inf"), penalty="l2", alpha=1e-5, classes=[0, 1])
    reference.fit(train.X, train.y)
    accuracy, without = model.score(test.X, test.y), reference.score(test.X, test.y)
    print(f"\nAccuracy on the held-out rows: {accuracy:.4f} private, {without:.4f} without privacy.\n")
    print(model.privacy_)
    OUT.mkdir(exist_ok=True)
    report = OUT / "demo-guarantee.json"
    report.write_text(model.privacy_.to_json() + "\n")
    print(f"\nThe guarantee as a file: {report}")


if __name__ == "__main__":
    main()
