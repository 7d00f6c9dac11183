# Each goal does its own set-up: `make demo` and `make test` need Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help demo test test-long test-all test-lowest lint bench tables nist fuzz audit wheel-test image-test docs site paper page lock clean

help:            ## list the goals
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Spinney needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(READY)   ## publish a synthetic map of a made-up town, with a picture
	$(BIN)/spinney demo --out demo-output --force

# Two workers leave no processor to the threads of numerical libraries, which would wait for each other. Tests begin
# with what a warm-up compiled while mypy was at work, and one of them looks whether that was all; what was compiled is
# kept as long as the sources and the environment are the same. Bytecode is kept, whatever the shell says, because tests
# start many processes.
WARMED := $(CURDIR)/.warmed
test: $(READY)   ## lint, types, import contracts, and the tests of every change
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint .warmed/report.json
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= SPINNEY_WARMED=$(WARMED) NUMBA_CACHE_DIR=$(WARMED)/used \
	  $(BIN)/python -m pytest -n 2 --dist worksteal

test-long: $(READY)   ## all tests: those that `make test` leaves out, and the others in more depth (an hour or two)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 SPINNEY_LONG_TESTS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m ""

.warmed/report.json: $(READY) $(shell find src/spinney -name '*.py')
	rm -rf $(WARMED)
	mkdir $(WARMED)
	NUMBA_CACHE_DIR=$(WARMED)/cache PYTHONDONTWRITEBYTECODE= $(BIN)/spinney warm-up --json > $(WARMED)/report
	cp -r $(WARMED)/cache $(WARMED)/used
	mv $(WARMED)/report $(WARMED)/report.json

TESTS ?=
test-all:        ## all tests under every Python from 3.11 up on this machine (TESTS="tests/golden ..." for some of them)
	$(PYTHON) tools/other_versions.py $(TESTS)

test-lowest:     ## unit tests with the lowest versions of dependencies that pyproject.toml allows (TESTS= as above)
	$(PYTHON) tools/other_versions.py --lowest $(TESTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## benchmarks: print measured against wanted, fail where one is missed
	$(BIN)/python -m benchmarks

nist: $(READY)   ## have NIST's scorer judge our rows of its excerpt (DATA=its folder, OUT=nist-output, RELEASES=5)
	@test -n "$(DATA)" || { echo "make nist needs DATA=FOLDER, NIST's diverse_communities_data_excerpts"; exit 2; }
	$(BIN)/python -m benchmarks.nist --data $(DATA) --out $(or $(OUT),nist-output) $(if $(RELEASES),--releases $(RELEASES))

tables: $(READY) ## how faithful the rows of public tables are (DATA=their folder, OUT=tables-output, MBI=a Python that has mbi, JOBS=1)
	@test -n "$(DATA)" || { echo "make tables needs DATA=FOLDER, where the tables are as parquet files"; exit 2; }
	$(BIN)/python -m benchmarks.tables --data $(DATA) --out $(or $(OUT),tables-output) $(if $(MBI),--mbi-python $(MBI)) $(if $(JOBS),--jobs $(JOBS))

SECONDS ?= 120
fuzz: $(READY)   ## look for inputs that crash, hang or leak (SECONDS=120 for each kind of input)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=3,<4' || echo "without atheris: no coverage to go by"
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(SECONDS) --keep fuzz-output

audit: $(READY)  ## play the audit's games against our mechanisms, and against every sabotaged one (ten minutes)
	$(BIN)/spinney audit
	$(BIN)/python -m benchmarks.audit_zoo

wheel-test:      ## build the wheel and the source archive, and run the demo from each in an empty environment (three minutes)
	$(PYTHON) tools/wheel_test.py

image-test:      ## build the image of the Containerfile and run the demo in it, where a container engine works (OPTIONS="--base IMAGE ...")
	$(PYTHON) tools/image_test.py $(OPTIONS)

docs: $(READY)   ## regenerate the command-line reference and the README's picture
	$(BIN)/python tools/cli_page.py

site: $(READY)   ## build the documentation into site/, which is read from disk: open site/index.html
	$(BIN)/python -m tools.website

paper: $(READY)  ## run every experiment of the paper in full (hours; DATA=folder with the credit-card table)
	$(BIN)/spinney paper all --out paper-output $(if $(DATA),--data $(DATA))

page: $(READY)   ## regenerate the pages of measured results: the paper's, the forest's, NIST's, fidelity, error bars, persons, and what epsilon buys
	$(BIN)/python tools/paper_page.py
	$(BIN)/python tools/forest_page.py
	$(BIN)/python tools/scale_page.py
	$(BIN)/python tools/nist_page.py
	$(BIN)/python tools/tables_page.py
	$(BIN)/python tools/coverage_page.py
	$(BIN)/python tools/people_page.py
	$(BIN)/python tools/audit_page.py
	$(BIN)/python tools/epsilon_table.py
	$(BIN)/python tools/peers_page.py
	$(BIN)/python -m tools.gallery

LOCK := uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url \
	  --extra plot --extra metrics --extra baselines --group test

lock:            ## renew both lock files from the ranges in pyproject.toml: newest and lowest versions (needs uv)
	$(LOCK) --group lint --group site --output-file requirements.lock pyproject.toml
	$(LOCK) --resolution lowest-direct --output-file requirements.lowest.lock pyproject.toml

clean:           ## remove the environments and everything generated
	rm -rf $(VENV) $(WARMED) .venv-3.* .venv-lowest .venv-nist demo-output site .site nist-output tables-output paper-output fuzz-output .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
