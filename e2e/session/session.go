// Package session is what a user of a registry types, command by command, for
// every test that has a registry to type at.
package session

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// kubectls are the newest kubectl and an old one that users still have.
var kubectls = []string{"v1.37.1", "v1.32.13"}

// east is a cluster as a user writes it.
const east = `
apiVersion: clusterregistry.k8s.io/v1alpha1
kind: Cluster
metadata:
  name: east
  labels: {region: eu}
spec:
  kubernetesApiEndpoints:
    serverEndpoints:
    - {clientCIDR: 10.0.0.0/8, serverAddress: 10.0.0.1}
    - {serverAddress: east.example}
  authInfo:
    providers:
    - name: people
      type: {name: oidc}
`

// eastBut returns east with each pair's first string replaced by its second.
func eastBut(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(east) }

// typed is a command that a user types, one after the other.
type typed struct {
	stdin string
	// args are split at spaces.
	args string
	// has are texts in what it prints; without them, it prints just is.
	has []string
	is  string
}

const (
	name   = "cluster.clusterregistry.k8s.io/east"
	ready  = `[{"type":"Ready","status":"True","reason":"Probed","message":"","lastTransitionTime":"2026-11-20T00:00:00Z"}]`
	server = "{.spec.kubernetesApiEndpoints.serverEndpoints[1].serverAddress}"

	// old asks for v1alpha1 where a newer version may be preferred: what is typed
	// here works with every release of the registry.
	old = "clusters.v1alpha1.clusterregistry.k8s.io"
)

var commands = []typed{
	{args: "api-resources --api-group=clusterregistry.k8s.io --no-headers", has: []string{"clusters", "crc", "clusterregistry.k8s.io/v1", "false", "Cluster"}},
	{stdin: east, args: "apply -f - --dry-run=server", is: name + " created (server dry run)\n"},
	{args: "get crc -o name"},
	{stdin: east, args: "apply -f -", is: name + " created\n"},
	{stdin: east, args: "apply -f -", is: name + " unchanged\n"},
	{stdin: east, args: "diff -f -"},
	{stdin: eastBut("name: east", "name: west", "region: eu", "region: us"), args: "create -f -", has: []string{"west created"}},

	{args: "get crc", has: []string{"NAME", "VERSION", "AGE", "east"}},
	{args: "get " + old, has: []string{"NAME", "SERVER", "VERSION", "READY", "AGE", "east", "10.0.0.1 (+1)", "<none>"}},
	{args: "get " + old + " -o wide", has: []string{"CIDRS", "AUTH", "CA EXPIRES", "10.0.0.0/8", "oidc"}},
	{args: "get crc -L region --sort-by=.metadata.name", has: []string{"REGION", "eu", "us"}},
	{args: "get " + old + " east -o yaml", has: []string{"kind: Cluster\n", "name: east\n", "region: eu\n", "    - clientCIDR: 10.0.0.0/8\n      serverAddress: 10.0.0.1\n"}},
	{args: "get " + old + " east -o jsonpath=" + server, is: "east.example"},
	{args: "describe " + old + " east", has: []string{"Labels:       region=eu", "Client CIDR:     10.0.0.0/8", "Server Address:  east.example"}},
	{args: "explain --api-version=clusterregistry.k8s.io/v1alpha1 crc", has: []string{"GROUP:      clusterregistry.k8s.io", "pointers to credentials, never credentials"}},
	{args: "explain --api-version=clusterregistry.k8s.io/v1alpha1 crc.spec.kubernetesApiEndpoints", has: []string{"FIELD: kubernetesApiEndpoints <KubernetesAPIEndpoints>",
		"authorities that sign its certificate", "caBundle\t<string>", "in PEM, base64 encoded", "serverEndpoints\t<[]ServerAddressByClientCIDR>", "At most 16"}},
	{args: "explain --api-version=clusterregistry.k8s.io/v1alpha1 crc.spec --recursive", has: []string{"  authInfo\t<AuthInfo>\n    providers\t<[]AuthProviderConfig>\n      config\t<map[string]string>\n",
		"  kubernetesApiEndpoints\t<KubernetesAPIEndpoints>\n    caBundle\t<string>\n    serverEndpoints\t<[]ServerAddressByClientCIDR>\n      clientCIDR\t<string>\n      serverAddress\t<string>\n"}},

	{args: "label crc east tier=gold", is: name + " labeled\n"},
	{args: "annotate crc east note=x", is: name + " annotated\n"},
	{args: "get crc -l tier=gold,region=eu -o name", is: name + "\n"},
	{args: "get crc -l tier=silver -o name"},
	{args: "label crc --all tier-", has: []string{"east unlabeled"}},
	{args: "get crc -l tier -o name"},
	{args: "get crc --field-selector=metadata.name=east -o name", is: name + "\n"},
	{args: "get crc --field-selector=metadata.name!=west -o name", is: name + "\n"},
	{args: `patch crc east --subresource=status --type=merge -p {"status":{"version":{"kubernetes":"v1.9.9"}}}`, is: name + " patched\n"},
	{args: "get crc --field-selector=status.version.kubernetes=v1.9.9 -o name", is: name + "\n"},
	{args: "get crc --field-selector=status.version.kubernetes=v1.9.8 -o name"},
	{args: "wait crc/east --for=jsonpath={.status.version.kubernetes}=v1.9.9 --timeout=5m", is: name + " condition met\n"},

	{args: `patch crc east -p {"metadata":{"labels":{"by":"strategic"}}}`, is: name + " patched\n"},
	{args: `patch crc east --type=merge -p {"metadata":{"labels":{"by":"merge"}}}`, is: name + " patched\n"},
	{args: "patch " + old + ` east --type=json -p [{"op":"test","path":"/metadata/labels/by","value":"merge"},{"op":"replace","path":"/spec/kubernetesApiEndpoints/serverEndpoints/1/serverAddress","value":"patched.example"}]`, is: name + " patched\n"},
	{args: "get " + old + " east -o jsonpath=" + server, is: "patched.example"},
	{stdin: eastBut("east.example", "replaced.example"), args: "replace -f -", is: name + " replaced\n"},
	{args: "get " + old + " east -o jsonpath=" + server, is: "replaced.example"},
	{args: "delete crc west --dry-run=server", has: []string{"deleted", "(server dry run)"}},
	{args: "delete crc west", has: []string{`"west" deleted`}},
	{args: "get crc -o name", is: name + "\n"},
}

// refusals are commands that must fail with the given texts.
var refusals = []typed{
	{stdin: eastBut("serverAddress: east", "serverAdress: east"), args: "create -f - --validate=strict",
		has: []string{`Cluster in version "v1alpha1" cannot be handled as a Cluster: strict decoding error: unknown field "spec.kubernetesApiEndpoints.serverEndpoints[1].serverAdress"`}},
	{stdin: eastBut("serverAddress: east", "serverAdress: east"), args: "apply -f -", has: []string{`unknown field "spec.kubernetesApiEndpoints.serverEndpoints[1].serverAdress"`}},
	{stdin: eastBut("kind: Cluster", "kind: Clutser"), args: "apply -f -", has: []string{`no matches for kind "Clutser"`}},
	{stdin: eastBut("east.example", `"http://east.example"`), args: "apply -f -", has: []string{`The Cluster "east" is invalid: spec.kubernetesApiEndpoints.serverEndpoints[1].serverAddress`, "must be an https URL"}},
	{stdin: eastBut("name: east", "name: East"), args: "apply -f -", has: []string{"lowercase"}},
	{stdin: eastBut("type: {name: oidc}", `config: {key: "-----BEGIN RSA PRIVATE KEY-----"}`), args: "apply -f -", has: []string{"looks like a private key"}},
	{stdin: east, args: "apply -f - --server-side --force-conflicts", has: []string{"server-side apply is not supported in clusterregistry.k8s.io/v1alpha1", "apply the object in clusterregistry.k8s.io/v1beta1"}},
	{stdin: east, args: "create -f -", has: []string{`clusters.clusterregistry.k8s.io "east" already exists`}},
	{args: "get " + old + " --field-selector=spec.nonsense=1", has: []string{"the fields are metadata.name, status.version.kubernetes"}},
	{args: "get crc nowhere", has: []string{`clusters.clusterregistry.k8s.io "nowhere" not found`}},
	{args: `patch crc east --type=json -p [{"op":"test","path":"/metadata/name","value":"west"}]`, has: []string{"The request is invalid"}},
}

