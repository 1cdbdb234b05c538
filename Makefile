# Commands for developers. .ci/run runs the same scripts, and more.

FUZZTIME ?= 5s
BENCHCOUNT ?= 6

.PHONY: build test check docs golden bench bench-baseline fuzz

build: ## build the four programs into bin/
	go build -o bin/ ./cmd/...

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
