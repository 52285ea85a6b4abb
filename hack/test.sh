#!/usr/bin/env bash
# Runs the tests of "make test" (core) or "make test-full" (full), and prints
# how long each part took. The stories have a cluster of their own, which is taken
# down again, whatever happens: one behind whose API a registry stands already,
# as that of "make demo", has no room for theirs.
set -uo pipefail
cd "$(dirname "$0")/.."
. hack/parts.sh

size=${1:?core or full}
export NAME=test

finish() {
  part cluster-down make --no-print-directory cluster-down
  report "make test ($size)" || exit 1
}
trap finish EXIT
trap 'exit 130' INT TERM

# stories runs the stories on a cluster of $KUBERNETES_VERSION.
stories() {
  part "cluster${KUBERNETES_VERSION:+-$KUBERNETES_VERSION}" make --no-print-directory cluster || return
  part "e2e${KUBERNETES_VERSION:+-$KUBERNETES_VERSION}" make --no-print-directory e2e ||
    bin/cluster --name=$NAME logs ".test/cluster-logs${KUBERNETES_VERSION:+-$KUBERNETES_VERSION}"
}

make --no-print-directory cluster-down # what an interrupted run has left
[ "$size" = full ] && export E2E_ALL=1 E2E_FULL=1
part unit make --no-print-directory unit
[ "$size" = full ] && part alerts make --no-print-directory verify-alerts
part integration make --no-print-directory integration
stories
if [ "$size" = full ]; then
  # What repetition and the matrix of faults show does not depend on the host's version.
  unset E2E_FULL
  for version in $(bin/cluster versions | tail -n +2); do # the first was the default
    part "cluster-down-before-$version" make --no-print-directory cluster-down
    KUBERNETES_VERSION=$version stories
  done
  part olm make --no-print-directory e2e-olm
  part skew make --no-print-directory e2e-skew
fi
