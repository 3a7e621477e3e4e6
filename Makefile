# setup · demo · test · check · clients · ui · bench · release-check.  Needs only python3, git and make.
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt
TORCH := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)

.PHONY: setup demo test check clients ui peers bench docs release-check clean
setup: $(VENV)/dev.stamp

$(VENV)/core.stamp: pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once, a minute) ..."
	@test -x $(PY) || python3 -m venv $(VENV)
	@$(PIP) -e .
	@$(PY) -m compileall -q src
	@touch $@

# torch first, alone: its pinned version is the CPU build
$(VENV)/sb3.stamp: $(VENV)/core.stamp
	@echo "installing Stable-Baselines3 and torch (once, a few minutes) ..."
	@$(PIP) "$(TORCH)"
	@$(PIP) -e ".[sb3]"
	@touch $@

$(VENV)/dev.stamp: $(VENV)/sb3.stamp
	@echo "installing what tests need ..."
	@$(PIP) -e ".[dev]"
	@touch $@

demo: $(VENV)/core.stamp
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" bash examples/cartpole/demo.sh demo

test: $(VENV)/dev.stamp
	@$(PY) -m pytest -q -n 2 --dist worksteal $(PYTEST_FLAGS)

check: $(VENV)/dev.stamp
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check --quiet src tests bench examples
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-cache
	@$(PY) docs/generate.py --check

# the real Claude Code, Codex, MCP inspector and skills validator that tests/hosts_real drives (once, 1.1 GB, needs npm)
clients:
	@bash tests/hosts_real/install.sh

# what the dashboard's charts zoom with and its table filters with (once, 60 kB, needs npm); pages work without them
VENDOR := src/rlx/hosts/ui/static/vendor
ui: $(VENDOR)/htmx.min.js
$(VENDOR)/htmx.min.js:
	@mkdir -p $(VENDOR)/.npm
	@npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(VENDOR)/.npm uplot@1.6.32 htmx.org@4.0.1
	@cp $(VENDOR)/.npm/node_modules/uplot/dist/uPlot.iife.min.js $(VENDOR)/.npm/node_modules/uplot/dist/uPlot.min.css $(VENDOR)
	@cp $(VENDOR)/.npm/node_modules/htmx.org/dist/htmx.min.js $(VENDOR)
	@rm -rf $(VENDOR)/.npm

docs: $(VENV)/dev.stamp
	@$(PY) docs/generate.py

# the tools rlx is measured against, each on its own: one that cannot be installed is reported as missing
PEERS := .venv-peers
peers: $(PEERS)/stamp
$(PEERS)/stamp: bench/peers.txt
	@echo "installing the peers into $(PEERS) (once, a few minutes) ..."
	@test -x $(PEERS)/bin/python || python3 -m venv $(PEERS)
	@for peer in $$(grep -v '^#' bench/peers.txt); do \
		$(PEERS)/bin/python -m pip install --quiet --quiet --disable-pip-version-check $$peer || echo "without $$peer"; done
	@touch $@

bench: $(VENV)/dev.stamp $(PEERS)/stamp
	@for script in bench/*.py bench/diagnose/run.py; do echo "== $$script"; $(PY) $$script || exit 1; done

# also what CI runs: a real client that is missing is a failure there
release-check: export RLX_REQUIRE_CLIENTS := 1
release-check: clients check test demo
	@$(PY) -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	@rm -rf $(VENV) dist build demo
