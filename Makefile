# Two commands for newcomers: `make demo` and `make test`. Everything installs itself into .venv.
PYTHON ?= python3
VENV := .venv
# The UCI heart-disease files; without them the federated demo invents its patients.
HEART ?= $(wildcard ../shared/data/heart)
BIN := $(VENV)/bin
# The tests that a default install with data frames can run, for `make lowest` and `make matrix`.
CORE := ../tests/privacy ../tests/data ../tests/losses ../tests/constraints ../tests/statistics ../tests/estimators
TESTERS := 'pytest>=8.0' 'hypothesis>=6.140' 'jsonschema>=4.20' 'statsmodels>=0.14.3' 'cryptography>=45'
# What users get, for the demo; and everything that developers need, at the versions of the lock file.
DEFAULT := $(VENV)/.default
STAMP := $(VENV)/.installed
LOCK := requirements-dev.lock

.PHONY: install demo demo-studio demo-federated test check lint bench coverage slow audit mutants clean
.PHONY: docs docs-check docs-links browser lock lowest matrix package weight

install: $(STAMP)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("hushfit needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(DEFAULT): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $(DEFAULT)

$(STAMP): pyproject.toml $(LOCK) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --constraint $(LOCK)
	touch $(DEFAULT) $(STAMP)

demo: $(DEFAULT)
	$(BIN)/python -m hushfit.cli._demo out/demo

demo-studio: $(VENV)/.studio
	$(BIN)/python -m hushfit.cli._demo_studio out/demo-studio

$(VENV)/.studio: $(DEFAULT)
	$(BIN)/python -m pip install --quiet --editable '.[studio]'
	touch $(VENV)/.studio

demo-federated: install
	$(BIN)/python -m hushfit.cli._demo_federated out/demo-federated "$(HEART)"

test: check

# The site and the linters take one core each, and the tests both.
check: install browser
	$(MAKE) --jobs 2 --output-sync docs-check lint
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal --durations 40

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

slow: install
	$(BIN)/python -m pytest -m slow

bench: install
	$(BIN)/python -m benchmarks

# Coverage of confidence intervals, over hours; a run that was stopped goes on where it was.
coverage: install
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 HUSHFIT_THREADS=1 $(BIN)/python -m benchmarks.coverage --write $(ARGS)
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 HUSHFIT_THREADS=1 $(BIN)/python -m benchmarks.coverage_tables --write
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 HUSHFIT_THREADS=1 $(BIN)/python -m benchmarks.interval_rivals --write
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 HUSHFIT_THREADS=1 $(BIN)/python -m benchmarks.statistics_coverage --write

# Attacks on every algorithm and checks of every query and sampler: under 20 minutes on 2 cores, false alarms at most 1e-3 in all.
audit: install
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m hushfit.audit $(ARGS)

# Plants privacy bugs and sees that the audit notices each; ARGS="--clean 20" counts alarms without any bug.
mutants: install
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m tests.mutants $(ARGS)

# The site, with the gallery run and a report to open. It opens without a server: out/docs/index.html
docs: install
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d out/doctrees docs out/docs
	$(BIN)/python -m hushfit.cli._demo out/demo > /dev/null
	cp out/demo/report.html out/docs/sample-report.html

# The site without running the gallery: warnings are errors, so no link inside it is broken.
docs-check: install
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d out/doctrees-check -D plot_gallery=0 docs out/docs-check

# Whether addresses elsewhere answer, which takes a network; links inside are part of docs-check.
docs-links: install
	$(BIN)/python -m sphinx -q -b linkcheck -d out/doctrees-check -D plot_gallery=0 docs out/docs-links

# Debian's Chromium and its driver, for the tests of the planner page and of the studio.
browser:
	@command -v chromedriver > /dev/null || \
	  (test "$$(id -u)" = 0 && command -v apt-get > /dev/null && \
	   (apt-get install -yqq chromium chromium-driver || \
	    (apt-get update -qq && apt-get install -yqq chromium chromium-driver)) > /dev/null 2>&1) || \
	  echo "There is no Chromium with its driver: the tests of the studio will say what to install."

# Lower bounds of the dependencies: the oldest versions that pyproject.toml admits.
lowest: install
	$(BIN)/uv venv --quiet --clear --python 3.11 out/lowest
	$(BIN)/uv pip install --quiet --python out/lowest --resolution lowest-direct --editable '.[frames,excel,formula,reference]' $(TESTERS)
	cd out && lowest/bin/python -m pytest -c ../pyproject.toml --rootdir .. -m "not slow" $(CORE)

# Every supported Python that is on this machine, those of pyenv too; those that are not are named.
# One alone: make matrix VERSIONS=3.13
VERSIONS ?= 3.11 3.12 3.13 3.14
matrix: export PATH := $(subst $() ,:,$(wildcard $(HOME)/.pyenv/versions/*/bin)):$(PATH)
matrix: install
	for version in $(VERSIONS); do \
	  if $(BIN)/uv python find --quiet --no-python-downloads $$version >/dev/null 2>&1; then \
	    $(BIN)/uv venv --quiet --clear --python $$version out/python-$$version && \
	    $(BIN)/uv pip install --quiet --python out/python-$$version --editable '.[frames,excel,formula,reference]' $(TESTERS) && \
	    (cd out && python-$$version/bin/python -m pytest -c ../pyproject.toml --rootdir .. -m "not slow" $(CORE)) || exit 1; \
	  else echo "Python $$version is not on this machine: skipped"; fi; \
	done

# What developers and CI install. Pins without hosts or hashes, for every supported Python.
lock: $(BIN)/python
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-header --no-annotate --upgrade pyproject.toml --output-file $(LOCK)

# What is published: wheel and source archive, checked.
package: install
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/pyroma --min=10 .

# Megabytes of a default install, without pip.
weight:
	$(PYTHON) -m venv --clear out/weight
	out/weight/bin/python -m pip install --quiet .
	out/weight/bin/python -m pip uninstall --quiet --yes setuptools pip
	du -sm out/weight/lib

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache
