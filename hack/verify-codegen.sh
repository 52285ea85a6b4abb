#!/usr/bin/env bash
# Fails when generated code differs from what the generators make of the types.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir bin -p
tar --create --exclude=./bin --exclude=./.git --exclude=./.cluster --exclude=./.test . | tar --extract --directory "$copy"
ln -s "$PWD/bin" "$copy/bin"
"$copy/hack/update-codegen.sh"
for dir in apis client apiserver/openapi manifests/operator/crd docs; do
  diff -ru "$dir" "$copy/$dir" || { echo "$dir is not what the types say; run \"make update-codegen\""; exit 1; }
done
