# Three commands do everything on a machine that has Python 3.11 or newer and make:
#   make demo    sets up and runs the main job, and says where its pictures are
#   make demo-robot    the same with an arm on MuJoCo
#   make test    sets up and runs the linter, the type checker and the tests

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What is never imported need not be compiled: that would be two fifths of the time of an installation.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
SLOW := installing into $(VENV) (730 MB or more, a minute or two) ...

.PHONY: demo demo-robot test pytest lint format lowest clean

demo: $(VENV)/base
	$(BIN)/modlife list --picture demo/tasks.png
	$(BIN)/modlife graph --task wall/red/dynamics-2 --out demo/graph.svg
	$(BIN)/modlife play --policy random --task floor/red/dynamics-0 --out demo/random-agent.gif
	rm -rf demo/run
	$(BIN)/modlife train --agent comp-search --world.statics floor food --world.colour-count 2 --world.dynamics-count 2 \
	  --steps 60000 --replay-size 20000 --seed 0 --out demo/run
	$(BIN)/modlife eval demo/run --episodes 200
	$(BIN)/modlife play demo/run --task floor/red/dynamics-0 --out demo/trained-agent.gif
	$(BIN)/modlife report demo/run --film floor/red/dynamics-0 food/green/dynamics-1 --out demo/report.html

# An arm learns in a few minutes to approach what it should lift, and keeps it when it has met a second object.
demo-robot: $(VENV)/robot
	$(BIN)/modlife play --domain robot --policy random --world.preset fast --task none/can/IIWA --episodes 1 \
	  --out demo/arm-before.gif
	rm -rf demo/robot-run
	$(BIN)/modlife train --domain robot --agent comp-struct --world.preset fast --world.obstacles none \
	  --world.objects can bread --world.robots IIWA --steps 160000 --seed 0 --out demo/robot-run
	$(BIN)/modlife play demo/robot-run --task none/can/IIWA --episodes 1 --out demo/arm-after.gif

# Side by side: the type checker leaves a core free while it reads.
test: $(VENV)/dev
	@$(MAKE) --no-print-directory --jobs=2 lint pytest

pytest: $(VENV)/dev
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright --pythonpath $(BIN)/python

format: $(VENV)/dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The tests with the lowest versions of all packages that pyproject.toml allows, in an environment of its own.
lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(PYTHON) scripts/lowest_versions.py > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --constraint $(VENV)-lowest/constraints.txt --editable '.[dev]'
	$(VENV)-lowest/bin/python -m pytest -q -n auto

clean:
	rm -rf $(VENV) $(VENV)-lowest demo

# The files below are stamps: what they name is installed, and pyproject.toml has not changed since.
$(VENV)/base: pyproject.toml | $(BIN)/python
	@echo "$(SLOW)"
	$(PIP) --editable .
	@touch $@

$(VENV)/robot: pyproject.toml | $(BIN)/python
	@echo "$(SLOW)"
	$(PIP) --editable '.[robot]'
	@touch $@

$(VENV)/dev: pyproject.toml | $(BIN)/python
	@echo "$(SLOW)"
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/base $(VENV)/robot

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "modlife needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
