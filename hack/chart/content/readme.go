package content

import (
	"encoding/json"
	"fmt"
	"strings"
)

// readme returns README.md, which Artifact Hub and "helm show readme" show.
func (all values) readme(o Options) ([]byte, error) {
	var rows strings.Builder
	for _, v := range all {
		preset, err := json.Marshal(v.preset)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.path, err)
		}
		fmt.Fprintf(&rows, "| `%s` | %s | `%s` |\n", v.path, strings.ReplaceAll(v.about, "|", `\|`), preset)
	}
	return fmt.Appendf(nil, readme, o.Version, o.Repository, chartVersion(o.Version), rows.String(), Name), nil
}

// readme is filled with the version, the repository, the chart's version and the rows of
// the table, and the name of the chart.
const readme = `<!-- Written by "make chart" from hack/chart. -->
# Cluster Registry Operator

Installs the operator, which brings up cluster registries and looks after them: the shared list of your Kubernetes clusters, as a Kubernetes API. The [documentation](https://github.com/clusterregistry/operator/blob/%[1]s/docs/README.md) says what that is for.

## Install
You need [cert-manager](https://cert-manager.io/docs/installation) and Helm 4.

` + "```" + `console
helm install %[5]s oci://%[2]s/charts/%[5]s --version %[3]s --namespace clusterregistry-system --create-namespace --wait
kubectl label namespace clusterregistry-system pod-security.kubernetes.io/enforce=restricted
` + "```" + `

One host cluster has one operator. Over one that kubectl has installed, add ` + "`--take-ownership --force-conflicts`" + `, and ` + "`--force-conflicts`" + ` to later upgrades and rollbacks: both own the fields that both have applied.

## Upgrade and roll back
` + "`helm upgrade`" + ` replaces the operator and the CustomResourceDefinitions; registries keep serving, and keep their release. ` + "`helm rollback`" + ` brings back the older definitions, too: fields that they do not have are dropped from registries. With ` + "`crds.install=false`" + `, from the first install on, the definitions are yours to upgrade.

## Uninstall
[Delete the registries first](https://github.com/clusterregistry/operator/blob/%[1]s/docs/how-to/uninstall.md) if you want to be rid of them: only the operator can take one apart. ` + "`helm uninstall`" + ` removes the operator, and keeps the definitions, the registries with their data, and the roles that they and their users need. Registries keep serving, and the next install takes them over. Delete ClusterRegistryBackups with ` + "`deletionPolicy: Delete`" + ` before as well: without the operator, their finalizer blocks the removal of their definition. Where ` + "`kubectl get creg,cregb --all-namespaces`" + ` finds neither, this removes the rest; it deletes every registry that there still is:

` + "```" + `console
kubectl delete clusterroles,customresourcedefinitions --selector=app.kubernetes.io/name=clusterregistry-operator
` + "```" + `

## Values
| Value | What it is | Default |
|---|---|---|
%[4]s`