// Run types all of it, with each kubectl, as an administrator of the registry
// that the kubeconfig leads to. It deletes all clusters first.
func Run(t *testing.T, kubeconfig string) {
	for _, version := range kubectls {
		t.Run(version, func(t *testing.T) {
			kubectl := framework.NewKubectl(t, version, kubeconfig)
			if out := kubectl.Run("version"); !strings.Contains(out, "Client Version: "+version) {
				t.Errorf("kubectl %s says %s", version, out)
			}
			// kubectl validates with the schema that the host fetches in its own time.
			framework.Eventually(t, "the host to know the schema", func(context.Context) error {
				if _, err := kubectl.Try("explain", "crc"); err != nil {
					return err
				}
				_, err := kubectl.Try("explain", "--api-version=clusterregistry.k8s.io/v1alpha1", "crc")
				return err
			})
			kubectl.Run("delete", "crc", "--all")
			for _, step := range commands {
				out := kubectl.Stdin(step.stdin).Run(strings.Fields(step.args)...)
				if step.has == nil && out != step.is {
					t.Errorf("kubectl %s printed %q, want %q", step.args, out, step.is)
				}
				for _, want := range step.has {
					if !strings.Contains(out, want) {
						t.Errorf("kubectl %s: %q is missing in:\n%s", step.args, want, out)
					}
				}
			}
			for _, step := range refusals {
				_, err := kubectl.Stdin(step.stdin).Try(strings.Fields(step.args)...)
				for _, want := range step.has {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("kubectl %s: %q is missing in: %v", step.args, want, err)
					}
				}
			}
			awaitCondition(t, kubectl)
			edit(t, kubectl)
			flatFile(t, kubectl)
		})
	}
}

// wait waits for a condition that is reported only then.
func awaitCondition(t *testing.T, kubectl *framework.Kubectl) {
	done := make(chan error, 1)
	go func() {
		_, err := kubectl.Try("wait", "crc/east", "--for=condition=Ready", "--timeout=5m")
		done <- err
	}()
	kubectl.Run("patch", "crc", "east", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":`+ready+`}}`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if out := kubectl.Run("get", old, "east", "--no-headers"); !strings.Contains(out, "True") {
		t.Errorf("get crc of a cluster that is ready: %s", out)
	}
}

// edit changes a cluster in an editor, as diff has told before.
func edit(t *testing.T, kubectl *framework.Kubectl) {
	out, err := kubectl.Stdin(eastBut("east.example", "other.example")).Try("diff", "-f", "-")
	if err == nil || !strings.Contains(out, "-    - serverAddress: replaced.example\n+    - serverAddress: other.example\n") {
		t.Errorf("diff: %v: %s", err, out)
	}
	editor := func(script string) *framework.Kubectl { return kubectl.Environment("KUBE_EDITOR=sed -i " + script) }
	if out := editor("s/replaced.example/other.example/").Run("edit", old, "east"); out != name+" edited\n" {
		t.Errorf("edit: %s", out)
	}
	if out := kubectl.Run("get", old, "east", "-o", "jsonpath="+server); out != "other.example" {
		t.Errorf("after the edit: %s", out)
	}
	// kubectl opens the editor again, on a file that says what is wrong; this editor changes nothing more.
	_, err = editor("s/other.example/x:y:z/").Try("edit", old, "east")
	if err == nil || !strings.Contains(err.Error(), `"east" is invalid`) {
		t.Fatalf("an edit to an address that is none: %v", err)
	}
	_, rest, _ := strings.Cut(err.Error(), `changes has been stored to "`)
	path, _, _ := strings.Cut(rest, `"`)
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), "# * spec.kubernetesApiEndpoints.serverEndpoints[1].serverAddress: Invalid value") {
		t.Errorf("%v: the refused edit's file:\n%s", err, content)
	}
}

// flatFile brings back with apply what get has printed.
func flatFile(t *testing.T, kubectl *framework.Kubectl) {
	flat := kubectl.Run("get", "crc", "-o", "yaml")
	if out := kubectl.Stdin(flat).Run("replace", "-f", "-"); out != name+" replaced\n" {
		t.Errorf("replace by the flat file: %s", out)
	}
	kubectl.Run("delete", "crc", "--all")
	if out := kubectl.Stdin(flat).Run("apply", "-f", "-"); out != name+" created\n" {
		t.Errorf("apply of the flat file: %s", out)
	}
}
