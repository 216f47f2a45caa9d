# The whole interface to the project: make setup | run | test | lint | bench
.DEFAULT_GOAL := help
.PHONY: help setup run test lint bench servers compat
MAKEFLAGS += --no-print-directory --silent
SHELL := /bin/bash

# An active virtual environment, or pip settings meant for another place, must not lead the installation astray.
unexport VIRTUAL_ENV PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX

PYTHON := .venv/bin/python
STAMP := .venv/.setup-done
PIP := $(PYTHON) -m pip --disable-pip-version-check --quiet
HAS_JAVA := $(PYTHON) -c 'from millrace.spark.java import ensure_java; ensure_java()'
ARGS ?=

help:
	echo 'make setup   create .venv and install everything, Java included if there is none'
	echo 'make run     run the ad campaign example; pass options with ARGS="..."'
	echo 'make test    lint, types, tests, doctests and the snippets of the documentation'
	echo 'make lint    lint and types only'
	echo 'make bench   measure throughput'
	echo 'make compat  run programs on real PyFlink and on Millrace, and compare'

setup: $(STAMP)

$(STAMP): pyproject.toml
	if ! $(PYTHON) -c '' 2>/dev/null; then \
	    for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	        if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	            echo "creating .venv with $$($$python --version)"; \
	            $$python -m venv --clear .venv && break; \
	        fi; \
	    done; \
	fi; \
	if ! $(PYTHON) -c '' 2>/dev/null; then \
	    echo 'Millrace needs Python 3.11 or newer with its venv module (on Debian: apt-get install python3-venv)' >&2; \
	    exit 1; \
	fi
	echo 'installing packages'
	$(PIP) install -e '.[dev]'
	if ! $(HAS_JAVA) 2>/dev/null; then \
	    echo 'no Java 17 or newer found, installing one'; \
	    $(PIP) install -e '.[jre]' || true; \
	    if ! $(HAS_JAVA) 2>/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        apt-get -qq update && apt-get -qq install --yes --no-install-recommends openjdk-17-jre-headless >/dev/null; \
	    fi; \
	    $(HAS_JAVA); \
	fi
	touch $@

run: setup
	$(PYTHON) -m millrace run examples/ad_campaigns.py $(ARGS)

lint: setup
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy

# Tests talk to real servers, which they start themselves: only the programs have to be there.
servers: setup
	if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && ! command -v initdb >/dev/null \
	        && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo 'installing PostgreSQL, which the tests start'; \
	    apt-get -qq update && apt-get -qq install --yes --no-install-recommends postgresql >/dev/null; \
	fi

test: lint servers
	$(PYTHON) -m pytest $(ARGS)

bench: setup
	$(PYTHON) -m bench $(ARGS)

# Real PyFlink in an environment of its own, and the same programs on both.
compat: setup
	test -x .venv-flink/bin/python || python3 -m venv .venv-flink
	.venv-flink/bin/python -m pip install --quiet apache-flink==2.3.0
	$(PYTHON) compat/run.py --flink .venv-flink/bin/python \
	    --examples $$(echo .venv-flink/lib/python3*/site-packages/pyflink/examples/datastream)
