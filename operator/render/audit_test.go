package render

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestAudit renders what servers record as a Secret that has another name whenever its content
// is another one, by which the servers are replaced, and reads it back from there.
func TestAudit(t *testing.T) {
	in := input(t, registry)
	in.Audit = &Audit{Spec: operatorv1alpha1.Audit{
		PolicyConfigMapRef: operatorv1alpha1.AuditPolicySelector{Name: "audit"}, Log: &operatorv1alpha1.AuditLog{Destination: operatorv1alpha1.AuditLogFile},
		Webhook: &operatorv1alpha1.AuditWebhook{SecretRef: operatorv1alpha1.SecretKeySelector{Name: "collector"}}}, Policy: []byte("<name>"), Webhook: []byte("b")}
	digests := map[string]string{}
	for what, modify := range map[string]func(*Audit){
		"as it is":         func(*Audit) {},
		"another policy":   func(a *Audit) { a.Policy = []byte("c") },
		"another server":   func(a *Audit) { a.Webhook = []byte("c") },
		"no server":        func(a *Audit) { a.Webhook, a.Spec.Webhook = nil, nil },
		"another log":      func(a *Audit) { a.Spec.Log = &operatorv1alpha1.AuditLog{} },
		"moved to the log": func(a *Audit) { a.Policy, a.Webhook = []byte("<name>b"), nil },
	} {
		audit := *in.Audit
		modify(&audit)
		changed := in
		changed.Audit = &audit
		result, digest := rendered(t, changed), audit.Digest()
		secret := find(result, "Secret", "fleet-audit-"+digest)
		if secret == nil {
			t.Fatalf("%s: there is no Secret fleet-audit-%s", what, digest)
		}
		if got := at(t, result, "Deployment/fleet-server/spec/template/metadata/annotations/operator.clusterregistry.io~1audit"); got != digest {
			t.Errorf("%s: the servers' template has the annotation %v, want %s", what, got, digest)
		}
		if got := at(t, result, "Deployment/fleet-server"+podSpec+"/volumes/4/secret/secretName"); got != "fleet-audit-"+digest {
			t.Errorf("%s: servers mount %v", what, got)
		}
		data := convert[corev1.Secret](t, secret).Data
		read, err := AuditOf(data, digest)
		if err != nil || read.Digest() != digest || string(read.Policy) != string(audit.Policy) || !reflect.DeepEqual(read.Webhook, audit.Webhook) {
			t.Errorf("%s: read back as %+v, %v", what, read, err)
		}
		if strings.Contains(string(data[auditSettings]), "collector") {
			t.Errorf("%s: another name of a Secret with the same content replaces servers: %s", what, data[auditSettings])
		}
		for key := range data {
			damaged := maps.Clone(data)
			damaged[key] = []byte("{}")
			if _, err := AuditOf(damaged, digest); err == nil {
				t.Errorf("%s: with another %s, it is still taken for what servers read", what, key)
			}
		}
		if other, has := digests[digest]; has {
			t.Errorf("%s has the digest of %s", what, other)
		}
		digests[digest] = what
	}
}

// TestGuardedFields renders the same servers whether or not the spec says that nothing is
// guarded, and else has them guard.
func TestGuardedFields(t *testing.T) {
	with := func(spec string) *Result { return rendered(t, input(t, merged(t, spec))) }
	const flag = "Deployment/fleet-server" + container + "/args/--guarded-fields"
	if off := with(`{server: {authorization: {guardedFields: "Off"}}}`); !reflect.DeepEqual(with(`{}`), off) {
		t.Error("Off renders something else than nothing")
	}
	for _, guarded := range []string{"Warn", "Enforce"} {
		if got := at(t, with(`{server: {authorization: {guardedFields: `+guarded+`}}}`), flag); got != guarded {
			t.Errorf("%s gives the servers %v", guarded, got)
		}
	}
}
