package content

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// value is something that people set.
type value struct {
	// path has a dot between the names of its fields.
	path string
	// about is what values.yaml, the schema and the README say of it.
	about string
	// preset is its default.
	preset any
	// schema is what may be set, in JSON Schema.
	schema map[string]any
}

// values are all of a chart's, in the order in which they are listed.
type values []value

type object = map[string]any

// Schemas of several values.
var (
	anyObject = object{"type": "object"}
	yesOrNo   = object{"type": "boolean"}
	text      = object{"type": "string"}
	// A name of a namespace, as the API server wants it.
	namespaceName = object{"type": "string", "pattern": `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`}
	stringMap     = object{"type": "object", "additionalProperties": text}
)

func listOf(item object) object { return object{"type": "array", "items": item} }

func oneOf(choices ...any) object { return object{"enum": choices} }

// newValues returns the values of a chart. Those that the Deployment has are the presets.
func newValues(o Options, deployment *unstructured.Unstructured) (values, error) {
	var errs []error
	of := func(path ...string) any {
		v, found, err := unstructured.NestedFieldCopy(deployment.Object, path...)
		if err != nil || !found {
			errs = append(errs, fmt.Errorf("the Deployment %s has no %s, which is the default of a value: %w", deployment.GetName(), strings.Join(path, "."), err))
		}
		return v
	}
	pod := func(field string) any { return of("spec", "template", "spec", field) }
	containers, _ := pod("containers").([]any)
	if len(containers) != 1 {
		return nil, fmt.Errorf("the Deployment %s has %d containers, not one", deployment.GetName(), len(containers))
	}
	container := containers[0].(map[string]any)
	everywhere, err := variable(container, "AGGREGATED_NAMESPACES")
	errs = append(errs, err)
	var all values
	all = append(all, images(o)...)
	all = append(all, values{
		{"registries.imageRepository", "What precedes the names of the images of registries.", o.Repository, object{"type": "string", "minLength": 1}},
		{"registries.imageDigests", "Where pods of registries refer to images by their published digests: Published, Always or Never. Empty for Published, the operator's default.", "", oneOf("", "Published", "Always", "Never")},
		{aggregated, "Namespaces whose registries may be a part of the host cluster's API; [\"*\"] for all, which is right as long as administrators of the cluster alone may create ClusterRegistries. Empty for none; without watchNamespaces, nothing is installed in kube-system then.", strings.Split(everywhere, ","),
			listOf(object{"anyOf": []any{oneOf("*"), namespaceName}})},
		{narrowing, "Namespaces whose registries the operator looks after, which exist already; it gets its rights in these alone. Empty for all namespaces.", []any{}, object{"type": "array", "items": namespaceName, "uniqueItems": true}},
		{"replicas", "Pods of the operator. One of them works, and another one takes over.", of("spec", "replicas"), object{"type": "integer", "minimum": 0}},
		{"resources", "What the operator's container requests, and its limits.", container["resources"], anyObject},
		{"nodeSelector", "Labels of the nodes that the pods may run on.", object{}, stringMap},
		{"tolerations", "Taints of nodes that the pods tolerate.", []any{}, listOf(anyObject)},
		{"affinity", "Affinity of the pods. What you set is merged with the default, which has what the image is built for.", pod("affinity"), anyObject},
		{"topologySpreadConstraints", "How the pods are spread.", pod("topologySpreadConstraints"), listOf(anyObject)},
		{"priorityClassName", "Priority class of the pods. Registries serve without the operator, and are repaired by it.", "", text},
		{"podLabels", "Labels of the pods, besides those that begin with app.kubernetes.io/.", object{}, stringMap},
		{"podAnnotations", "Annotations of the pods.", object{}, stringMap},
		{"podDisruptionBudget.enabled", "Let drains of nodes evict one pod at a time.", true, yesOrNo},
		{"networkPolicy.enabled", "Admit connections to the ports for metrics and probes only.", true, yesOrNo},
	}...)
	all = append(all, monitors()...)
	all = append(all, values{
		{"extraArgs", "Arguments of the operator besides those that values set.", []any{}, listOf(object{"type": "string", "pattern": "^--"})},
		{"extraEnv", "Variables of the operator's container, such as HTTPS_PROXY and NO_PROXY.", []any{}, listOf(object{"type": "object", "required": []any{"name"}})},
		{"crds.install", "Install and upgrade the CustomResourceDefinitions with the chart. They stay when it is uninstalled, with all registries.", true, yesOrNo},
	}...)
	return all, errors.Join(errs...)
}

// images are the values of the operator's image.
func images(o Options) values {
	return values{
		{"image.repository", "The operator's image, without tag and digest.", o.Repository + "/" + operatorImage, object{"type": "string", "minLength": 1}},
		{"image.tag", "Tag of the image; the chart's appVersion if it is empty. With another tag, set image.digest as well.", "", text},
		{"image.digest", "Digest of the image, which goes before its tag; empty to pull by tag.", o.Digest, object{"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}},
		{"image.pullPolicy", "When nodes pull the image; empty for what Kubernetes chooses.", "", oneOf("", "Always", "IfNotPresent", "Never")},
		{"imagePullSecrets", "Secrets of the release's namespace to pull the operator's image with, as [{name: ...}]. Those of a registry are in its spec.images.pullSecrets.", []any{},
			listOf(object{"type": "object", "required": []any{"name"}, "properties": object{"name": object{"type": "string", "minLength": 1}}, "additionalProperties": false})},
	}
}

// monitors are the values about who watches the operator.
func monitors() values {
	return values{
		{"serviceMonitor.enabled", "Have Prometheus Operator scrape the operator. Bind the ClusterRole clusterregistry:metrics-reader to the ServiceAccount of Prometheus.", false, yesOrNo},
		{"serviceMonitor.labels", "Labels by which your Prometheus selects ServiceMonitors.", object{}, stringMap},
		{"prometheusRule.enabled", "Install the alerts.", false, yesOrNo},
		{"prometheusRule.labels", "Labels by which your Prometheus selects PrometheusRules.", object{}, stringMap},
		{"dashboard.enabled", "Install the Grafana dashboard as a ConfigMap with the label grafana_dashboard.", false, yesOrNo},
	}
}

// variable returns the value of a variable of a container.
func variable(container map[string]any, name string) (string, error) {
	list, _ := container["env"].([]any)
	for _, item := range list {
		if v, is := item.(map[string]any); is && v["name"] == name {
			text, _ := v["value"].(string)
			return text, nil
		}
	}
	return "", fmt.Errorf("the operator's container has no variable %s", name)
}
