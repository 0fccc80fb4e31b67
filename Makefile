# Two commands do everything, set-up included: `make demo` and `make test`.

PYTHON ?= python3
ARGS ?=
VENV := .venv/bin
STAMP := .venv/installed

.PHONY: help setup demo test test-all regression proofs evidence lint docs site report-picture bench bench-gpu ablation zoo pin clean

help: ## show this list
	@echo "Targets (the first call also sets up .venv; ARGS='...' is passed on):"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: $(STAMP) ## create .venv with the pinned dependencies

demo: $(STAMP) ## train on the embedded digits, build for an iCEBreaker, run it in simulation; report
	rm -rf build/demo
	$(VENV)/python -m train --config digits-t1 --out build/demo/run
	$(VENV)/python -m train.export build/demo/run --out build/demo/net.lbq
	$(VENV)/python -m lbq_hw.build --board icebreaker --model build/demo/net.lbq --build-dir build/demo/icebreaker
	$(VENV)/python -m sim.board --package build/demo/icebreaker/package --host --images 20 --compare
	@echo "bitstream: build/demo/icebreaker/package; open build/demo/icebreaker/report/report.html"

# One thread a process: pytest-xdist already uses every core.
test test-all: export OMP_NUM_THREADS = 1

test: lint ## lint, types, and every test that is not slow
	$(VENV)/python -m pytest -n auto --dist worksteal -m "not slow" $(ARGS)

test-all: lint ## the same with the slow proofs and sweeps
	$(VENV)/python -m pytest -n auto --dist worksteal $(ARGS)

regression: $(STAMP) ## every block of the core in every profile under cocotb, on all processors
	$(VENV)/python -m sim.regression --all-shapes $(ARGS)

proofs: $(STAMP) ## contracts of blocks for all inputs, each with a bug that must break it
	$(VENV)/python -m sim.proofs $(ARGS)

evidence: $(STAMP) ## docs/evidence.md from docs/evidence/*.json, which commands print with --json
	$(VENV)/python -m tools.evidence docs

lint: $(STAMP) ## style, format and types
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/basedpyright

docs: $(STAMP) ## write the generated pages anew: records, drawings, tables of blocks and boards
	$(VENV)/python -m boards docs
	$(VENV)/python -m lbq_hw.isa > docs/isa.md
	$(VENV)/python -m lbq_hw.diagram docs
	$(VENV)/python -m tools.pictures docs

site: $(STAMP) ## docs/ as a site in build/site, with search and API pages; every link is checked
	$(VENV)/python -m mkdocs build --strict -f tools/site/mkdocs.yml
	@echo "open build/site/index.html"

report-picture: ## the report of `make demo` as a picture for README.md (Debian's package chromium)
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1100,520 \
	  --screenshot=docs/report.png file://$(CURDIR)/build/demo/icebreaker/report/report.html

bench: $(STAMP) ## golden against torch; the core in simulation (DATA=folder for all rows)
	$(VENV)/python -m tools.bench --json build/bench/golden.json
	$(VENV)/python -m sim.bench --json build/bench/core.json \
	  $(if $(DATA),--data $(DATA)) $(ARGS)

bench-gpu: $(STAMP) ## training steps and neuron kernels on the GPU
	$(VENV)/python -m tools.bench_gpu $(ARGS)

ablation: $(STAMP) ## train each row of the ablation table for 60 epochs (a GPU; DATA=folder with cifar10/)
	@test -d "$(DATA)" || { echo "give DATA=folder, with the subfolder cifar10" >&2; exit 2; }
	for row in t2 v1 v2 v3 binary ternary-fixed ternary-learned quant-ann ann; do \
	  $(VENV)/python -m train --config cifar10-resnet20-$$row --data $(DATA)/cifar10 \
	    --out runs/ablation/$$row --resume --set train.epochs=60 --set train.batch=256 \
	    --set train.lr=0.1 --set train.warmup_epochs=2 --set train.eval_every=20 \
	    --set train.compile=reduce-overhead --set train.fuse=true $(ARGS) || exit 1; \
	done

