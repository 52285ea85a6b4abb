#!/usr/bin/env bash
# Runs e2e/olm on a cluster of its own: the Operator Lifecycle Manager is built
# from its module, and runs in it.
set -uo pipefail
cd "$(dirname "$0")/.."
. hack/parts.sh
export NAME=olm

finish() {
  part cluster-down make --no-print-directory cluster-down
  report "make e2e-olm" || exit 1
}
trap finish EXIT
trap 'exit 130' INT TERM

part bundle-v1 go -C hack/olm/v1 test -count=1 .
part cluster-olm make --no-print-directory cluster || exit
part load-olm make --no-print-directory load RELEASES=e2e/olm || exit
part platform make --no-print-directory olm-platform || exit
part e2e-olm make --no-print-directory olm || bin/cluster --name=$NAME logs .test/cluster-logs-olm
