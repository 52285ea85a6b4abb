# Targets are explained by "make help". KUBERNETES_VERSION, NODES, PROVIDER and
# NAME choose the local cluster; IMAGE_REPOSITORY the names of images, and where
# "install" and "dist" let the cluster get them.
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

KUBERNETES_VERSION ?=
NODES ?=
PROVIDER ?= auto
NAME ?= registry

GO ?= go
export GO # hack/run builds with it
# A package that is compiled without its folder's name need not be compiled again in
# another clone, nor for the images, which are built so.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
LINT := $(GO) tool -modfile=$(CURDIR)/hack/tools/go.mod golangci-lint
# What others import without the rest. Each stands on those before it.
LIBRARIES := apis/clusterregistry client provider
# These, the product, the local cluster, and what develops the product: each stands on
# those before it. hack/olm and hack/helm stand on all of them.
MODULES := $(LIBRARIES) . hack/cluster hack
# In a part of hack/parts.sh the events of tests are kept for its report.
TEST := $(if $(PARTS_PROGRAM),$(PARTS_PROGRAM) test,$(GO) test)
# What needs no cluster has time for that in "make test-full".
RACE := $(if $(E2E_FULL),-race -shuffle=on -timeout 4h,-timeout 25m)
# The linter looks for all that vet looks for.
UNIT := $(TEST) -vet=off $(RACE)
# Tests of this module are built without C, as programs and images are: what is compiled for
# those is there, and Go links alone. Kustomize imports "plugin", for which it has the C compiler
# link otherwise, and that takes half as long again. Only the race detector needs C.
PURE := $(if $(E2E_FULL),,CGO_ENABLED=0)
# E2e tests share one cluster and stop its nodes, so their packages run one after the other.
STORY := $(TEST) -count=1 -p 1 -timeout $(if $(E2E_FULL),4h,25m)
# What measures, what only "make test-full" runs, and what gets the processor time that e2e
# tests leave, may take longer.
LONG := $(TEST) -count=1 -p 1 -timeout $(if $(E2E_FULL),4h,60m)

.PHONY: help
help: ## Show this text
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

##@ Start here

# The local cluster's kubeconfig, whatever the caller's KUBECONFIG is.
LOCAL := KUBECONFIG=$(CURDIR)/.cluster/$(if $(filter-out registry,$(NAME)),$(NAME)/)kubeconfig

.PHONY: demo
demo: ## From a bare computer to a living fleet: a registry on the local cluster, and clusters that join it
	@$(MAKE) --no-print-directory cluster
	@$(MAKE) --no-print-directory load RELEASES=newest # the samples' release
	@$(LOCAL) $(MAKE) --no-print-directory install
	@hack/run build bin kubectl-registry
	@$(LOCAL) hack/run demo $(NAME)

##@ Build

.PHONY: build
build: ## Build the programs into bin/
	hack/run build

.PHONY: images
images: ## Make images as archives in bin/images/, without Docker; RELEASES=v0.1.0 or newest: of these alone; PUBLISHED=build: build what could be pulled
	hack/run images $(RELEASES)

.PHONY: dist
dist: ## Write the operator, of the images built last, as one file for kubectl: dist/install.yaml
	@hack/run install write dist/install.yaml

.PHONY: digests
digests: ## Record the digests of the images of releases of the registry that are not released, see RELEASE.md
	@hack/run dist -record $(if $(PUBLISHED),-published=$(PUBLISHED))

.PHONY: release
release: ## Make all that VERSION=v0.2.0 is published as into dist/v0.2.0, see RELEASE.md; REHEARSE=1 although it is not ready
	@hack/run dist $(if $(REHEARSE),-rehearse) $(if $(PUBLISHED),-published=$(PUBLISHED)) $(VERSION)
	@$(if $(REHEARSE),hack/run publish -rehearse dist/$(VERSION))

# The packages that the page is built and tested with, as the lock file says: fetched again
# only when that has changed.
NPM_CI := npm ci --ignore-scripts --no-audit --no-fund
cli/ui/%/node_modules/.package-lock.json: cli/ui/%/package-lock.json
	cd cli/ui/$* && $(NPM_CI) && touch node_modules/.package-lock.json

