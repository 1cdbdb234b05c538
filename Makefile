# Commands for developers. .ci/run runs the same scripts, and more.

FUZZTIME ?= 5s
BENCHCOUNT ?= 6
PREFIX ?= /usr/local
PROGRAMS = tracegen traceconv tracecat simulate

.PHONY: build man install test check docs golden bench bench-baseline fuzz

build: ## build the four programs into bin/
	go build -o bin/ ./cmd/...

man: build ## write the man pages into man/
	rm -rf man
	for p in $(PROGRAMS); do bin/$$p man man || exit 1; done

install: man ## install programs, man pages and shell completions below PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 644 man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	for p in $(PROGRAMS); do \
	  install -m 755 bin/$$p $(DESTDIR)$(PREFIX)/bin/$$p && \
	  bin/$$p completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$p && \
	  bin/$$p completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$p && \
	  bin/$$p completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$p.fish || exit 1; \
	done

test: ## run all tests
	go test ./...

check: ## run formatters, linters and the check of the import diagram
	.ci/check

docs: ## run every command of the README, the tutorial and the how-to pages, and compare outputs
	go test ./docs/... -count=1

golden: ## rewrite golden files and generated parts of the documentation; review the diff
	.ci/golden

bench: ## compare the benchmarks of the baseline with this tree (benchstat, BENCHCOUNT runs)
	.ci/bench $(BENCHCOUNT)

bench-baseline: ## measure the baseline anew on this machine
	.ci/bench $(BENCHCOUNT) baseline

fuzz: ## run every fuzz target for FUZZTIME
	FUZZTIME=$(FUZZTIME) .ci/fuzz
