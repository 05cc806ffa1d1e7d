# What a contributor types; CI types the same. A machine needs Python 3.11 or newer with venv, and make.

SHELL := /bin/sh
VENV  := .venv

# The first of these that runs and is new enough; or say which: make PYTHON=/opt/python3.12/bin/python3 …
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	"$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && command -v "$$p" && break; done)

.DEFAULT_GOAL := help
.PHONY: help demo test lint format types contracts check mutants bench histories share pictures clean

help:  ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/installed  ## see it work: workers that race and die, a day done once, a night of 25 hours; it names a dashboard
	$(VENV)/bin/duly demo

test: $(VENV)/developed  ## the tests, on two cores at most, in random order; DULY_TESTS=all: also what one run tells a share of
	@.ci/debian strace pgbouncer zsh fish mandoc systemd/systemd-analyze chromium
	$(VENV)/bin/pytest -q -n auto --maxprocesses=2

lint: $(VENV)/developed  ## layout and habits of the code
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

format: $(VENV)/developed  ## lay the code out, and mend what can be mended
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

types: $(VENV)/developed  ## strict types, tests, benchmarks and examples included
	$(VENV)/bin/mypy

contracts: $(VENV)/developed  ## which room may import which
	$(VENV)/bin/lint-imports --no-logo

check: lint types contracts test  ## all of these

mutants: $(VENV)/developed  ## plant every fault that a test must find; `make test` plants a share, another each day
	DULY_TESTS=all $(VENV)/bin/pytest -q -n auto --maxprocesses=2 -m mutants

bench: $(VENV)/developed  ## what duly costs beside a floor and its peers, and every other figure, in half an hour
	$(VENV)/bin/python -m bench

# campaigns/airflow.py is not among them: it is told where an Airflow is, which has to be in an environment of its own. Nor is
# campaigns/hour.py: it takes an hour, and what it looks at is the memory of processes that are not killed.
histories: $(VENV)/developed  ## long runs, each going on where it stopped: windows; days; messages; races; real schedulers
	@for campaign in tiling cronsim day outbox post histories carried cron units api; do PYTHONTZPATH= $(VENV)/bin/python -m campaigns.$$campaign || exit; done

share: $(VENV)/developed  ## make anew what is made of the code: completions, the manual page, the description of the API
	$(VENV)/bin/python -m duly.cli.completion bash > share/bash-completion/completions/duly
	$(VENV)/bin/python -m duly.cli.completion zsh > share/zsh/site-functions/_duly
	$(VENV)/bin/python -m duly.cli.completion fish > share/fish/vendor_completions.d/duly.fish
	$(VENV)/bin/python -m duly.cli.manual > share/man/man1/duly.1
	$(VENV)/bin/python -m duly.web.api.openapi > docs/openapi.json

pictures: $(VENV)/developed  ## the pictures of the dashboard in the docs, of real pages at a clock that stands; look at each
	@.ci/debian chromium pngquant
	$(VENV)/bin/python -m tests.web.browser.pictures docs/pictures

clean:  ## remove what was made here
	rm -rf $(VENV) .venv-bench .bench build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .campaigns
	find src tests bench campaigns examples -name __pycache__ -type d -prune -exec rm -rf {} +

# -- environments: made again when pyproject.toml changes ------------------------------------------------------------

$(VENV)/installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo 'duly needs Python 3.11 or newer, and none was found; say which: make PYTHON=/path/to/python3'; exit 1; }
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null || { echo '$(PYTHON) is older than Python 3.11, or does not run; duly needs 3.11 or newer'; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade pip
	$(VENV)/bin/python -m pip install --quiet --editable '.[web]'
	@touch $@

# A group of dependencies (PEP 735) needs pip 25.1, which the line above brought.
$(VENV)/developed: $(VENV)/installed
	$(VENV)/bin/python -m pip install --quiet --group dev
	@touch $@
