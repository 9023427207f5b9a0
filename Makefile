# Two commands for newcomers: `make demo` and `make test`. Everything installs itself into .venv.
PYTHON ?= python3
VENV := .venv
# The UCI heart-disease files; without them the federated demo invents its patients.
HEART ?= $(wildcard ../shared/data/heart)
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo demo-federated test check bench coverage slow audit mutants clean

install: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("hushfit needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(STAMP)

demo: install
	$(BIN)/python -m hushfit.cli._demo out/demo

demo-federated: install
	$(BIN)/python -m hushfit.cli._demo_federated out/demo-federated "$(HEART)"

test: check

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

slow: install
	$(BIN)/python -m pytest -m slow

bench: install
	$(BIN)/python -m benchmarks

# Coverage of confidence intervals, over hours; a run that was stopped goes on where it was.
coverage: install
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m benchmarks.coverage --write $(ARGS)
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m benchmarks.statistics_coverage --write

# Attacks on every algorithm and checks of every query and sampler: under 20 minutes on 2 cores, false alarms at most 1e-3 in all.
audit: install
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m hushfit.audit $(ARGS)

# Plants privacy bugs and sees that the audit notices each; ARGS="--clean 20" counts alarms without any bug.
mutants: install
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m tests.mutants $(ARGS)

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache
