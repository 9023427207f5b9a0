"""DP-SGD with jax-privacy on the arrays of an npz file; ``benchmarks.baselines`` runs it in a
separate venv.

Reads X_train, y_train, X_test, y_test (in {0, 1}); prints one JSON object per fit, as
``benchmarks.opacus_fit`` does.
"""

import argparse
import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy import batch_selection
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig

PADDING = 64  # one compilation for all batches up to a multiple of this


def mean_loss(params, rows, labels):
    margins = (2 * labels - 1) * (rows @ params["w"] + params["b"])
    return jnp.mean(jnp.logaddexp(0.0, -margins))


def fit(
    X: np.ndarray,
    y: np.ndarray,
    given: argparse.Namespace,
    batch: int,
    epochs: int,
    lr: float,
    seed: int,
) -> tuple[dict, dict]:
    """Train a linear model; noise calibration, compilation and training are timed separately."""
    start, n = time.perf_counter(), len(X)
    plan = BandMFExecutionPlanConfig(
        iterations=round(epochs * n / batch),
        strategy=np.ones(1),
        epsilon=given.epsilon,
        delta=given.delta,
        sampling_prob=batch / n,
        l2_clip_norm=given.clip,
        normalize_by=batch,
        noise_seed=seed,
    ).plan
    ready = time.perf_counter()
    gradient = plan.clipped_grad(mean_loss, batch_argnums=(1, 2))
    optimizer, noise = optax.sgd(lr), plan.noise_addition_transform

    @jax.jit
    def step(params, rows, labels, padding, noise_state, state):
        noisy, noise_state = noise.update(
            gradient(params, rows, labels, is_padding_example=padding), noise_state
        )
        updates, state = optimizer.update(noisy, state)
        return optax.apply_updates(params, updates), noise_state, state

    def train():
        params = {"w": jnp.zeros(X.shape[1]), "b": jnp.zeros(())}
        noise_state, state = noise.init(params), optimizer.init(params)
        for chosen in plan.batch_selection_strategy.batch_iterator(n, rng=seed):
            rows = batch_selection.pad_to_multiple_of(chosen, PADDING)
            params, noise_state, state = step(
                params, X[rows], y[rows], rows == -1, noise_state, state
            )
        return jax.block_until_ready(params)

    train()  # compiles every padded size that this seed draws
    compiled, worked = time.perf_counter(), time.process_time()
    params = train()
    done = time.perf_counter()
    return params, {
        "noise_search": ready - start,
        "compiling": compiled - ready,
        "training": done - compiled,
        "processor": time.process_time() - worked,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arrays")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument(
        "--tries", type=json.loads, required=True, help="JSON list of [batch, epochs, lr, seed]"
    )
    given = parser.parse_args()
    stored = np.load(given.arrays)
    X, y, X_test, y_test = (
        stored[name].astype(np.float32) for name in ("X_train", "y_train", "X_test", "y_test")
    )
    for batch, epochs, lr, seed in given.tries:
        params, record = fit(X, y, given, batch, epochs, lr, seed)
        accuracy = float(
            np.mean((X_test @ np.asarray(params["w"]) + float(params["b"]) > 0) == (y_test > 0.5))
        )
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
