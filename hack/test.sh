#!/usr/bin/env bash
# Runs the tests of "make test" (core) or these and "make verify" (ci), and prints how long
# each part took. The e2e tests have a cluster of their own, which is taken down again, whatever
# happens: one behind whose API a registry stands already, as that of "make demo", has no
# room for theirs.
set -uo pipefail
cd "$(dirname "$0")/.."

size=${1:?core or ci}
export NAME=test
export PARTS_TIMEOUT=${PARTS_TIMEOUT:-60m} # no part hangs
. hack/parts.sh

# Compilers and the processes of a cluster fault in much memory and end soon: with huge pages for
# all of them they take a quarter less of the processors. Debian has that by default, Ubuntu not.
huge_pages() {
  local setting=/sys/kernel/mm/transparent_hugepage/enabled
  [ ! -w $setting ] || echo "$1" >$setting
}
pages_before=$(sed 's/.*\[\(.*\)\].*/\1/' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null)

finish() {
  trap '' INT TERM HUP # once is enough
  stop_lanes
  part cluster-down make --no-print-directory cluster-down
  [ "$pages_before" = always ] || huge_pages "$pages_before" # which another run may have set
  report "make test ($size)" || exit 1
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# core runs two lanes at once. Tests on the cluster measure what clients and the host notice,
# so they get the processors whenever they want them; what needs no cluster gets the rest.
# Both find in bin/ what both need, and build nothing again that the other one runs. E2e tests
# take longer than all else, so nothing runs beside what they wait for: links and archives.
core() {
  part ready make --no-print-directory integration-ready || {
    skipped unit integration e2e
    return
  }
  rm -rf "$begun"
  packages=$(make --no-print-directory e2e-packages)
  part cluster make --no-print-directory cluster && part install make --no-print-directory e2e-ready || {
    for name in $packages; do skipped "e2e-$name"; done
    packages=
  }
  lane low without_cluster
  lane high on_cluster
  lanes
}

# Integration tests run in the lane that is free first: unit tests of a change that most of the
# product depends on take longer than e2e tests.
begun=$parts_log/integration-begun
integration() {
  ! mkdir "$begun" 2>/dev/null || PARTS_LANE=low part integration make --no-print-directory integration-run
}

without_cluster() {
  # The linter's results are cached by path as well.
  [ "$size" = core ] || part verify hack/run fixed make --no-print-directory verify
  part unit hack/run fixed make --no-print-directory unit
  integration
}

on_cluster() {
  local name
  for name in $packages; do
    part "e2e-$name" make --no-print-directory e2e-run PACKAGES="$name" || bin/cluster --name=$NAME logs ".test/cluster-logs-$name"
  done
  integration
}

huge_pages always
part cluster-down-before make --no-print-directory cluster-down # what an interrupted run has left
core
