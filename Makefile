# `make demo` and `make test` need Python >= 3.11 (with venv) and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo test check coverage golden clean

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "setup: Python >= 3.11 expected, $$($(PYTHON) --version) found; run: make PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import os, shutil, sys; sys.exit(not os.path.samefile(sys.prefix, "$(VENV)"))'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

# Generated items, reference programs, a real sandbox, the result table and the report.
demo: setup
	$(BIN)/python -m agent.demo

test: setup
	$(BIN)/python -m pytest -q

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright

# What reads replies and answers, line by line and branch by branch.
READER_TESTS := tests/dialects tests/models/test_completion.py tests/benchmarks/test_answers.py \
  tests/benchmarks/test_markup.py tests/benchmarks/test_numbers.py tests/benchmarks/test_rules.py \
  tests/benchmarks/test_response_cases.py tests/benchmarks/test_rules_in_words.py
coverage: setup
	$(BIN)/python -m coverage run -m pytest -q --ignore tests/dialects/test_any_reply.py $(READER_TESTS)
	$(BIN)/python -m coverage report

golden: setup
	$(BIN)/python -m pytest -q --update-golden
	git diff --stat -- tests

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .coverage build dist *.egg-info demo-data
