# SPDX-License-Identifier: GPL-2.0-only
# Front door of the tree: each target calls one script or one sub-make; the
# work is described there.  `make help` lists the targets.

KERNEL  ?= 6.1
PREFIX  ?= /usr/local
DESTDIR ?=
TOP     := $(CURDIR)
RELEASE := $(shell uname -r)
JOBS    := $(shell nproc)
TESTED  := $(shell awk '/^[0-9]/ && $$NF ~ /^(check|smoke)$$/ { print $$1 }' KERNELS)
ALL     := $(shell awk '/^[0-9]/ { print $$1 }' KERNELS)

CLANG   ?= clang
WERROR  ?= -Werror
CFLAGS  ?= -O2 -g
# What builds the programs, if it is missing; packagers set true.
SETUP   ?= scripts/setup

# Only Kbuild is in the way of such a tree: the module is left to a copy of it.
ifneq ($(words $(TOP)):$(findstring :,$(TOP)),1:)
NO_KBUILD = echo "Kbuild cannot work below a path with a blank or a colon: $(TOP)" >&2; exit 3
endif

COMPILE  = $(CC) -std=gnu11 $(CPPFLAGS) $(CFLAGS) -Wall -Wextra $(WERROR) $(LDFLAGS)

# link TARGET NAME: not made anew, because the tree may be read-only when installed.
link = [ "`readlink $(2)`" = $(1) ] || ln -sfn $(1) $(2)

export V WERROR
QUIET   := --no-print-directory $(if $(V),,-s)

all: module programs		## build everything for this machine (default)

programs: cc-bpf pathprof mssab msstune docs ## build all but the kernel module

module:				## build mssfrac.ko for the running kernel
	@$(if $(NO_KBUILD),echo "$(TOP) has a blank or a colon: mssfrac.ko left out"; exit 0;) if [ -e /lib/modules/$(RELEASE)/build/Makefile ]; then \
		scripts/build-kmod $(RELEASE); \
	else \
		echo "no headers of the running kernel $(RELEASE):" \
			"mssfrac.ko left out"; \
	fi

kmod:				## build mssfrac.ko for KERNEL= (6.1)
	@$(or $(NO_KBUILD),scripts/build-kmod $(KERNEL))

cc-bpf: tools build/bpf/mssfrac_cc.bpf.o ## build the congestion control for BPF

COMPILE_BPF = $(CLANG) -g -O2 -Wall $(WERROR) -target bpf -mcpu=v3 \
	-D__TARGET_ARCH_x86 -Ibpf

build/bpf/mssfrac_cc.bpf.o: bpf/mssfrac_cc.bpf.c bpf/tcp.bpf.h bpf/vmlinux.h $(wildcard kmod/cong_*.h) kmod/cwnd.h kmod/window.h
	@mkdir -p $(@D)
	@$(COMPILE_BPF) -Ikmod -c -o $@ $<

pathprof: tools			## build the profiler
	@$(MAKE) $(QUIET) -C userspace/pathprof

mssab: tools tcpload		## build the A/B runner
	@$(call link,../../userspace/mssab/mssab.sh,build/bin/mssab)

msstune: tools			## link the tuner into build/bin
	@mkdir -p build/bin
	@$(call link,../../userspace/msstune/msstune.sh,build/bin/msstune)

tcpload: build/bin/tcpload	## build the traffic generator

