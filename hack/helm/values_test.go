package helm

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	deployment  = "Deployment clusterregistry-system/clusterregistry-operator"
	monitor     = "ServiceMonitor clusterregistry-system/clusterregistry-operator"
	alerts      = "PrometheusRule clusterregistry-system/clusterregistry"
	dashboards  = "ConfigMap clusterregistry-system/clusterregistry-dashboard"
	definitions = "CustomResourceDefinition /"
	digest      = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// effect is what a value, in JSON, does to what the chart renders.
type effect struct {
	value string
	// given are values without which it has no effect.
	given string
	// changes are the objects that are not as without it: other ones, or more, or fewer.
	changes []string
	// has is in these objects, and not without it; empty where they are gone.
	has string
}

// effects are those of each value of the chart.
var effects = map[string]effect{
	"image.repository":                {value: `"mirror.example/operator"`, changes: []string{deployment}, has: "image: mirror.example/operator:v"},
	"image.tag":                       {value: `"another"`, changes: []string{deployment}, has: "/clusterregistry-operator:another\n"},
	"image.digest":                    {value: `"` + digest + `"`, changes: []string{deployment}, has: "@" + digest + "\n"},
	"image.pullPolicy":                {value: `"Always"`, changes: []string{deployment}, has: "imagePullPolicy: Always\n"},
	"imagePullSecrets":                {value: `[{"name":"pull"}]`, changes: []string{deployment}, has: "      imagePullSecrets:\n      - name: pull\n"},
	"registries.imageRepository":      {value: `"mirror.example/registries"`, changes: []string{deployment}, has: "- name: IMAGE_REPOSITORY\n          value: mirror.example/registries\n"},
	"registries.imageDigests":         {value: `"Never"`, changes: []string{deployment}, has: "- name: IMAGE_DIGESTS\n          value: Never\n"},
	"registries.aggregatedNamespaces": {value: `["platform","fleet"]`, changes: []string{deployment}, has: "- name: AGGREGATED_NAMESPACES\n          value: platform,fleet\n"},
	"watchNamespaces": {value: `["team-a"]`, changes: []string{
		"ClusterRole /clusterregistry:operator", deployment, "Role clusterregistry-system/clusterregistry:operator",
		"Role team-a/clusterregistry:operator", "RoleBinding team-a/clusterregistry:operator",
	}, has: "- --watch-namespaces=team-a\n"},
	"replicas":                    {value: `3`, changes: []string{deployment}, has: "  replicas: 3\n"},
	"resources":                   {value: `{"limits":{"memory":"1Gi"}}`, changes: []string{deployment}, has: "memory: 1Gi\n"},
	"nodeSelector":                {value: `{"pool":"platform"}`, changes: []string{deployment}, has: "      nodeSelector:\n        pool: platform\n"},
	"tolerations":                 {value: `[{"key":"platform","operator":"Exists"}]`, changes: []string{deployment}, has: "      tolerations:\n      - key: platform\n        operator: Exists\n"},
	"affinity":                    {value: `{"podAffinity":{}}`, changes: []string{deployment}, has: "        podAffinity: {}\n"},
	"topologySpreadConstraints":   {value: `[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule"}]`, changes: []string{deployment}, has: "topologyKey: topology.kubernetes.io/zone\n"},
	"priorityClassName":           {value: `"system-cluster-critical"`, changes: []string{deployment}, has: "      priorityClassName: system-cluster-critical\n"},
	"podLabels":                   {value: `{"team":"platform"}`, changes: []string{deployment}, has: "      labels:\n        app.kubernetes.io/component: operator\n        app.kubernetes.io/name: clusterregistry-operator\n        app.kubernetes.io/part-of: clusterregistry\n        team: platform\n"},
	"podAnnotations":              {value: `{"example.com/scan":"true"}`, changes: []string{deployment}, has: "      annotations:\n        example.com/scan: \"true\"\n"},
	"podDisruptionBudget.enabled": {value: `false`, changes: []string{"PodDisruptionBudget clusterregistry-system/clusterregistry-operator"}},
	"networkPolicy.enabled":       {value: `false`, changes: []string{"NetworkPolicy clusterregistry-system/clusterregistry-operator"}},
	"serviceMonitor.enabled": {value: `true`, changes: []string{
		"ClusterRole /clusterregistry:metrics-reader", "ClusterRoleBinding /clusterregistry:metrics-reader",
		"Secret clusterregistry-system/clusterregistry-metrics-reader", "ServiceAccount clusterregistry-system/clusterregistry-metrics-reader", monitor,
	}, has: "port: metrics\n"},
	"serviceMonitor.labels":  {value: `{"release":"prometheus"}`, given: "serviceMonitor.enabled=true", changes: []string{monitor}, has: "    release: prometheus\n"},
	"prometheusRule.enabled": {value: `true`, changes: []string{alerts}, has: "- alert: "},
	"prometheusRule.labels":  {value: `{"release":"prometheus"}`, given: "prometheusRule.enabled=true", changes: []string{alerts}, has: "    release: prometheus\n"},
	"dashboard.enabled":      {value: `true`, changes: []string{dashboards}, has: "grafana_dashboard:"},
	"extraArgs":              {value: `["--zap-log-level=debug"]`, changes: []string{deployment}, has: "        - --zap-log-level=debug\n"},
	"extraEnv":               {value: `[{"name":"HTTPS_PROXY","value":"http://proxy.example"}]`, changes: []string{deployment}, has: "        - name: HTTPS_PROXY\n          value: http://proxy.example\n"},
	"crds.install": {value: `false`, changes: []string{
		definitions + "clusterregistries.operator.clusterregistry.io", definitions + "clusterregistrybackups.operator.clusterregistry.io", definitions + "clusterselections.operator.clusterregistry.io",
	}},
}

