#!/usr/bin/env bash
# Runs the tests of "make test" (core), these and "make verify" (ci) or "make test-full"
# (full), and prints how long each part took. The e2e tests have a cluster of their own, which is taken
# down again, whatever happens: one behind whose API a registry stands already,
# as that of "make demo", has no room for theirs.
#
# "full" takes many hours, so it can be interrupted and run again: parts that have
# passed at the same commit are not repeated. Their logs are in .test/passed/COMMIT,
# which can be removed to repeat them.
set -uo pipefail
cd "$(dirname "$0")/.."

size=${1:?core, ci or full}
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
# No part hangs.
[ "$size" = full ] || export PARTS_TIMEOUT=${PARTS_TIMEOUT:-60m}
. hack/parts.sh

finish() {
  trap '' INT TERM HUP # once is enough
  stop_lanes
  part cluster-down make --no-print-directory cluster-down
  report "make test ($size)" || exit 1
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# core runs two lanes at once. Tests on the cluster measure what clients and the host notice,
# so they get the processors whenever they want them; what needs no cluster gets the rest.
# Both find in bin/ what both need, and build nothing again that the other one runs.
core() {
  part ready make --no-print-directory integration-ready || {
    skipped unit integration e2e
    return
  }
  lane low without_cluster
  lane high on_cluster
  lanes
}

without_cluster() {
  # The linter's results are cached by path as well.
  [ "$size" = core ] || part verify hack/run fixed make --no-print-directory verify
  part unit hack/run fixed make --no-print-directory unit
  part integration make --no-print-directory integration-run
}

on_cluster() {
  local name packages
  packages=$(make --no-print-directory e2e-packages)
  if ! { part cluster make --no-print-directory cluster && part install make --no-print-directory e2e-ready; }; then
    for name in $packages; do skipped "e2e-$name"; done
    return 1
  fi
  for name in $packages; do
    part "e2e-$name" make --no-print-directory e2e-run PACKAGES="$name" || bin/cluster --name=$NAME logs ".test/cluster-logs-$name"
  done
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

part cluster-down-before make --no-print-directory cluster-down # what an interrupted run has left
if [ "$size" != full ]; then
  core
else
  once unit make --no-print-directory unit
  once alerts make --no-print-directory verify-alerts
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
