#!/usr/bin/env bash
# Runs e2e/skew on a cluster of every supported version of Kubernetes, and prints
# the table that docs/reference/compatibility.md shows.
set -uo pipefail
cd "$(dirname "$0")/.."
. hack/parts.sh
export NAME=skew

finish() {
  part cluster-down make --no-print-directory cluster-down
  echo "| Host | Registry | API | kubectl | Create, read, change, watch, delete |"
  echo "|---|---|---|---|---|"
  grep -ho 'SKEW |.*' .test/skew-v*.log | sed 's/^SKEW //'
  report "make e2e-skew" || exit 1
}
trap finish EXIT
trap 'exit 130' INT TERM

rm -f .test/skew-v*.log
part cluster-command make --no-print-directory cluster-command || exit
for version in $(bin/cluster versions | sort --version-sort); do
  part "cluster-down-before-$version" make --no-print-directory cluster-down
  part "cluster-$version" make --no-print-directory cluster KUBERNETES_VERSION="$version" || continue
  part "skew-$version" make --no-print-directory skew
done
