#!/usr/bin/env bash
# Measures the local cluster: up (with what is built in the cache), a second up,
# idle memory, down. Prints what the cluster command itself measures.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'bin/cluster --name bench down >/dev/null' EXIT
bin/cluster --name bench up
echo "--- up, when it is up"
bin/cluster --name bench up | tail -n 2
echo "--- idle"
bin/cluster --name bench status
echo "--- down"
bin/cluster --name bench down
