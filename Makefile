# The commands of a contributor. `make` prints this list; each line is a script that also runs by itself.
.DEFAULT_GOAL := help
.PHONY: help demo test fast format lint pages site simulate specs ci release
env := scripts/lib/environment.sh
words ?=

help:  ## print this list
	@grep -E '^[a-z]+: .*##' Makefile | sed -E 's/: .*## /\t/' | expand -t 12

demo:  ## run the main job on servers of its own
	scripts/demo

test:  ## all that a change must pass but kills; words="tests/x -k y" go to pytest
	scripts/test $(words)

format:  ## write Python in the project's style
	$(env) ruff format .
	$(env) ruff check --fix .

lint:  ## style, types, import layers, Lua
	$(env) ruff format --check .
	$(env) ruff check .
	$(env) mypy
	$(env) lint-imports
	$(env) python scripts/lib/lint_lua.py

pages:  ## write the pages that are made from the code
	$(env) python scripts/reference-pages

site:  ## build the documentation
	scripts/site

simulate:  ## a minute of the simulation, from a new seed
	scripts/simulate --seconds 60

specs:  ## the models of the protocol, each rule switched off, and schedules that are replayed on a model
	scripts/specs
	scripts/specs --traces 50

ci:  ## everything that a change must pass
	.ci/run

release:  ## whether this checkout could be released
	scripts/release --check
