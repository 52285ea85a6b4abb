#!/usr/bin/env bash
# Backs up a registry of one cluster and restores it in another one, when the first is gone: two
# local clusters have the same ranges of addresses, and no route to each other. A copy of the
# store is all that is handed over.
set -uo pipefail
cd "$(dirname "$0")/.."
. hack/parts.sh
export NAME=second
E2E_HANDOVER=$(mktemp -d)
export E2E_HANDOVER

finish() {
  part cluster-down make --no-print-directory cluster-down
  rm -r "$E2E_HANDOVER"
  report "make e2e-second" || exit 1
}
trap finish EXIT
trap 'exit 130' INT TERM

# on runs a test on a cluster that is made for it.
on() {
  part "cluster-down-before-$1" make --no-print-directory cluster-down &&
    part "cluster-$1" make --no-print-directory cluster &&
    part "install-$1" make --no-print-directory e2e-ready PACKAGES=backup || return
  part "$2" make --no-print-directory second RUN="$2" || {
    bin/cluster --name=$NAME logs ".test/cluster-logs-$2"
    return 1
  }
}

on first TestSecondClusterSave && on second TestSecondClusterRestore
