#!/usr/bin/env bash
# Generates what is derived from the API types: of the registry deep copies,
# conversions, protobuf, OpenAPI and client/; of the operator deep copies, the
# CustomResourceDefinition and its reference in docs/. The generators are pinned in
# hack/codegen, those of client/ apart; protobuf needs protoc besides (Debian: protobuf-compiler).
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v protoc >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends protobuf-compiler >/dev/null
  else
    echo "protoc is missing; install the package protobuf-compiler" >&2
    exit 1
  fi
fi

module=$(go list -m)
hub=apis/clusterregistry
versions=(v1alpha1 v1beta1)
bin=$PWD/bin/codegen
header=$(mktemp)
trap 'rm -f "$header"' EXIT

for generators in hack/codegen hack/codegen/client; do
  (cd "$generators" && GOBIN=$bin go install -mod=readonly tool)
done
export PATH=$bin:$PATH

packages=("${versions[@]/#/$module/$hub/}")
deepcopy-gen --go-header-file "$header" --output-file zz_generated.deepcopy.go "$module/$hub" "${packages[@]}"
conversion-gen --go-header-file "$header" --output-file zz_generated.conversion.go "${packages[@]}"

# go-to-protobuf and the client generators work on folders, and protobuf
# resolves imports in the module cache through a GOPATH-like tree of links.
protos=$(mktemp -d)
trap 'rm -rf "$header" "$protos"' EXIT
mkdir -p "$protos/k8s.io" "$protos/github.com/gogo" "$protos/$(dirname "$module")"
gogo=$(cd hack/codegen && go mod download -json github.com/gogo/protobuf | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
ln -s "$gogo" "$protos/github.com/gogo/protobuf"
ln -s "$(go list -m -f '{{.Dir}}' k8s.io/apimachinery)" "$protos/k8s.io/apimachinery"
ln -s "$PWD" "$protos/$module"
go-to-protobuf --go-header-file "$header" --output-dir "$protos" --proto-import "$protos" --proto-import "$gogo/protobuf" \
  --apimachinery-packages="-k8s.io/apimachinery/pkg/runtime/schema,-k8s.io/apimachinery/pkg/runtime,-k8s.io/apimachinery/pkg/api/resource,-k8s.io/apimachinery/pkg/apis/meta/v1" \
  --packages "$(IFS=,; echo "${packages[*]}")"

rm -rf client/*/ # not its go.mod, nor the tests beside it
groups=("${versions[@]/#/${hub#apis/}/}")
applyconfiguration-gen --go-header-file "$header" --output-dir client/applyconfiguration --output-pkg "$module/client/applyconfiguration" "${packages[@]}"
client-gen --go-header-file "$header" --clientset-name versioned --input-base "$module/apis" --input "$(IFS=,; echo "${groups[*]}")" \
  --apply-configuration-package "$module/client/applyconfiguration" --output-dir client/clientset --output-pkg "$module/client/clientset"
lister-gen --go-header-file "$header" --output-dir client/listers --output-pkg "$module/client/listers" "${packages[@]}"
informer-gen --go-header-file "$header" --single-directory --versioned-clientset-package "$module/client/clientset/versioned" \
  --listers-package "$module/client/listers" --output-dir client/informers --output-pkg "$module/client/informers" "${packages[@]}"

# The kinds of Kubernetes that the server speaks of or serves; their packages
# are read, never written.
foreign=(k8s.io/apimachinery/pkg/{api/resource,apis/meta/v1,runtime,version} k8s.io/api/{rbac,authorization,authentication}/v1)
openapi-gen --go-header-file "$header" --output-dir apiserver/openapi --output-pkg "$module/apiserver/openapi" --output-file zz_generated.openapi.go --report-filename /dev/null \
  --output-model-name-file zz_generated.model_name.go --readonly-pkg "$(IFS=,; echo "${foreign[*]}")" "${packages[@]}" "${foreign[@]}"

operator=apis/operator/v1alpha1
hack/run versions type
deepcopy-gen --go-header-file "$header" --output-file zz_generated.deepcopy.go "$module/$operator"
controller-gen crd paths="./$operator" output:crd:dir=manifests/operator/crd
hack/run versions crd
hack/run versions docs
hack/run reference