.PHONY: ui
ui: cli/ui/page/node_modules/.package-lock.json ## Build the page of "kubectl registry ui" from cli/ui/page/src; needs Node.js
	cd cli/ui/page && npm run --silent check && npm run --silent build

##@ Local cluster

.PHONY: cluster-command
cluster-command:
	@$(GO) build -C hack/cluster -o ../../bin/cluster .

.PHONY: cluster
cluster: cluster-command ## Bring up a Kubernetes cluster on this computer; its kubeconfig is .cluster/kubeconfig
	@bin/cluster up --name=$(NAME) --provider=$(PROVIDER) $(if $(KUBERNETES_VERSION),--kubernetes-version=$(KUBERNETES_VERSION)) $(if $(NODES),--nodes=$(NODES))

.PHONY: cluster-down
cluster-down: cluster-command ## Remove the cluster without a trace, and the control planes beside it
	@bin/cluster down --name=$(NAME)

.PHONY: load
load: images cluster-command ## Make the images and bring them to the cluster's nodes
	@for archive in bin/images/*.tar; do bin/cluster load --name=$(NAME) $$archive || exit 1; done

##@ Operator

.PHONY: install
install: ## Install the operator, of the images built last, into the cluster of $KUBECONFIG
	@hack/run install up

.PHONY: uninstall
uninstall: ## Remove it from there; refuses while a registry exists
	@hack/run install down

.PHONY: bundle
bundle: ## Make the bundle for the Operator Lifecycle Manager, in bundle/
	@mkdir -p bin && $(GO) build -C hack/olm -o ../../bin/bundle ./bundle && bin/bundle

.PHONY: chart
chart: ## Make the chart for Helm, in chart/
	@hack/run chart write

.PHONY: catalog
catalog: ## Make the catalog that bundles are found by, with opm, in bin/catalog
	@mkdir -p bin && $(GO) build -C hack/olm -o ../../bin/publish ./publish && bin/publish

##@ Test

.PHONY: test
test: ## Unit, integration and the core end-to-end stories, on a cluster of its own
	@hack/test.sh core

# The parts that "make test-full" consists of, and what the ledger has of them.
LEDGER := hack/run parts begin && hack/run ledger

.PHONY: test-full
test-full: ## Every part that has not passed with what it depends on: all e2e packages, repeated and under faults, on every host version; races, OLM, skew. Hours; continues where it was interrupted
	@$(LEDGER) all

.PHONY: test-next
test-next: ## The parts of "test-full" that need a run most, as many as fit in MINUTES; results are added to test/ledger.jsonl
	@$(LEDGER) next $(or $(MINUTES),80)

.PHONY: test-part
test-part: ## PART="unit alerts": these parts of "test-full"
	@$(LEDGER) run $(PART)

.PHONY: test-list
test-list: ## Print the parts of "test-full", and when each passed
	@hack/run ledger list

.PHONY: unit
unit: ## Tests that need nothing
	$(PURE) $(UNIT) $$($(GO) list ./... | grep -v /e2e/) ./e2e/framework/... ./e2e/history/...
	$(PURE) $(UNIT) -run '^Test(Page|Selections)$$' ./e2e/reliability
	for module in $(LIBRARIES) hack/cluster; do (cd $$module && $(PURE) $(UNIT) ./...) || exit 1; done
	cd hack && $(PURE) $(UNIT) -count=1 ./... # they read the other modules, of which the cache of results knows nothing

.PHONY: simulation
simulation: ## SEEDS=100: so many lives of each story of the operator's simulation, or the one of SEED
	SEEDS=$(or $(SEEDS),100) $(GO) test -count=1 -timeout 75m -skip TestSecondFailure ./operator/simulation

.PHONY: second-failures
second-failures: ## RUN='a_backup|a_key': everything goes wrong at each step of these, by default of all that the operator does
	SEEDS=1 $(GO) test -count=1 -timeout 75m -run 'TestSecondFailure/($(RUN))' ./operator/simulation

.PHONY: examples
examples: ## Build the examples of how to use the registry from Go into bin/
	$(GO) build -C provider -o ../bin/ ./examples/...

.PHONY: integration
integration: integration-ready ## Tests that need a real kube-apiserver, which they start
	@$(MAKE) --no-print-directory integration-run

.PHONY: integration-ready
integration-ready: build examples cluster-command
	@bin/cluster binaries etcd v3.6.14 etcd etcdutl
	@bin/cluster binaries etcd v3.7.3 etcd etcdutl
	@bin/cluster binaries versitygw v1.7.0 versitygw
	@bin/cluster binaries fake-gcs-server v1.55.1 fake-gcs-server
	@bin/cluster binaries azurite v3.37.0 azurite-blob
	@bin/cluster binaries kubernetes v1.32.13 kubectl
	@$(if $(E2E_FULL),bin/cluster binaries kubernetes v1.34.4 kube-apiserver)
	@bin/cluster binaries kubernetes v1.37.1 kube-apiserver kubectl

# Of a small heap that each request collects, as that of a kube-apiserver of a test, Go spends a
# sixth of the processor's time on the collection. "make test-full" has programs as they are.
SPARING := $(if $(E2E_FULL),,GOGC=400)

.PHONY: integration-run
integration-run:
	$(SPARING) $(PURE) $(LONG) $(if $(E2E_FULL),-race -shuffle=on) -parallel 6 ./e2e/integration/... # they wait more than they compute

# What "make test" has time for. What is installed by hand in e2e/apiserver is used and restarted under load in CORE as well,
# where the operator installs it.
CORE := docs faults install reliability upgrade
PACKAGES := $(CORE)

.PHONY: e2e
e2e: e2e-ready ## E2e tests on the cluster that is up, with the operator installed in it; E2E_FULL=1: repeated; PACKAGES=faults: just those; RUN=TestX: just that
	@$(MAKE) --no-print-directory e2e-run

# Just what the tests run: e2e/framework/needs/needs.yaml says that.
.PHONY: e2e-ready
e2e-ready: RELEASES = $(addprefix e2e/,$(PACKAGES))
e2e-ready: load examples
	@bin/cluster binaries kubernetes v1.32.13 kubectl
	@$(if $(filter shipping,$(PACKAGES)),bin/cluster binaries helm v4.3.1 helm)
	@$(LOCAL) $(MAKE) --no-print-directory install dist

.PHONY: e2e-run
e2e-run:
	E2E_CLUSTER=$(NAME) $(PURE) $(STORY) $(if $(RUN),-run '$(RUN)') -skip '^Test(Cells|Bench|SecondCluster(Save|Restore))$$$(if $(E2E_FULL),,|^TestMatrix)' $(addprefix ./e2e/,$(PACKAGES))

.PHONY: e2e-cells
e2e-cells: ## Every operation under every fault, on the cluster that is up, which has NODES=5; hours; E2E_CELLS="disk full/3": those; E2E_UNMEASURED=1: those that the page has not
	E2E_CLUSTER=$(NAME) $(TEST) -count=1 -timeout 12h -v -run '^TestCells$$' ./e2e/reliability

.PHONY: e2e-packages
e2e-packages:
	@echo $(PACKAGES)

.PHONY: e2e-skew
e2e-skew: ## Every supported host with the first release and the last, and three kubectls; prints a table
	@hack/skew.sh

.PHONY: skew
skew: RELEASES = e2e/skew
skew: load
	@bin/cluster binaries kubernetes v1.32.13 kubectl
	@bin/cluster binaries kubernetes v1.34.4 kubectl
	@$(LOCAL) $(MAKE) --no-print-directory install
	E2E_CLUSTER=$(NAME) $(LONG) -v ./e2e/skew

.PHONY: e2e-second
e2e-second: ## Back up a registry of one cluster, and restore it in another one when the first is gone
	@hack/second.sh

.PHONY: second
second:
	E2E_CLUSTER=$(NAME) $(LONG) -v -run '^$(RUN)$$' ./e2e/backup

.PHONY: e2e-olm
e2e-olm: ## Install, upgrade and uninstall with the Operator Lifecycle Manager, which is built and run for that
	@hack/olm.sh

.PHONY: olm-platform
olm-platform:
	@$(GO) build -C hack/olm -o ../../bin/olm-platform ./platform
	@bin/olm-platform
	@bin/cluster load --name=$(NAME) bin/olm/images.tar

.PHONY: olm
olm:
	E2E_CLUSTER=$(NAME) $(LONG) -v ./e2e/olm

.PHONY: bench
bench: bench-api bench-cluster ## Measure the API, against a CRD, and the local cluster; prints tables

.PHONY: bench-operator
bench-operator: RELEASES = e2e/measure
bench-operator: load ## Measure the operator on the cluster that is up: the time until Ready, against kubectl, and memory
	@$(LOCAL) $(MAKE) --no-print-directory install
	E2E_CLUSTER=$(NAME) $(LONG) -v ./e2e/measure

.PHONY: bench-upgrade
bench-upgrade: RELEASES = e2e/upgrade
bench-upgrade: load ## Measure an upgrade through all releases under load: duration, failures, p50 and p99 before, during and after
	@$(LOCAL) $(MAKE) --no-print-directory install
	E2E_CLUSTER=$(NAME) $(LONG) -v -run '^TestUpgrade$$' ./e2e/upgrade

.PHONY: bench-backup
bench-backup: RELEASES = e2e/backup
bench-backup: load ## Measure backup, verification, restore and recovery of 1,000, 10,000 and 100,000 clusters, on the cluster that is up; about an hour
	@$(LOCAL) $(MAKE) --no-print-directory install
	E2E_CLUSTER=$(NAME) $(LONG) -v -timeout 3h -run '^TestBench$$' ./e2e/backup

.PHONY: bench-api
bench-api: build cluster-command
	@bin/cluster binaries etcd v3.6.14 etcd
	@bin/cluster binaries kubernetes v1.37.1 kube-apiserver
	$(LONG) -v -skip '^Test(Sizing|Fairness|Import)' ./e2e/bench

.PHONY: bench-sizing
bench-sizing: build cluster-command ## Measure what memory a server needs for 100,000 clusters, see docs/reference/sizing.md; 15 minutes
	@bin/cluster binaries etcd v3.6.14 etcd
	$(LONG) -v -run '^TestSizing$$' ./e2e/bench

.PHONY: bench-fairness
bench-fairness: build cluster-command ## Measure a user's reads while another has 400 lists under way
	@bin/cluster binaries etcd v3.6.14 etcd
	$(LONG) -v -run '^TestFairness$$' ./e2e/bench

.PHONY: bench-import
bench-import: build cluster-command ## Measure how long the plugin takes to import 10,000 clusters
	@bin/cluster binaries etcd v3.6.14 etcd
	$(LONG) -v -run '^TestImport$$' ./e2e/bench

.PHONY: bench-cluster
bench-cluster: cluster-command
	@hack/bench.sh

##@ Keep in order

.PHONY: verify
verify: ## Check everything that a build doesn't
	@$(MAKE) --no-print-directory -j2 --output-sync=target verify-lint verify-codegen verify-gofmt verify-mod verify-releases verify-schemas verify-bundle verify-chart verify-ledger

.PHONY: verify-gofmt
verify-gofmt:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not formatted, run make update-gofmt: $$unformatted"; exit 1; }

.PHONY: verify-mod
verify-mod:
	for module in $(MODULES) hack/helm; do $(GO) mod -C $$module tidy -diff || exit 1; done
	$(GO) mod verify # what is shipped is made of what go.sum says, not of a cache that someone has changed

.PHONY: verify-codegen
verify-codegen:
	@hack/verify-codegen.sh

.PHONY: verify-lint
verify-lint: # with what "go vet" looks for
	for module in $(MODULES) hack/olm; do (cd $$module && $(LINT) run --allow-parallel-runners ./...) || exit 1; done

.PHONY: verify-releases
verify-releases:
	hack/run verify-releases

.PHONY: verify-schemas
verify-schemas: # that clients and stored objects of the last release can live with what the APIs are now
	@hack/run schemas verify

.PHONY: verify-bundle
verify-bundle: # that it is as "make bundle" makes it, and as OperatorHub wants it
	$(GO) mod -C hack/olm tidy -diff
	$(TEST) -C hack/olm -timeout 25m ./...
	@scratch=$$(mktemp -d) && cp -r bundle $$scratch/ && $(GO) build -C hack/olm -o $$scratch/program ./bundle && \
	  $$scratch/program -out $$scratch/bundle && diff -r bundle $$scratch/bundle && rm -r $$scratch || { echo "bundle/ is not up to date: run make bundle"; exit 1; }

.PHONY: verify-chart
verify-chart: # that it is as "make chart" makes it
	@hack/run chart verify

# Not a part of verify: Helm takes minutes to build.
.PHONY: verify-helm
verify-helm: ## Try the chart with Helm: lint, each value, mistakes, notes, package, push and pull; and that it installs what the manifests do
	cd hack/helm && $(LINT) run --allow-parallel-runners ./...
	$(TEST) -C hack/helm -count=1 -timeout 25m ./... # Go does not know which files Helm reads

.PHONY: verify-ledger
verify-ledger: # says what has not been tried for long, and fails for nothing else than a broken file
	@hack/run ledger old 100

# Not a part of verify: it needs npm. Unit tests compare the hash of the sources that the page records.
.PHONY: verify-ui
verify-ui: cli/ui/page/node_modules/.package-lock.json ## Check that the page of "kubectl registry ui" is what "make ui" makes, and test its script
	@scratch=$$(mktemp -d) && cd cli/ui/page && npm run --silent check && npm run --silent test && npm run --silent build -- $$scratch && \
	  for file in app.js app.css; do cmp $$file $$scratch/$$file || { echo "cli/ui/page/$$file is not up to date: run make ui"; exit 1; }; done && rm -r $$scratch

# Not a part of verify: it needs npm and a browser.
.PHONY: ui-browser
ui-browser: cli/ui/browser/node_modules/.package-lock.json ## Test the page of "kubectl registry ui" in Chromium, which it installs on Debian; needs Node.js
	@hack/ui-browser.sh test

.PHONY: ui-pictures
ui-pictures: cli/ui/browser/node_modules/.package-lock.json ## Take the pictures of that page for the docs, in docs/images
	@hack/ui-browser.sh pictures

# Not a part of verify: Prometheus takes minutes to build.
.PHONY: verify-alerts
verify-alerts: ## Try the alerts on recorded series with promtool, and check the dashboard's queries and the runbooks
	$(GO) test -C hack/promtool -count=1 ./...

.PHONY: update
update: update-codegen update-golden update-gofmt update-mod bundle chart ## Bring everything that is derived up to date

.PHONY: update-codegen
update-codegen: # needs protoc, which it installs on Debian and Ubuntu
	hack/update-codegen.sh
	@# What unit tests compare.
	UPDATE_DOCS=1 $(GO) test -count=1 -run '^(TestFlagsAreDocumented|TestSessions)$$' ./operator ./apiserver ./controller ./cli/kubectl-registry

# Not a part of update: what it takes is for good from a release on.
.PHONY: update-schemas
update-schemas: ## Make the present schemas of the APIs the ones that "make verify" compares with
	@hack/run schemas update

.PHONY: update-golden
update-golden: # what each release makes of each fixture; "make unit" compares it. Refused for a release that is released
	$(GO) test ./operator/render -run TestGolden -update

.PHONY: update-reliability
update-reliability: ## Take what e2e/reliability has measured in this checkout into its results.md
	$(GO) test -count=1 -run '^TestPage$$' ./e2e/reliability -update

.PHONY: update-gofmt
update-gofmt:
	gofmt -w .

.PHONY: update-mod
update-mod: # in this order: what a module stands on comes first
	for module in $(MODULES) hack/olm hack/helm; do $(GO) mod -C $$module tidy || exit 1; done

.PHONY: clean
clean: cluster-down ## Remove the cluster and all that was built here
	rm -rf bin dist .test
