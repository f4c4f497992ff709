# What a user types. `make` alone builds; see README.md.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
# Where the demo and the benchmarks leave their results.
OUT ?= out

target := $(or $(CARGO_TARGET_DIR),target)
release := $(target)/release
library := $(abspath $(release))/libsaiga.so
# The gateway's plug-in for DPDK, where DPDK is.
plugin := $(release)/libsaiga_dpdk.so
# The one with fault injection, for the tests alone.
chaos := $(abspath $(target))/chaos
# Parts of the wait policy, each left out of a library of its own.
ablation := $(abspath $(target))/ablation
parts := spin history wakeups foreign group turns
without := $(parts:%=--library $(ablation)/without-%.so)
libraries := SAIGA_LIBRARY=$(library) SAIGA_CHAOS_LIBRARY=$(chaos)/release/libsaiga.so

bin := $(DESTDIR)$(PREFIX)/bin
lib := $(DESTDIR)$(PREFIX)/lib/saiga
man := $(DESTDIR)$(PREFIX)/share/man/man1
bash := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
zsh := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
fish := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
units := $(DESTDIR)$(PREFIX)/lib/systemd/system
users := $(DESTDIR)$(PREFIX)/lib/sysusers.d
networks := $(DESTDIR)$(PREFIX)/lib/systemd/network

# The binary is documented by itself: it shares its name, and so its folder, with the library.
doc := --no-deps --document-private-items --locked

# What `saiga --version` and every result say of the build; empty where git does not know it.
export SAIGA_COMMIT ?= $(shell git describe --always --dirty --abbrev=12 2>/dev/null)

# Tests that are not even compiled for `make test`.
soak := saiga-trials/soak,saiga-tpcc/soak,saiga-cli/soak,saiga-interface/soak

.PHONY: all build library plugin chaos arm demo demo-net test test-arm loom soak bench bench-stack bench-recovery bench-wait \
	ablation bench-hostile bench-tpcc lint fmt install uninstall clean

all: build

# The binary and the library that it preloads.
build: plugin
	$(CARGO) build --release --locked -p saiga-cli -p saiga-preload

# 1: there is no DPDK on this machine.
plugin:
	tools/dpdk $(plugin) || [ $$? = 1 ]

# The library alone: tests run the binary as `cargo test` builds it.
library:
	$(CARGO) build --release --locked -p saiga-preload

chaos:
	$(CARGO) build --release --locked -p saiga-preload --features chaos --target-dir $(chaos)

# The same for Arm on x86-64, in target/arm/aarch64-unknown-linux-gnu/release. Ten minutes, and 4 GiB for compilers below
# target/cross.
arm:
	tools/cross build

# Measures Redis on this machine with and without Saiga; prints the table and where the report is.
demo:
	tools/setup demo
	$(MAKE) build
	$(release)/saiga compare redis --out $(OUT)/demo

# Measures Redis for a client on another host, with the kernel and with the gateway: two network namespaces on this
# machine, three minutes. Root.
demo-net:
	tools/setup demo
	$(MAKE) build
	$(release)/saiga compare redis --over tap -c 50 --out $(OUT)/demo-net

test:
	tools/setup test
	$(MAKE) library chaos
	$(libraries) tools/test --workspace --locked
	$(MAKE) loom

# The tests of programs for Arm, emulated on x86-64: an hour with the build.
test-arm:
	tools/test-arm

# The rings and waiting places under every interleaving that loom finds with two to four preemptions, and
# whether it finds wrong orderings that are planted; a minute.
loom:
	tools/loom

# The TCP/IP stack on one core without a device, beside smoltcp; a minute or two.
bench-stack:
	$(CARGO) run --release --locked -p saiga-stack --example bench

# The long tests: kill -9 a thousand times, a hundred thousand connections. And those with MySQL, QEMU, Ansible and Slurm,
# which they look for in target/mysql and so on wherever the rest is built; then the trials for Arm.
soak:
	tools/setup test
	tools/mysql target/mysql
	tools/qemu target/qemu
	tools/ansible target/ansible
	tools/slurm target/slurm
	$(MAKE) build chaos
	$(libraries) SAIGA_SOAK=1 $(CARGO) test --workspace --features $(soak) --locked -- --nocapture
	tools/test-arm soak

# Every cell of the comparison: half an hour on a machine that should be otherwise quiet.
bench:
	tools/setup demo
	$(MAKE) build
	$(release)/saiga compare redis --full --out $(OUT)/bench

