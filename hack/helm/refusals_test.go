package helm

import (
	"strings"
	"testing"
)

// mistakes are values, in JSON, with what Helm says of them: which one is wrong, and what
// it may be.
var mistakes = []struct {
	set  []string
	says string
}{
	{[]string{`replica=2`}, "at '': additional properties 'replica' not allowed"},
	{[]string{`replicas="two"`}, "at '/replicas': got string, want integer"},
	{[]string{`replicas=-1`}, "at '/replicas': minimum: got -1, want 0"},
	{[]string{`image.digest="sha256:12"`}, "at '/image/digest': 'sha256:12' does not match pattern '^(sha256:[0-9a-f]{64})?$'"},
	{[]string{`image.pullPolicy="Sometimes"`}, "at '/image/pullPolicy': value must be one of '', 'Always', 'IfNotPresent', 'Never'"},
	{[]string{`image.repository=""`}, "at '/image/repository': minLength: got 0, want 1"},
	{[]string{`image.name="operator"`}, "at '/image': additional properties 'name' not allowed"},
	{[]string{`imagePullSecrets=["pull"]`}, "at '/imagePullSecrets/0': got string, want object"},
	{[]string{`imagePullSecrets=[{"secret":"pull"}]`}, "at '/imagePullSecrets/0': missing property 'name'"},
	{[]string{`registries.imageDigests="Sometimes"`}, "at '/registries/imageDigests': value must be one of '', 'Published', 'Always', 'Never'"},
	{[]string{`registries.aggregatedNamespaces=["Team A"]`}, "at '/registries/aggregatedNamespaces/0': 'Team A' does not match pattern"},
	{[]string{`registries.aggregatedNamespaces="team-a"`}, "at '/registries/aggregatedNamespaces': got string, want array"},
	{[]string{`watchNamespaces=["team-a","team-a"]`}, "at '/watchNamespaces': items at 0 and 1 are equal"},
	{[]string{`watchNamespaces=["team_a"]`}, "at '/watchNamespaces/0': 'team_a' does not match pattern"},
	{[]string{`podAnnotations={"a":1}`}, "at '/podAnnotations/a': got number, want string"},
	{[]string{`networkPolicy.enabled="yes"`}, "at '/networkPolicy/enabled': got string, want boolean"},
	{[]string{`extraArgs=["zap-log-level=debug"]`}, "at '/extraArgs/0': 'zap-log-level=debug' does not match pattern '^--'"},
	{[]string{`extraEnv=[{"value":"a"}]`}, "at '/extraEnv/0': missing property 'name'"},
	// What the schema can't know.
	{[]string{`watchNamespaces=["kube-system"]`}, `watchNamespaces has "kube-system", where the operator has rights of its own.`},
	{[]string{`watchNamespaces=["clusterregistry-system"]`}, `Registries need another namespace: create one, and name that.`},
	{[]string{`watchNamespaces=["team-a"]`, `registries.aggregatedNamespaces=["team-b"]`}, `registries.aggregatedNamespaces has "team-b", which the operator does not look after: add it to watchNamespaces, or remove it.`},
	{[]string{`podLabels={"app.kubernetes.io/name":"mine"}`}, `podLabels has "app.kubernetes.io/name", a label of the chart's own`},
	{[]string{`serviceMonitor.labels={"app.kubernetes.io/component":"mine"}`}, `serviceMonitor.labels has "app.kubernetes.io/component", a label of the chart's own`},
	{[]string{`prometheusRule.labels={"app.kubernetes.io/part-of":"mine"}`}, `prometheusRule.labels has "app.kubernetes.io/part-of", a label of the chart's own`},
}

// TestRefusals makes mistakes, after which nothing may be rendered.
func TestRefusals(t *testing.T) {
	for _, mistake := range mistakes {
		t.Run(strings.Join(mistake.set, ","), func(t *testing.T) {
			t.Parallel()
			args := []string{"template", "any", chart, "--namespace=" + namespace}
			for _, set := range mistake.set {
				args = append(args, "--set-json="+set)
			}
			out, err := try(t, args...)
			if err == nil || out != "" || !strings.Contains(err.Error(), mistake.says) {
				t.Errorf("got %v and %d bytes, want none and that %s", err, len(out), mistake.says)
			}
		})
	}
}
