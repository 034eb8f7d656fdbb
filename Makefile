# SPDX-License-Identifier: GPL-2.0
# Front door of the tree: each target calls one script or one sub-make; the
# work is described there.  `make help` lists the targets.

KERNEL  ?= 6.1
PREFIX  ?= /usr/local
DESTDIR ?=
TOP     := $(CURDIR)
RELEASE := $(shell uname -r)
JOBS    := $(shell nproc)
TESTED  := $(shell sed -n 's/^\([0-9][^ ]*\).*/\1/p' KERNELS)

CFLAGS  ?= -std=gnu11 -O2 -g -Wall -Wextra -Werror

ifneq ($(words $(TOP)):$(findstring :,$(TOP)),1:)
$(error Kbuild cannot work below a path with a blank or a colon: $(TOP))
endif

export V
QUIET   := --no-print-directory $(if $(V),,-s)

all: module pathprof mssab docs	## build everything for this machine (default)

module:				## build mssfrac.ko for the running kernel
	@if [ -e /lib/modules/$(RELEASE)/build/Makefile ]; then \
		scripts/build-kmod $(RELEASE); \
	else \
		echo "no headers of the running kernel $(RELEASE):" \
			"mssfrac.ko left out"; \
	fi

kmod:				## build mssfrac.ko for KERNEL= (6.1)
	@scripts/build-kmod $(KERNEL)

pathprof: tools			## build the profiler
	@$(MAKE) $(QUIET) -C userspace/pathprof O=$(TOP)/build

mssab: tools build/bin/mssab-load ## build the A/B runner
	@ln -sfn ../../userspace/mssab/mssab.sh build/bin/mssab

build/bin/mssab-load: userspace/mssab/mssab-load.c
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) -o $@ $<

docs: tools			## build the manual pages
	@$(MAKE) $(QUIET) -C Documentation O=$(TOP)/build

tools:
	@scripts/setup --check build

demo:				## show it all in a guest running KERNEL=
	@scripts/setup build guest $(KERNEL)
	@$(MAKE) $(QUIET) -j$(JOBS) kmod pathprof mssab
	@scripts/demo --kernel $(KERNEL)

check:				## run all tests on every kernel of KERNELS
	@scripts/setup build guest $(TESTED) check
	@tests/run

check-unit:			## run the tests that need no guest
	@scripts/setup build check
	@tests/run --only '^(lint|unit)/'

shell:				## a shell in a guest running KERNEL=
	@scripts/setup build guest $(KERNEL)
	@$(MAKE) $(QUIET) -j$(JOBS) kmod pathprof mssab
	@scripts/guest --kernel $(KERNEL) --shell

bench-window:			## measure small windows, stock and treated
	@scripts/setup build guest $(KERNEL)
	@$(MAKE) $(QUIET) -j$(JOBS) kmod pathprof mssab
	@scripts/bench $(KERNEL) experiments/windows.toml

bench-cost:			## count the instructions the module adds
	@scripts/setup build guest $(KERNEL)
	@$(MAKE) $(QUIET) -j$(JOBS) kmod mssab
	@scripts/bench-cost $(KERNEL)

bench-programs:			## run real programs with small buffers
	@scripts/setup build guest $(KERNEL) programs
	@$(MAKE) $(QUIET) kmod
	@scripts/bench-programs $(KERNEL)

bench-payload:			## sweep the size of one write, and plot it
	@scripts/setup build guest $(KERNEL) plot
	@$(MAKE) $(QUIET) -j$(JOBS) kmod mssab
	@scripts/bench-payload $(KERNEL)

load: module			## load the module into this machine's kernel
	@scripts/load

unload:				## take the module out again
	@scripts/load --unload

install: all			## install to PREFIX= (/usr/local)
	@scripts/install $(PREFIX) $(DESTDIR)

uninstall:			## remove what install put there
	@scripts/install --remove $(PREFIX) $(DESTDIR)

clean:				## remove what was built; keep guest kernels
	@rm -rf $(filter-out build/kernels build/venv,$(wildcard build/*))

help:				## this list
	@sed -n 's/^\([a-z-]*\):[^#]*##/  make \1\t/p' Makefile | expand -t 24

.PHONY: all module kmod pathprof mssab docs tools demo check check-unit \
	shell bench-window bench-cost bench-programs bench-payload load unload install uninstall clean help
