#!/usr/bin/env bash
# Fails when generated code differs from what the generators make of the types. What has
# passed is not generated again until something that it depends on changes.
set -euo pipefail
cd "$(dirname "$0")/.."

generated=(apis client apiserver/openapi manifests/operator/crd docs)
# Beside the types: the generators, what they run on, and what two of them read.
others=(go.mod go.sum hack operator/version manifests)
inputs() {
  {
    go version
    protoc --version 2>&1 || true # update-codegen.sh installs it
    git ls-files -z --cached --others --exclude-standard -- "${generated[@]}" "${others[@]}" | xargs -0 sha256sum 2>&1 || true # of a deleted file it says that
  } | sha256sum | cut -c1-24
}
before=$(inputs)
passed=${XDG_CACHE_HOME:-$HOME/.cache}/clusterregistry-operator/codegen/$before
[ ! -e "$passed" ] || exit 0

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir bin -p
# Just the sources: other parts of a run write beside them meanwhile. A file that was deleted
# and not committed yet is a warning.
git ls-files -z --cached --others --exclude-standard | tar --create --null --ignore-failed-read --files-from=- | tar --extract --directory "$copy"
ln -s "$PWD/bin" "$copy/bin"
"$copy/hack/update-codegen.sh"
for dir in "${generated[@]}"; do
  diff -ru "$dir" "$copy/$dir" || { echo "$dir is not what the types say; run \"make update-codegen\""; exit 1; }
done
[ "$(inputs)" = "$before" ] || exit 0 # someone has changed it meanwhile
mkdir -p "$(dirname "$passed")"
touch "$passed"
