#!/usr/bin/env bash
# Runs the tests of "make test" (core) or "make test-full" (full), and prints
# how long each part took. The e2e tests have a cluster of their own, which is taken
# down again, whatever happens: one behind whose API a registry stands already,
# as that of "make demo", has no room for theirs.
#
# "full" takes many hours, so it can be interrupted and run again: parts that have
# passed at the same commit are not repeated. Their logs are in .test/passed/COMMIT,
# which can be removed to repeat them.
set -uo pipefail
cd "$(dirname "$0")/.."

size=${1:?core or full}
export NAME=test
if [ "$size" = full ]; then
  export E2E_ALL=1 E2E_FULL=1
  if [ -z "$(git status --porcelain)" ]; then
    PARTS_KEEP=$PWD/.test/passed/$(git rev-parse HEAD)
    export PARTS_KEEP E2E_KEEP=$PARTS_KEEP # the cells of e2e/reliability are kept one by one
  else
    echo "The work tree differs from its commit: every part is run, and none is kept as passed."
  fi
fi
. hack/parts.sh

finish() {
  part cluster-down make --no-print-directory cluster-down
  report "make test ($size)" || exit 1
}
trap finish EXIT
trap 'exit 130' INT TERM

# core runs the integration tests and the e2e tests of "make test". The guides, which e2e/docs
# types, mostly wait for a registry, as integration tests do for their processes, so these
# share the processors, of which E2E_SHARED tells them. Other e2e tests measure what clients
# and the host notice.
core() {
  local packages
  packages=$(make --no-print-directory e2e-packages)
  part cluster make --no-print-directory cluster || return
  if part ready make --no-print-directory integration-ready e2e-ready; then
    part integration-and-guides env E2E_SHARED=1 make --no-print-directory -j2 --output-sync=target integration-run e2e-run PACKAGES=docs
    part e2e make --no-print-directory e2e-run PACKAGES="${packages#docs }"
  fi
  [ ${#parts_failed[@]} -eq 0 ] || bin/cluster --name=$NAME logs .test/cluster-logs
}

# full runs all e2e tests on a version of Kubernetes, package by package. There is a
# cluster only when some have not passed yet.
full() {
  local version=$1 name left=()
  for name in $(make --no-print-directory e2e-packages); do
    if passed "e2e-$version-$name"; then
      once "e2e-$version-$name"
    else
      left+=("e2e-$version-$name")
    fi
  done
  [ ${#left[@]} -gt 0 ] || return 0
  if ! {
    part "cluster-down-before-$version" make --no-print-directory cluster-down &&
      part "cluster-$version" make --no-print-directory cluster KUBERNETES_VERSION="$version" &&
      part "install-$version" make --no-print-directory e2e-ready
  }; then
    skipped "${left[@]}"
    return
  fi
  for name in "${left[@]}"; do
    once "$name" make --no-print-directory e2e-run PACKAGES="${name#e2e-"$version"-}" ||
      bin/cluster --name=$NAME logs ".test/cluster-logs-$name"
  done
}

# cells runs the cells of e2e/reliability, on five nodes: an etcd with five members needs them.
cells() {
  if ! passed cells && ! {
    part cluster-down-before-cells make --no-print-directory cluster-down &&
      part cluster-cells make --no-print-directory cluster NODES=5 &&
      part install-cells make --no-print-directory e2e-ready PACKAGES=reliability
  }; then
    skipped cells
    return
  fi
  once cells make --no-print-directory e2e-cells || bin/cluster --name=$NAME logs .test/cluster-logs-cells
}

make --no-print-directory cluster-down # what an interrupted run has left
once unit make --no-print-directory unit
[ "$size" = full ] && once alerts make --no-print-directory verify-alerts
if [ "$size" = core ]; then
  core
else
  once integration make --no-print-directory integration
  for version in $(bin/cluster versions); do # the first is the default
    full "$version"
    # What repetition and the matrix of faults show does not depend on the host's version.
    unset E2E_FULL
  done
  cells
  once olm make --no-print-directory e2e-olm
  once second make --no-print-directory e2e-second
  part skew make --no-print-directory e2e-skew
fi