build/bin/tcpload: $(wildcard userspace/tcpload/*.[ch]) VERSION
	@mkdir -p $(@D)
	@$(COMPILE) -DVERSION='"$(shell cat VERSION)"' -o $@ $(filter %.c,$^)

workloads: pathprof tcpload	## build what recording a workload needs

reference-timer: $(addprefix build/,tests/reference-timer tests/reference-timer.bpf.o bin/tcpload) ## build the reference for pathprof's times

build/tests/reference-timer: tests/reference-timer/reference-timer.c
	@mkdir -p $(@D)
	@$(COMPILE) -D_GNU_SOURCE -o $@ $< -lbpf

build/tests/reference-timer.bpf.o: tests/reference-timer/reference-timer.bpf.c bpf/vmlinux.h
	@mkdir -p $(@D)
	@$(COMPILE_BPF) -c -o $@ $<

least: $(addprefix build/,tests/least tests/least.bpf.o) ## build the least that tracing can cost

build/tests/least: tests/bench/overhead/least.c
	@mkdir -p $(@D)
	@$(COMPILE) -D_GNU_SOURCE -o $@ $< -lbpf

build/tests/least.bpf.o: tests/bench/overhead/least.bpf.c bpf/vmlinux.h
	@mkdir -p $(@D)
	@$(COMPILE_BPF) -c -o $@ $<

trajectory: $(addprefix build/,tests/trajectory tests/trajectory.bpf.o bpf/mssfrac_cc.bpf.o) ## build the recorder of congestion windows

build/tests/trajectory: tests/trajectory/trajectory.c tests/trajectory/trajectory.h kmod/cong_state.h kmod/cwnd.h
	@mkdir -p $(@D)
	@$(COMPILE) -D_GNU_SOURCE -Ikmod -o $@ $< -lbpf

build/tests/trajectory.bpf.o: tests/trajectory/trajectory.bpf.c tests/trajectory/trajectory.h bpf/tcp.bpf.h bpf/vmlinux.h kmod/cong_state.h kmod/cwnd.h
	@mkdir -p $(@D)
	@$(COMPILE_BPF) -Ikmod -c -o $@ $<

# All of pathprof in one program with the fuzzer, whose main() it is.
SANITIZE := -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all \
	-fsanitize=address,undefined,float-cast-overflow

fuzz: build/tests/fuzz		## build the fuzzer of pathprof's file readers

build/tests/fuzz: $(wildcard tests/fuzz/*.[ch] userspace/pathprof/*.c userspace/pathprof/*/*.[ch] bpf/*) | pathprof
	@mkdir -p $(@D)
	@$(COMPILE) -D_GNU_SOURCE $(SANITIZE) -Dmain=pathprof_main \
		-DVERSION='"fuzz"' -Iuserspace/pathprof -Ibpf -Ibuild/bpf -o $@ $(filter %.c,$(filter-out bpf/%,$^)) \
		-lbpf -ljansson -lncursesw -lpcap -lm -pthread

docs: tools			## build the manual pages
	@$(MAKE) $(QUIET) -C Documentation

tools:
	@$(SETUP) --check build

demo:				## demonstrate the tools in a guest (KERNEL=6.1)
	@scripts/setup build guest $(KERNEL)
	@$(MAKE) $(QUIET) -j$(JOBS) kmod pathprof mssab
	@scripts/demo --kernel $(KERNEL)

check:				## run the tests: on one kernel, and smoke on another
	@scripts/setup build guest $(TESTED) check ab bisect
	@tests/run

ON      ?= $(ALL)
check-kernels:			## run all but long tests on all KERNELS (ON="6.1 7.2")
	@scripts/setup build guest $(ON) check ab bisect
	@tests/run --level check-kernels $(addprefix -k ,$(ON)) $(addprefix --after ,$(AFTER))

check-bare:			## run make check in a new minimal Debian 12 (root)
	@scripts/bare-root -- make check

check-readme:			## run the README's commands in a new Debian 12
	@tests/readme run --bare

check-debug:			## run the module's tests on two debug kernels
	@scripts/setup build guest 7.2 check debug
	@scripts/debug-kernel 6.12
	@scripts/debug-kernel 7.2
	@tests/run --kernel debug --kernel debug-7.2 --only '^guest-debug'

check-fault-injection:		## check that the debug kernel detects faults
	@scripts/setup build guest 7.2 check debug
	@scripts/debug-kernel 6.12
	@scripts/debug-kernel 7.2
	@tests/fault-injection/check

check-all:			## run the long tests too, on all KERNELS, and DKMS
	@scripts/setup build guest $(ALL) check ab roots
	@tests/run --all

check-unit:			## run the tests that need no guest
	@scripts/setup build check ab
	@tests/run --only '^(lint|unit)/'

PACKETDRILL ?= PACKETDRILL-is-not-set
check-packetdrill:		## compare packetdrill's verdicts (PACKETDRILL=tree)
	@scripts/setup build guest $(TESTED)
	@for kernel in $(TESTED); do \
		$(MAKE) $(QUIET) kmod KERNEL=$$kernel || exit; done
	@scripts/packetdrill $(addprefix -k ,$(TESTED)) $(PACKETDRILL)

KERNEL_TREE ?= KERNEL_TREE-is-not-set
check-kselftest:		## run the tests as kselftests (KERNEL_TREE=tree)
	@scripts/setup build guest $(TESTED) kselftest
	@scripts/kselftest $(addprefix -k ,$(TESTED)) $(KERNEL_TREE)

shell:				## open a shell in a guest (KERNEL=6.1)
	@scripts/setup build guest $(KERNEL)
	@$(MAKE) $(QUIET) -j$(JOBS) kmod pathprof mssab
	@scripts/guest --kernel $(KERNEL) --shell

FILE ?= experiments/window-26k.toml
experiment:			## run the experiment FILE= in a guest
	@scripts/setup build guest $(KERNEL) ab
	@$(MAKE) $(QUIET) -j$(JOBS) kmod mssab
	@scripts/experiment $(KERNEL) $(FILE)

# Each benchmark is a folder of tests/bench.  NEEDS: further words for
# scripts/setup; BUILD: targets that it runs; ARGS: arguments of its script.
BENCHES := $(patsubst tests/bench/%/run,bench-%,$(wildcard tests/bench/*/run))
bench-%: NEEDS =
bench-%: BUILD = kmod mssab
bench-%: ARGS = $(KERNEL)
bench-window: NEEDS = plot
bench-payload: NEEDS = plot
bench-overhead bench-stack: NEEDS = check
bench-overhead: BUILD = pathprof tcpload least
bench-stack: BUILD = pathprof tcpload
bench-programs: NEEDS = programs
bench-programs: BUILD = kmod
bench-stall: BUILD = kmod
bench-datagrams bench-steps: NEEDS = ab
bench-ladder: NEEDS = plot
bench-ladder: BUILD = workloads
bench-ladder: ARGS = all

