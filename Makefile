# make run        the spiral study, from a fresh clone to its page (no PyTorch)
# make test       everything CI checks
# make test-slow  stress, zoo and cluster tests
# make cifar10    the quick CIFAR-10 study (DATA=folder that holds the images; downloads them where unset)
# make repairs    every repair in one harness: on the spiral, and with DATA=folder on CIFAR-10
# make elsewhere  transformers, and depth in time: the studies of docs/elsewhere.md (DATA=folder that holds the texts)
# make bench      the table of docs/speed.md: half an hour on a machine that does nothing else (DATA: CIFAR-10)
# make landscape  maps of the loss around networks, the study of docs/landscape.md (DATA=folder that holds the images)
# make figures    the pictures of the README, from records; tables and figure of docs/statistics.md, simulated

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
DATA   ?=
# On Linux this takes a CUDA build of several gigabytes, unless pip is configured otherwise. The small CPU build:
#   make test TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
TORCH  ?= torch==2.13.0
OUT    ?= results
ELSEWHERE := microgpt identity time relational transformer deepnorm
# Tests at a time. A file's tests stay together, in the order of the folders: none is made to wait for the longest.
JOBS   ?= 2

.PHONY: run repairs elsewhere landscape test test-slow cifar10 bench figures format clean

run: $(VENV)/.base
	$(BIN)/depthscope run spiral --out $(OUT)/spiral

cifar10: $(VENV)/.torch
	$(BIN)/depthscope run cifar10 --size quick --out $(OUT)/cifar10 $(if $(DATA),--data $(DATA))

repairs: $(VENV)/.torch
	$(BIN)/depthscope tune repairs-spiral --run --out $(OUT)/repairs-spiral-tuning --write $(OUT)/repairs-spiral-tuned.toml
	$(if $(DATA),$(BIN)/depthscope tune repairs-cifar10 --run --data $(DATA) --out $(OUT)/repairs-cifar10-tuning --write $(OUT)/repairs-cifar10-tuned.toml)

elsewhere: $(VENV)/.torch
	$(foreach study,$(ELSEWHERE),$(BIN)/depthscope run $(study) --size quick --out $(OUT)/$(study) $(if $(DATA),--data $(DATA)) &&) true
	$(BIN)/python docs/make_studies.py $(addprefix $(OUT)/,$(ELSEWHERE))

landscape: $(VENV)/.torch
	$(BIN)/depthscope run landscape --size quick --out $(OUT)/landscape $(if $(DATA),--data $(DATA))
	$(BIN)/python docs/make_studies.py $(OUT)/landscape

test: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder

test-slow: $(VENV)/.dev
	$(BIN)/pytest -m slow

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench.py $(if $(DATA),--data $(DATA))

figures: $(VENV)/.torch
	$(BIN)/python docs/make_figures.py $(OUT)
	$(BIN)/python docs/make_statistics.py

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	touch $@

# torch by its exact version, and first: a range would let pip choose a build of several gigabytes.
$(VENV)/.torch: $(VENV)/.base
	$(PIP) $(TORCH)
	touch $@

$(VENV)/.dev: $(VENV)/.torch
	$(PIP) --editable '.[torch,ray,tensorboard,dev]'
	touch $@
