package integration

import (
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// reported is a status as the operator will write it.
const reported = `{"status":{"version":"v0.1.0","endpoint":{"url":"https://192.0.2.1:30443"},"etcd":{"ready":"2/3"},"conditions":[
	{"type":"Available","status":"True","reason":"Available","message":"","lastTransitionTime":"2026-11-20T00:00:00Z"},
	{"type":"Ready","status":"False","reason":"MembersNotReady","message":"member fleet-etcd-2 does not answer","lastTransitionTime":"2026-11-20T00:00:00Z"}]}}`

// testShown types what users type, and looks at what they see.
func testShown(t *testing.T, kubectl *framework.Kubectl) {
	kubectl.Stdin(fleet).Run("apply", "-f", "-")
	kubectl.Run("patch", "creg", "fleet", "--subresource=status", "--type=merge", "-p", reported)
	for _, test := range []struct {
		args string
		want []string
	}{
		{"get creg", []string{"NAME MODE VERSION AVAILABLE READY ETCD OPERATION AGE", "fleet Independent v0.1.0 True False 2/3 "}},
		{"get clusterregistries -o wide", []string{"NAME MODE VERSION AVAILABLE READY ETCD OPERATION AGE ENDPOINT STATUS", " https://192.0.2.1:30443 member fleet-etcd-2 does not answer"}},
		{"explain creg", []string{"KIND: ClusterRegistry", "its registration with the API of the host cluster."}},
		{"explain creg.spec", []string{"deletionPolicy <string> enum: Retain, Snapshot, Delete", "mode <string> -required- enum: Aggregated, Independent",
			"version <string> -required- enum: v0.1.0", "version is the release of the registry that should run."}},
		{"explain creg.spec.etcd", []string{"either members that the operator runs", "replicas <integer>", "replicas is how many members etcd has: 1, 3 or 5.",
			"storage <Object>", "Default: 8Gi of the cluster's default StorageClass.", "external is an etcd that the operator does not manage"}},
		{"wait creg/fleet --for=jsonpath={.status.etcd.ready}=2/3 --timeout=5m", []string{"condition met"}},
	} {
		out := strings.Join(strings.Fields(kubectl.Run(strings.Fields(test.args)...)), " ")
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("kubectl %s: %q is missing in:\n%s", test.args, want, out)
			}
		}
	}
	// The status says what runs, and so what can't be reached.
	kubectl.Run("patch", "creg", "fleet", "--type=merge", "-p", `{"spec":{"version":"v0.2.0"}}`)
	kubectl.Run("patch", "creg", "fleet", "--type=merge", "-p", `{"spec":{"version":"v0.1.0"}}`)
	kubectl.Run("patch", "creg", "fleet", "--type=merge", "-p", `{"spec":{"version":"v0.2.0"}}`)
	kubectl.Run("patch", "creg", "fleet", "--subresource=status", "--type=merge", "-p", `{"status":{"version":"v0.2.0"}}`)
	_, err := kubectl.Try("patch", "creg", "fleet", "--type=merge", "-p", `{"spec":{"version":"v0.1.0"}}`)
	if want := ": v0.2.0 -> v0.1.0 is a downgrade, which is not possible: set spec.version back to v0.2.0"; err == nil || !strings.Contains(err.Error(), "spec.version: Invalid value") || !strings.Contains(err.Error(), want) {
		t.Errorf("a downgrade: %v", err)
	}
	_, err = kubectl.Stdin(strings.NewReplacer("replicas: 3", "replicas: 4", "v0.1.0", "v0.2.0").Replace(fleet)).Try("apply", "-f", "-")
	for _, want := range []string{
		`The ClusterRegistry "fleet" is invalid:`,
		": etcd has 1, 3 or 5 members: an even number survives no more failures than one less\n",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if _, err := kubectl.Stdin(strings.Replace(fleet, "etcd:", "etdc:", 1)).Try("apply", "-f", "-"); err == nil || !strings.Contains(err.Error(), `unknown field "spec.etdc"`) {
		t.Errorf("a misspelt field: %v", err)
	}
	kubectl.Run("delete", "creg", "fleet")
}