bench-window:			## measure the window grid (resumes)
bench-window-iperf3:		## measure a few windows with iperf3
bench-policies:			## compare the sender with stock in many conditions
bench-cost:			## count the instructions that the module adds
bench-overhead:			## count the instructions that tracing adds
bench-stack:			## the same on a host of containers
bench-programs:			## run real programs with small buffers
bench-stall:			## measure the stall below one MSS, in two guests
bench-payload:			## sweep the size of one write, and plot it
bench-datagrams:		## measure UDP rates and losses of captures
bench-steps:			## measure the papers' optimisations one by one
bench-verdict: NEEDS = ab
bench-verdict: BUILD = mssab
bench-verdict: ARGS =
bench-verdict:			## simulate the decision rule of mssab
bench-ladder:			## record the workloads on each packaged kernel

$(BENCHES): bench-%:
	@scripts/setup build guest $(KERNEL) $(NEEDS)
	@$(MAKE) $(QUIET) -j$(JOBS) $(BUILD)
	@tests/bench/$*/run $(ARGS)

dist:				## make the release archive of HEAD, in build/dist
	@scripts/dist

deb:				## build Debian packages of HEAD, in build/deb
	@scripts/setup deb
	@scripts/deb

check-deb: deb			## install, use and purge the packages in bare roots
	@scripts/setup guest deb
	@tests/packages/check

check-pip:			## pip install on sid's Python and newest numpy
	@scripts/setup deb
	@tests/packages/pip sid

check-toolchain:		## build with the compilers of Debian 13 and sid
	@scripts/setup guest deb
	@tests/toolchain

load: module			## load the module into this machine's kernel
	@scripts/load

unload:				## remove the module from the kernel
	@scripts/load --unload

install: all			## install to PREFIX= (/usr/local)
	@scripts/install $(PREFIX) $(DESTDIR)

uninstall:			## remove the installed files
	@scripts/install --remove $(PREFIX) $(DESTDIR)

dkms: tools			## register the module with DKMS
	@scripts/dkms

undkms:				## remove the module from DKMS
	@scripts/dkms --remove

clean:				## remove build results; keep guest kernels
	@rm -rf $(filter-out build/kernels build/packaged build/roots build/venv,$(wildcard build/*))

help:				## print this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*##/  make \1\t/p' Makefile | expand -t 30

.PHONY: all programs module kmod pathprof mssab msstune tcpload workloads \
	reference-timer least trajectory cc-bpf fuzz docs tools demo check check-bare \
	check-readme check-kernels \
	check-all check-debug check-fault-injection check-packetdrill \
	check-unit shell experiment $(BENCHES) load unload dkms undkms \
	install uninstall dist deb check-deb check-pip check-toolchain clean \
	help
