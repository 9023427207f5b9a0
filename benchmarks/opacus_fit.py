"""DP-SGD with Opacus on the arrays of an npz file; ``benchmarks.speed`` runs it with the
interpreter of Opacus's venv.

Reads X_train, y_train, X_test, y_test (in {0, 1}); prints one JSON object per fit.
"""

import argparse
import json
import time
import warnings

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn


def fit(
    X: torch.Tensor, y: torch.Tensor, given: argparse.Namespace, batch: int, epochs: int, lr: float
) -> tuple[nn.Linear, dict]:
    """Train a linear model; noise calibration and training are timed separately."""
    start = time.perf_counter()
    model = nn.Linear(X.shape[1], 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=batch)
    private, optimizer, loader = PrivacyEngine(
        accountant=given.accountant
    ).make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=lr),
        data_loader=loader,
        epochs=epochs,
        target_epsilon=given.epsilon,
        target_delta=given.delta,
        max_grad_norm=given.clip,
    )
    ready, worked = time.perf_counter(), time.process_time()
    loss = nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss(private(rows)[:, 0], labels).backward()
            optimizer.step()
    done = time.perf_counter()
    return model, {
        "noise_search": ready - start,
        "training": done - ready,
        "processor": time.process_time() - worked,
        "noise_multiplier": optimizer.noise_multiplier,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arrays")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--accountant", default="prv")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--tries", type=json.loads, required=True, help="JSON list of [batch, epochs, lr, seed]"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(given.threads)
    stored = np.load(given.arrays)
    X, y, X_test, y_test = (
        torch.tensor(stored[name], dtype=torch.float32)
        for name in ("X_train", "y_train", "X_test", "y_test")
    )
    for batch, epochs, lr, seed in given.tries:
        torch.manual_seed(seed)
        model, record = fit(X, y, given, batch, epochs, lr)
        with torch.no_grad():
            accuracy = float(((model(X_test)[:, 0] > 0) == (y_test > 0.5)).float().mean())
        print(
            json.dumps(
                {
                    "batch": batch,
                    "epochs": epochs,
                    "lr": lr,
                    "seed": seed,
                    "accuracy": accuracy,
                    **record,
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
