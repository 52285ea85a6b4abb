#!/usr/bin/env bash
# Fails when generated code differs from what the generators make of the types.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir bin -p
# Just the sources: other parts of a run write beside them meanwhile. A file that was deleted
# and not committed yet is a warning.
git ls-files -z --cached --others --exclude-standard | tar --create --null --ignore-failed-read --files-from=- | tar --extract --directory "$copy"
ln -s "$PWD/bin" "$copy/bin"
"$copy/hack/update-codegen.sh"
for dir in apis client apiserver/openapi manifests/operator/crd docs; do
  diff -ru "$dir" "$copy/$dir" || { echo "$dir is not what the types say; run \"make update-codegen\""; exit 1; }
done