# What each part of the wait policy is worth (docs/waiting.md): the library beside builds that lack one part, a quarter of an
# hour on a quiet machine with two CPUs.
bench-wait: ablation
	$(release)/saiga compare redis -t set -c 1,50 --arms kernel,saiga $(without) --out $(OUT)/wait/redis
	$(release)/saiga compare redis -t set -c 50 --hog 0 --arms kernel,saiga $(without) --out $(OUT)/wait/redis-hog
	$(release)/saiga compare sql --engine mariadb,postgres --only c16-unpinned --only c64-unpinned --hog none,0 --arms kernel,saiga $(without) --out $(OUT)/wait/sql

# The libraries that lack one part.
ablation:
	tools/setup test
	$(MAKE) build
	for part in $(parts); do \
		$(CARGO) build --release --locked -p saiga-preload --features without-$$part --target-dir $(ablation) && \
		cp $(ablation)/release/libsaiga.so $(ablation)/without-$$part.so || exit; \
	done

# How a bystander of redis-server is served while another client attacks the server
# (docs/security.md): four minutes on a quiet machine.
bench-hostile:
	tools/setup test
	$(MAKE) build
	$(CARGO) build --release --locked -p saiga-trials --bins --example siege
	SAIGA_LIBRARY=$(library) $(release)/examples/siege

# What `saiga bench tpcc` costs its client, against its targets (docs/tpcc.md): about 25 minutes by its parts, 20 GB of disk.
bench-tpcc:
	tools/setup test
	$(MAKE) build
	tools/bench-tpcc --saiga $(release)/saiga --out $(OUT)

# Goodput and fairness of the TCP engine (docs/tcp.md): simulated in two minutes, then beside Linux's CUBIC in 50 minutes of
# real time. Root: the flows run between two network namespaces.
recovery := $(OUT)/recovery
bench-recovery:
	$(CARGO) build --release --locked -p saiga-goodput --examples
	mkdir -p $(recovery)
	$(release)/examples/simulated 60 5 >$(recovery)/simulated.md 2>$(recovery)/simulated.log
	$(release)/examples/beside_linux goodput 10 5 >$(recovery)/goodput.md 2>$(recovery)/goodput.log
	$(release)/examples/beside_linux fairness 60 5 >$(recovery)/fairness.md 2>$(recovery)/fairness.log
	cat $(recovery)/*.md

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features $(soak) --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --exclude saiga-cli $(doc)
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc -p saiga-cli $(doc)
	tools/rules
	tools/licenses

fmt:
	$(CARGO) fmt --all

# Builds when it can (root often has no cargo), then copies. GAZELLE's users know the library as liblstack.so.
install:
	if command -v $(CARGO) >/dev/null; then $(MAKE) build; fi
	test -x $(release)/saiga && test -f $(release)/libsaiga.so || \
		{ echo "nothing to install: run make first" >&2; exit 2; }
	install -d $(bin) $(lib) $(man) $(bash) $(zsh) $(fish) $(units) $(users) $(networks)
	install -m 755 $(release)/saiga $(bin)/saiga
	install -m 755 $(release)/libsaiga.so $(lib)/libsaiga.so
	install -m 755 $(release)/libsaiga.so $(lib)/liblstack.so
	if test -f $(plugin); then install -m 755 $(plugin) $(lib)/libsaiga_dpdk.so; fi
	$(release)/saiga man --out $(man)
	$(release)/saiga completions bash > $(bash)/saiga
	$(release)/saiga completions zsh > $(zsh)/_saiga
	$(release)/saiga completions fish > $(fish)/saiga.fish
	sed 's,/usr/local/bin/,$(PREFIX)/bin/,' packaging/saiga-gateway.service > $(units)/saiga-gateway.service
	chmod 644 $(units)/saiga-gateway.service
	install -m 644 packaging/sysusers.conf $(users)/saiga.conf
	install -m 644 packaging/saiga-gateway.network $(networks)/00-saiga-gateway.network

# Settings in /etc/saiga are the administrator's and stay.
uninstall:
	rm -f $(bin)/saiga $(lib)/libsaiga.so $(lib)/liblstack.so $(lib)/libsaiga_dpdk.so $(man)/saiga.1 $(man)/saiga-*.1
	rm -f $(bash)/saiga $(zsh)/_saiga $(fish)/saiga.fish
	rm -f $(units)/saiga-gateway.service $(users)/saiga.conf $(networks)/00-saiga-gateway.network
	if [ -d $(lib) ]; then rmdir --ignore-fail-on-non-empty $(lib); fi

clean:
	$(CARGO) clean
