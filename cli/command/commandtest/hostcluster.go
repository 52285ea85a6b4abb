package commandtest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"
)

// Operator are, in YAML, the objects of a host cluster in which the operator, cert-manager
// and the API of a registry work, without the registry itself.
const Operator = `apiVersion: apps/v1
kind: Deployment
metadata: {name: clusterregistry-operator, namespace: clusterregistry-system, labels: {app.kubernetes.io/name: clusterregistry-operator}}
status: {availableReplicas: 2}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: clusterregistry-operator, namespace: clusterregistry-system}
spec: {holderIdentity: a, leaseDurationSeconds: 15, renewTime: "2026-11-23T11:59:55.000000Z"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cert-manager, namespace: cert-manager, labels: {app.kubernetes.io/name: cert-manager}}
status: {availableReplicas: 1}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.clusterregistry.k8s.io}
spec: {group: clusterregistry.k8s.io}
status: {conditions: [{type: Available, status: "True"}]}
`

// resources are what a host cluster can list, by group and version.
var resources = map[schema.GroupVersion]string{
	{Version: "v1"}:                                             "pods events persistentvolumeclaims services nodes",
	{Group: "apps", Version: "v1"}:                              "deployments statefulsets",
	{Group: "batch", Version: "v1"}:                             "jobs",
	{Group: "policy", Version: "v1"}:                            "poddisruptionbudgets",
	{Group: "storage.k8s.io", Version: "v1"}:                    "storageclasses",
	{Group: "networking.k8s.io", Version: "v1"}:                 "networkpolicies",
	{Group: "coordination.k8s.io", Version: "v1"}:               "leases",
	{Group: "cert-manager.io", Version: "v1"}:                   "certificates certificaterequests issuers",
	{Group: "apiregistration.k8s.io", Version: "v1"}:            "apiservices",
	{Group: "operator.clusterregistry.io", Version: "v1alpha1"}: "clusterregistries clusterregistrybackups",
}

// Objects parses YAML documents.
func Objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v: %s", err, document)
		}
		if object.Object != nil {
			out = append(out, object)
		}
	}
	return out
}

// HostCluster returns a host cluster with objects, for [Env.Objects].
func HostCluster(objects ...*unstructured.Unstructured) *dynamicfake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{}
	for group, names := range resources {
		for _, name := range strings.Fields(names) {
			kinds[group.WithResource(name)] = name + "List"
		}
	}
	var all []runtime.Object
	for _, object := range objects {
		all = append(all, object)
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, all...)
}
