# Everything a developer runs. Tools are pinned here and run with `go run`.
SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT       := go run mvdan.cc/gofumpt@v0.12.0

VERSION   := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# Extra arguments of go test, for example TESTFLAGS='-run Approve -v', and of
# the benchmark, for example BENCHFLAGS='--only warm,cold --json report.json'.
TESTFLAGS  ?=
BENCHFLAGS ?=
# The engines of test-engines: the one that answers, and the newest.
ENGINES    ?= found new
# Tests of what servers cost each other: no other package's run beside them.
ALONE      := ./test/e2e ./test/load
# How long each fuzz target runs.
FUZZTIME   ?= 10s

.PHONY: help build images demo test conformance test-engines check lint bench fuzz engine

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 16

build: ## build bin/dockgate
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/dockgate

images: engine ## build the images of the demo and the tests, where they changed
	go run ./test/images

demo: engine build ## play one session with a demo server in the terminal
	go run ./test/images demo
	bin/dockgate demo

test: engine images build ## run every test, the ones on the real engine too
	@mkdir -p bin
	go test -race -timeout 20m -coverpkg=./internal/... -coverprofile=bin/cover.out $(TESTFLAGS) $$(go list ./... | grep -vxF "$$(go list $(ALONE))")
	go test -race -timeout 20m -p 1 $(TESTFLAGS) $(ALONE)
	@go tool cover -func=bin/cover.out | awk 'END { print "statement coverage of internal: " $$NF }'
	go run ./test/leftovers

conformance: engine images ## run the official MCP conformance suite against the gateway
	TEST_ENGINE=require go test -count=1 -run 'TestConformance|TestBeyond' -v ./test/e2e

test-engines: engine build ## run what needs an engine on the one that answers and on the newest
	@for e in $(ENGINES); do \
		if [ $$e = new ]; then test/engine.sh new; export DOCKER_HOST=$$(test/engine.sh new host); fi; \
		go run ./test/images; \
		go test -race -count=1 -timeout 20m $(TESTFLAGS) ./internal/docker/... ./cmd/dockgate ./images/... ./test/e2e; \
		go run ./test/leftovers; \
	done

check: ## formatting, vet, go.mod, and that every platform compiles
	@$(GOFUMPT) -d . || { echo 'check: run "$(GOFUMPT) -w ."' >&2; exit 1; }
	go vet ./...
	go mod tidy -diff
	@for p in $(PLATFORMS); do \
		echo "go build $$p"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go build -o /dev/null ./cmd/... ./internal/...; \
	done

lint: ## golangci-lint
	$(GOLANGCI_LINT) run ./...

bench: engine images build ## measure against the raw exchange with a container
	go run ./test/bench $(BENCHFLAGS)

fuzz: ## let every fuzz target run for FUZZTIME (10s)
	@test/fuzz.sh $(FUZZTIME)

engine:
	@test/engine.sh
