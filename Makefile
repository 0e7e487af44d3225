# `make` prints the list. Two commands do all the set-up: `make run` and `make test`.

# Where go.dev's instructions put Go; a login shell may not know it.
export PATH := $(PATH):/usr/local/go/bin
export CGO_ENABLED := 0
export GOFLAGS := -mod=readonly -buildvcs=false

# The race detector needs a C compiler; without one the tests run without it.
RACE := $(shell command -v gcc >/dev/null 2>&1 && echo -race)
TEST_CGO := $(if $(RACE),1,0)
TEMPL := go tool templ
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
HTMX := static/vendor/htmx.min.js
# What needs SQLite stands apart, so that the kit and the product don't.
MODULES := botkit/sqlitestore examples/go/kitbot

.DEFAULT_GOAL := help
.PHONY: help run test check build setup setup-test assets generate fmt lint bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: setup assets build ## bring what is missing, build, start with a PostgreSQL of its own and demo data
	@exec bin/mybots demo

test: setup-test assets ## bring what is missing, run all tests, the browser's too
	python3 -m unittest discover -s examples/python
	node --test examples/node/test_*.mjs
	CGO_ENABLED=$(TEST_CGO) go test $(RACE) -timeout 8m ./...
	@for m in $(MODULES); do (cd $$m && CGO_ENABLED=$(TEST_CGO) go test $(RACE) ./...) || exit 1; done

check: lint test ## all that must pass before a commit
	git diff --exit-code -- go.mod go.sum $(MODULES:%=%/go.mod) $(MODULES:%=%/go.sum) package-lock.json '*_templ.go'

build: ## build bin/mybots
	go build -trimpath -ldflags '-X main.commit=$(COMMIT)' -o bin/mybots ./cmd/mybots

setup: ## bring what running needs
	@scripts/setup run

setup-test: ## bring what the tests need
	@scripts/setup test

assets: $(HTMX) ## bring htmx, and axe-core for the tests, from npm

$(HTMX): package.json package-lock.json
	@if command -v npm >/dev/null 2>&1; then \
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && \
		cp node_modules/htmx.org/dist/htmx.min.js $(HTMX); \
	else echo "npm is missing: the screens work without htmx, less smoothly"; fi

generate: ## write the *_templ.go files anew
	$(TEMPL) generate

fmt: ## format Go and templ files
	gofmt -w $$(git ls-files -co --exclude-standard '*.go' | grep -v '_templ\.go$$')
	$(TEMPL) fmt .

lint: ## look for what is wrong without running it
	@test -z "$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go'))" || { echo "gofmt would change:"; gofmt -l $$(git ls-files -co --exclude-standard '*.go'); exit 1; }
	$(TEMPL) fmt -fail .
	$(TEMPL) generate -check
	go vet ./...
	go tool staticcheck ./...
	go mod verify >/dev/null
	@staticcheck=$$(go tool -n staticcheck) && for m in $(MODULES); do echo "lint $$m" && (cd $$m && go vet ./... && $$staticcheck ./...) || exit 1; done

bench: setup ## measure intake, wake-up and memory against this machine's own limit
	go run ./cmd/loadtest

clean: ## remove what was built
	rm -rf bin
