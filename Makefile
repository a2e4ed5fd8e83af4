# Two commands on a fresh machine: `make demo` runs the main job, `make test` the tests.
# PyTorch comes through constraints.txt (the CPU build) with plain pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
OUT ?= regard-demo
DEMO_FLAGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test site docs docs-links lint types format bench bench-additive bench-alignment bench-audit bench-contract bench-tasks bench-training mutants ci clean

help:
	@echo "make demo    set up what the main job needs and run it (report in $(OUT)/)"
	@echo "make test    set up everything and run all tests"
	@echo "make site    the documentation site, in docs/_build/html (docs: its code runs, too)"
	@echo "make setup   set up everything in $(VENV)"
	@echo "make lint    style and the import contract"
	@echo "make types   mypy --strict"
	@echo "make bench   side-by-side measurements (also: bench-additive, bench-contract, mutants)"
	@echo "make ci      what runs before a change lands"

# Two stages, so that the demo does not wait for test tools.
$(VENV)/.train: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt --editable '.[train]'
	@touch $@

$(VENV)/.dev: $(VENV)/.train
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@# axe-core, which pages are held to, is one file in this package; its driver is not needed.
	$(PIP) install --constraint constraints.txt --no-deps axe-playwright-python
	@touch $@

setup: $(VENV)/.dev

demo: $(VENV)/.train
	$(BIN)/regard demo --out $(OUT) $(DEMO_FLAGS)

test: $(VENV)/.dev
	$(BIN)/pytest --numprocesses 2

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) install --constraint constraints.txt --editable '.[docs]'
	@touch $@

# Warnings are errors, every internal link is followed, and nothing is loaded from elsewhere.
site: $(VENV)/.docs
	rm -rf docs/_build
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q docs docs/_build/html
	$(BIN)/python docs/links.py docs/_build/html

# And examples in docstrings run, and every block of guides and lessons.
docs: site
	$(BIN)/pytest tests/docs tests/learn
	$(BIN)/pytest src --doctest-modules --numprocesses 2

docs-links: docs
	$(BIN)/python docs/links.py docs/_build/html --external

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python benchmarks/mutants.py --check
	$(BIN)/python benchmarks/contract_vs_peers.py --check
	$(BIN)/python benchmarks/additive_page.py --check
	$(BIN)/python docs/readme_results.py --check
	$(BIN)/python docs/learn_run.py --check
	$(BIN)/python benchmarks/real_code --check
	$(BIN)/python docs/rules.py --check
	$(BIN)/python docs/skill.py --check
	$(BIN)/python docs/tasks_page.py --check
	$(BIN)/python docs/export_page.py --check
	$(BIN)/python docs/alignment_page.py --check
	$(BIN)/python docs/audit_page.py --check

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/decoder.py --json docs/results/decoder.json
	$(BIN)/python benchmarks/additive_page.py

bench-additive: $(VENV)/.dev
	$(BIN)/python benchmarks/additive.py --json docs/results/additive.json
	$(BIN)/python benchmarks/additive_page.py

# Peers that are not installed are shown as such; the script's docstring says how to get them.
bench-contract: $(VENV)/.dev
	$(BIN)/python benchmarks/contract_vs_peers.py

# Hours; goes on where it was stopped. DATA is where the SIGMORPHON archives lie.
bench-tasks: $(VENV)/.dev
	$(BIN)/regard bench tasks $(if $(DATA),--data-dir $(DATA)) --out regard-bench
	cp regard-bench/tasks.json docs/results/tasks.json
	$(BIN)/python docs/tasks_page.py

# Peers that are not installed are shown as such; DATA is where the corpora with gold links lie.
bench-alignment: $(VENV)/.dev
	$(BIN)/python benchmarks/alignment_error.py --data $(DATA)
	$(BIN)/python docs/alignment_page.py

# Hours; DATA is where the published data sets lie.
bench-audit: $(VENV)/.dev
	$(BIN)/regard audit reproduce copy --seeds 3 --json docs/results/audit_copy.json
	$(BIN)/regard audit reproduce pronoun --seeds 3 --data $(DATA)/pronoun --json docs/results/audit_pronoun.json
	$(BIN)/regard audit reproduce sst --seed 10 --seeds 3 --data $(DATA)/sst_dataset.csv --json docs/results/audit_sst.json
	$(BIN)/python docs/audit_page.py

# yoyodyne is shown where it is installed; the script's docstring says how it is measured.
bench-training: $(VENV)/.dev
	$(BIN)/python benchmarks/training_speed.py --json docs/results/training_speed.json
	$(BIN)/python docs/tasks_page.py

mutants: $(VENV)/.dev
	$(BIN)/python benchmarks/mutants.py

ci:
	.ci/run

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