// TestEachValue sets each value that values.yaml has, and expects it to change what it is
// about, and nothing else.
func TestEachValue(t *testing.T) {
	if known, tried := leaves(t), slices.Sorted(maps.Keys(effects)); !slices.Equal(known, tried) {
		t.Errorf("values.yaml has %q, and this test tries %q", known, tried)
	}
	for name, effect := range effects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var given []string
			if effect.given != "" {
				given = []string{"--set=" + effect.given}
			}
			without := rendered(t, given...)
			with := rendered(t, append(given, "--set-json="+name+"="+effect.value)...)
			changes := differ(without, with)
			if !slices.Equal(changes, effect.changes) {
				t.Errorf("%s=%s changes %q, want %q", name, effect.value, changes, effect.changes)
			}
			if before := text(t, without, changes); effect.has != "" && strings.Contains(before, effect.has) {
				t.Errorf("without it, there is %q already", effect.has)
			}
			after := text(t, with, changes)
			if !strings.Contains(after, effect.has) || effect.has == "" && after != "" {
				t.Errorf("with %s=%s there is no %q in:\n%s", name, effect.value, effect.has, after)
			}
		})
	}
}

// text returns what objects of these identities are like, those that there are.
func text(t *testing.T, all objects, names []string) string {
	t.Helper()
	var out strings.Builder
	for _, name := range names {
		if all[name] == nil {
			continue
		}
		content, err := yaml.Marshal(all[name])
		if err != nil {
			t.Fatal(err)
		}
		out.Write(content)
	}
	return out.String()
}

// leaves returns the names of all values, by the schema, in order.
func leaves(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	type property struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var out []string
	var walk func(prefix string, content []byte)
	walk = func(prefix string, content []byte) {
		var p property
		if err := json.Unmarshal(content, &p); err != nil {
			t.Fatal(err)
		}
		if len(p.Properties) == 0 {
			out = append(out, strings.TrimSuffix(prefix, "."))
		}
		for name, inner := range p.Properties {
			if prefix+name != "global" { // Helm's
				walk(prefix+name+".", inner)
			}
		}
	}
	walk("", content)
	slices.Sort(out)
	return out
}

// TestClosedSystem installs nothing in kube-system, which some platforms close, where no registry
// may be a part of the host cluster's API. An operator of some namespaces looks there for what
// earlier ones have left.
func TestClosedSystem(t *testing.T) {
	const none = "--set-json=registries.aggregatedNamespaces=[]"
	for _, test := range []struct {
		given []string
		want  []string
	}{
		{nil, []string{"Role kube-system/clusterregistry:operator", "RoleBinding kube-system/clusterregistry:operator"}},
		{[]string{none}, nil},
		{[]string{none, "--set=watchNamespaces={team-a}"}, []string{"Role kube-system/clusterregistry:operator", "RoleBinding kube-system/clusterregistry:operator"}},
	} {
		var got []string
		for _, name := range slices.Sorted(maps.Keys(rendered(t, test.given...))) {
			if strings.Contains(name, " kube-system/") {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: in kube-system are %q, want %q", test.given, got, test.want)
		}
	}
}
