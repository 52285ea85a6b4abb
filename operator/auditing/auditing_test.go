package auditing

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	spec        = `{spec: {mode: Aggregated, etcd: {replicas: 1}, server: {audit: {policyConfigMapRef: {name: audit}, log: {destination: File, file: {claimName: logs}}, webhook: {secretRef: {name: collector}}}}}}`
	validPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
	// collector is a kubeconfig of which no part is elsewhere.
	collector = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: "https://audit.example"}}], users: [{name: u, user: {token: secret-token}}]}`
)

func configMap(content string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "audit"}, Data: map[string]string{"policy.yaml": content}}
}

func secret(name string, data map[string][]byte) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: data}
}

func claim(mode corev1.PersistentVolumeAccessMode) client.Object {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "logs"}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{mode}}}
}

// good are the objects that the spec refers to.
func good() []client.Object {
	return []client.Object{configMap(validPolicy), secret("collector", map[string][]byte{"kubeconfig": []byte(collector)}), claim(corev1.ReadWriteMany)}
}

// servers returns servers that record something else, by a Secret with the given settings.
func servers(t *testing.T, settings string) (running *render.Audit, objects []client.Object) {
	t.Helper()
	running = &render.Audit{Spec: operatorv1alpha1.Audit{Log: &operatorv1alpha1.AuditLog{Destination: operatorv1alpha1.AuditLogStdout}}, Policy: []byte("as before")}
	deployment, _ := operandtest.Servers(2)
	deployment.Spec.Template.Annotations = map[string]string{operatorv1alpha1.AnnotationAudit: running.Digest()}
	return running, []client.Object{deployment, secret("fleet-audit-"+running.Digest(), map[string][]byte{"settings.json": []byte(settings), "policy.yaml": running.Policy, "kubeconfig": {}})}
}

const settings = `{"policyConfigMapRef":{"name":""},"log":{"destination":"Stdout"}}`

// TestDesired reads all that the spec refers to.
func TestDesired(t *testing.T) {
	found := Read(t.Context(), operandtest.New(t, spec, good()...))
	if !found.Held.Complete() || found.Render == nil || string(found.Render.Policy) != validPolicy || string(found.Render.Webhook) != collector {
		t.Errorf("%+v", found)
	}
	if found := Read(t.Context(), operandtest.New(t, `{spec: {mode: Aggregated}}`)); found.Render != nil || !found.Held.Complete() {
		t.Errorf("without an audit log: %+v", found)
	}
}

// TestInvalid spoils one thing after the other: servers that run keep what they have, and the
// condition has the server's own error, but nothing of a Secret.
func TestInvalid(t *testing.T) {
	kubeconfig := func(old, with string) client.Object {
		return secret("collector", map[string][]byte{"kubeconfig": []byte(strings.Replace(collector, old, with, 1))})
	}
	for _, test := range []struct {
		spoiled int // which of good
		object  client.Object
		says    string
	}{
		{0, nil, "ConfigMap audit with the audit policy (spec.server.audit.policyConfigMapRef) does not exist"},
		{0, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "audit"}}, "ConfigMap audit has no key policy.yaml"},
		{0, configMap(""), "it is empty"},
		{0, configMap(strings.Replace(validPolicy, "Metadata", "Everything", 1)), `rules[0].level: Unsupported value: "Everything"`},
		{0, configMap("apiVersion: audit.k8s.io/v1\nkind: Policy\n"), "loaded illegal policy with 0 rules"},
		{0, configMap("{"), "failed decoding"},
		{0, configMap("apiVersion: v1\nkind: ConfigMap\n"), "no kind"},
		{1, nil, "Secret collector with the kubeconfig of the audit webhook (spec.server.audit.webhook.secretRef) does not exist"},
		{1, secret("collector", nil), "Secret collector has no key kubeconfig"},
		{1, kubeconfig("{apiVersion", "{secret-token: [, apiVersion"), "it is not a valid kubeconfig"},
		{1, kubeconfig("current-context: c", "current-context: d"), "context was not found"},
		{1, kubeconfig("https:", "http:"), "its server is not an https URL"},
		{1, kubeconfig("server:", "insecure-skip-tls-verify: true, server:"), "it has insecure-skip-tls-verify"},
		{1, kubeconfig("token: secret-token", "tokenFile: /token"), "it refers to files"},
		{1, kubeconfig("token: secret-token", "exec: {command: login, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"), "it runs a program"},
		{2, nil, "PersistentVolumeClaim logs for the audit log (spec.server.audit.log.file.claimName) does not exist"},
		{2, claim(corev1.ReadWriteOnce), "is not ReadWriteMany"},
	} {
		objects := good()
		objects[test.spoiled] = test.object
		if test.object == nil {
			objects = append(objects[:test.spoiled], objects[test.spoiled+1:]...)
		}
		running, run := servers(t, settings)
		found := Read(t.Context(), operandtest.New(t, spec, append(objects, run...)...))
		if found.Held.State != verdict.Degraded || found.Held.Reason != operatorv1alpha1.ReasonAuditInvalid || found.Held.Err != nil || !strings.Contains(found.Held.Message, test.says) || strings.Contains(found.Held.Message, "secret-token") {
			t.Errorf("%s: %+v", test.says, found.Held)
		}
		if found.Render == nil || found.Render.Digest() != running.Digest() {
			t.Errorf("%s: servers get %+v", test.says, found.Render)
		}
	}
}

// TestPresent is about what servers get while the policy is gone, by what there is of them.
func TestPresent(t *testing.T) {
	_, both := servers(t, settings)
	deployment, copied := both[0], both[1]
	plain, _ := operandtest.Servers(2)
	enlisted := func(o *operand.Objects) {
		o.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{{Kind: "Secret", Namespace: "team", Name: "fleet-audit-0"}, {Kind: "Secret", Namespace: "team", Name: copied.GetName()}, {Kind: "ConfigMap", Namespace: "team", Name: "fleet-audit-1"}}
	}
	nothing := func(*operand.Objects) {}
	for _, test := range []struct {
		reason  string
		objects []client.Object
		change  func(*operand.Objects)
		state   verdict.State
		records bool
		says    string
	}{
		{"servers that record", both, nothing, verdict.Degraded, true, "the servers record as before"},
		{"servers that record nothing", []client.Object{plain}, nothing, verdict.Degraded, false, "the servers record nothing, as before"},
		{"no servers yet: none is made that records nothing", nil, nothing, verdict.Blocked, false, "no server is made until then"},
		{"their Deployment was deleted", []client.Object{copied}, enlisted, verdict.Degraded, true, "record as before"},
		{"it was deleted, and the copy, too", nil, enlisted, verdict.Blocked, false, "is gone"},
		{"the copy was deleted: they don't become servers that record nothing", []client.Object{deployment}, nothing, verdict.Blocked, false, "is gone"},
		{"the copy is damaged", []client.Object{deployment, secret(copied.GetName(), map[string][]byte{"settings.json": []byte("{}")})}, nothing, verdict.Blocked, false, "is damaged"},
	} {
		o := operandtest.New(t, spec, test.objects...)
		test.change(o)
		found := Read(t.Context(), o)
		if found.Held.State != test.state || (found.Render != nil) != test.records || !strings.Contains(found.Held.Message, test.says) || found.Held.Reason != operatorv1alpha1.ReasonAuditInvalid {
			t.Errorf("%s: %+v, %+v", test.reason, found.Held, found.Render)
		}
	}
}
