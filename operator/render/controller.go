package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// controllerName is the name of the controller's objects in the manifests.
const controllerName = "<name>" + contract.ControllerSuffix

// hostCAKey is the key, in the controller's ConfigMap, of the host cluster's CA.
const hostCAKey = "host-ca.crt"

// functions returns the functions of the controller that the registry asks for. With none
// there is no controller.
func functions(in Input) []string {
	if ControllerNotAllowed(in.Registry.Namespace, in.Environment) != "" {
		return nil
	}
	return Runnable(in.Registry)
}

// ControllerNotAllowed says why no registry in a namespace may have a controller, nothing
// when it may. The controller's role is one for all registries, so that it names no Lease:
// where others elect their leaders by Leases, the controller could take those over.
func ControllerNotAllowed(namespace string, environment Environment) string {
	switch namespace {
	case metav1.NamespaceSystem:
		return "in namespace " + namespace + ", Kubernetes itself elects leaders by Leases"
	case environment.Namespace:
		return "in namespace " + namespace + ", the operator elects its leader by a Lease"
	}
	return ""
}

// controllerGroups are the groups of an independent registry that are permitted what a
// function does: roles of the registry are bound to them.
var controllerGroups = map[string]string{
	contract.HealthFunction:            contract.HealthGroup,
	contract.RegisterHostFunction:      contract.RegisterHostGroup,
	contract.ClusterAPIFunction:        contract.ClusterAPIGroup,
	contract.ExportsFunction:           contract.ExportsGroup,
	contract.ClusterSelectionsFunction: contract.ClusterSelectionsGroup,
}

// feedKey is the key, in the controller's ConfigMap, of what programs are told of clusters.
const feedKey = "feed.json"

// feedText returns what the spec has programs told as the controller reads it, empty where none is
// answered.
func feedText(spec *operatorv1alpha1.Feed) string {
	if spec == nil {
		return ""
	}
	return jsonText(spec)
}

// feedVisibility returns which clusters the feed of a registry shows: as long as the registry hides
// any from anyone, the feed does.
func feedVisibility(registry *operatorv1alpha1.ClusterRegistry) operatorv1alpha1.Visibility {
	if hides(registry) {
		return operatorv1alpha1.VisibilityClusterSets
	}
	return operatorv1alpha1.VisibilityAll
}

// controllerPatches returns what the spec changes in the controller's components.
func controllerPatches(in Input) map[target][]operation {
	on := functions(in)
	if len(on) == 0 {
		return nil
	}
	spec := Asked(in.Registry)
	out := map[target][]operation{}
	deployment, groups := []operation{}, []operation{}
	for _, function := range on {
		for _, argument := range controllerArguments(*spec, function, in.Registry.Name) {
			deployment = append(deployment, add(pod+"/containers/0/args/-", argument))
		}
		groups = append(groups, add("/spec/subject/organizations/-", controllerGroups[function]))
	}
	files := controllerFiles(spec)
	for _, key := range slices.Sorted(maps.Keys(files)) {
		at := target{kind: "ConfigMap", name: controllerName}
		out[at] = append(out[at], add("/data/"+key, files[key]))
	}
	out[target{kind: "Deployment", name: controllerName}] = deployment
	certificate := target{kind: "Certificate", name: controllerName}
	if in.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		out[certificate] = groups
	} else if spec.Feed != nil {
		out[certificate] = serving(in.Registry)
		out[target{kind: "Deployment", name: controllerName}] = append(deployment, add(pod+"/containers/0/args/-", "--feed-visibility="+string(feedVisibility(in.Registry))))
	}
	return out
}

// controllerFiles returns what the controller reads of its ConfigMap at start, by key.
func controllerFiles(spec *operatorv1alpha1.Controllers) map[string]string {
	out := map[string]string{}
	if spec == nil {
		return out
	}
	for key, content := range map[string]string{hostCAKey: hostCA(spec), grantsKey: grantsText(spec.ClusterAPI), exportsKey: exportsText(spec.Exports), feedKey: feedText(spec.Feed)} {
		if content != "" {
			out[key] = content
		}
	}
	return out
}

// controllerArguments returns the flags of a function of the controller of a registry.
func controllerArguments(spec operatorv1alpha1.Controllers, function, registry string) []string {
	var out []string
	flag := func(name, value string) {
		if value != "" {
			out = append(out, "--"+name+"="+value)
		}
	}
	switch function {
	case contract.HealthFunction:
		out = append(out, "--health")
		flag("health-period", strconv.Itoa(int(spec.Health.PeriodSeconds))+"s")
		flag("health-client-address", spec.Health.ClientAddress)
		flag("health-allowed-cidrs", joined(spec.Health.AllowedCIDRs))
		flag("host-cidrs", joined(spec.Health.HostCIDRs))
		flag("health-allowed-proxies", joined(spec.Health.AllowedProxies))
	case contract.RegisterHostFunction:
		flag("register-host", spec.RegisterHost.Name)
		flag("register-host-url", spec.RegisterHost.URL)
		if hostCA(&spec) != "" {
			flag("register-host-ca-file", "/config/"+hostCAKey)
		}
	case contract.ClusterAPIFunction:
		out = clusterAPIArguments(*spec.ClusterAPI, registry)
	case contract.ExportsFunction:
		out = []string{"--registry-name=" + registry, "--exports-file=/config/" + exportsKey}
	case contract.ClusterSelectionsFunction:
		out = clusterSelectionsArguments(spec.ClusterSelections, registry)
	case contract.FeedFunction:
		out = []string{"--registry-name=" + registry, "--feed-file=/config/" + feedKey}
	}
	return out
}

// joined returns values as the flags for lists take them. The API refuses those with a
// comma or a quotation mark.
func joined[T ~string](values []T) string {
	var texts []string
	for _, value := range values {
		texts = append(texts, string(value))
	}
	return strings.Join(texts, ",")
}

// hostCA returns the CA certificates of the host cluster that the spec has.
func hostCA(spec *operatorv1alpha1.Controllers) string {
	if spec == nil || spec.RegisterHost == nil {
		return ""
	}
	return string(spec.RegisterHost.CABundle)
}