zoo: $(STAMP) ## train, export and evaluate the zoo's small networks (DATA=folder with mnist/, nmnist/)
	@test -d "$(DATA)" || { echo "give DATA=folder, with the subfolders mnist and nmnist" >&2; exit 2; }
	for name in digits digits-vgg mnist mnist-4bit nmnist; do \
	  data="--data $(DATA)/$${name%-4bit}"; case $$name in digits*) data=;; esac; \
	  $(VENV)/python -m train --config $$name $$data --out runs/zoo-$$name --resume && \
	  $(VENV)/python -m train.export runs/zoo-$$name --out lbq_hw/zoo/$$name.lbq && \
	  $(VENV)/python -m lbq_hw.evaluate --model $$name $$data --json \
	    > lbq_hw/zoo/$$name.json || exit 1; \
	done

pin: $(STAMP) ## pin the newest versions that pyproject.toml allows
	$(VENV)/python -m pip install -qq --upgrade --upgrade-strategy eager -e '.[train,hw,images,import,cluster,dev]'
	$(VENV)/python -m pip freeze --all --exclude-editable --exclude pip --exclude wheel \
	  > .ci/constraints.new
	{ echo '# Exact versions that `make setup` installs, written by `make pin`.'; \
	  sed 's/+.*//' .ci/constraints.new; } > .ci/constraints.txt
	rm .ci/constraints.new
	$(VENV)/python -m pytest tests/test_pins.py

clean: ## remove build products and caches; keeps .venv, runs/ and data/
	rm -rf build .pytest_cache .ruff_cache .hypothesis *.egg-info
	find $(wildcard lbq_hw train sim boards tests) -name __pycache__ -type d -prune -exec rm -rf {} +

HEADERS := import os, sys, sysconfig; sys.exit(not os.path.isfile(sysconfig.get_path("include") + "/Python.h"))

$(STAMP): pyproject.toml .ci/constraints.txt
	@$(PYTHON) -c '$(HEADERS)' || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	  && apt-get update -qq && apt-get install -qq -y python3-dev > /dev/null; } || true
	@missing=; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null \
	  || missing="$$missing, Python 3.11 or newer (package python3; another one: make PYTHON=python3.12)"; \
	$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null \
	  || missing="$$missing, Python's venv module (package python3-venv)"; \
	$(PYTHON) -c '$(HEADERS)' 2> /dev/null \
	  || missing="$$missing, Python's headers (package python3-dev)"; \
	command -v g++ > /dev/null || missing="$$missing, a C++ compiler (package g++)"; \
	if [ -n "$$missing" ]; then \
	  echo "Missing: $${missing#, }." >&2; \
	  echo "On Debian or Ubuntu: sudo apt install python3 python3-dev python3-venv python3-pip g++" >&2; \
	  exit 1; \
	fi
	@echo "Setting up .venv: downloads PyTorch and more the first time, a few minutes."
	@$(PYTHON) -m venv .venv
	@$(VENV)/python -m pip install -qq --disable-pip-version-check \
	  -c .ci/constraints.txt -e '.[train,hw,images,import,cluster,dev]' \
	  || { echo "The dependencies could not be installed (pip's reason is above): see that the" \
	    "package index can be reached and that the disk has 3 GB free, then repeat." >&2; exit 1; }
	@command -v verilator > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	  && apt-get update -qq && apt-get install -qq -y verilator > /dev/null; } \
	  || echo "Verilator is missing, so whole networks are not simulated: sudo apt install verilator"
	@command -v iverilog > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	  && apt-get update -qq && apt-get install -qq -y iverilog > /dev/null; } \
	  || echo "Icarus is missing, so the cocotb benches are not run: sudo apt install iverilog"
	@touch $@
