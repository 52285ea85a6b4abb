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

// TestGuardedFieldsNeedALayout renders servers of the first layout, which don't know the flag,
// without it, and the same servers whether or not the spec says that nothing is guarded.
func TestGuardedFieldsNeedALayout(t *testing.T) {
	with := func(layout, spec string) *Result {
		in := input(t, merged(t, spec))
		in.Release.Layout, in.Release.EtcdLayout, in.Release.Controllers = layout, layout, nil
		return rendered(t, in)
	}
	const flag = "Deployment/fleet-server" + container + "/args/--guarded-fields"
	for _, layout := range []string{"v1", "v2"} {
		unset := with(layout, `{}`)
		if off := with(layout, `{server: {authorization: {guardedFields: "Off"}}}`); !reflect.DeepEqual(unset, off) {
			t.Errorf("%s: Off renders something else than nothing", layout)
		}
		for _, guarded := range []string{"Warn", "Enforce"} {
			got := at(t, with(layout, `{server: {authorization: {guardedFields: `+guarded+`}}}`), flag)
			if want := map[string]any{"v1": nil, "v2": guarded}[layout]; got != want {
				t.Errorf("%s: %s gives the servers %v, want %v", layout, guarded, got, want)
			}
		}
	}
}

// TestAuditNeedsALayout renders servers of the first layout, which know of no audit log, as if
// there were none, and those of a later one with it, whichever layout etcd is of.
func TestAuditNeedsALayout(t *testing.T) {
	for _, test := range []struct {
		servers, etcd string
		want          bool
	}{{"v1", "v1", false}, {"v2", "v1", true}, {"v1", "v2", false}, {"v2", "v2", true}} {
		in := input(t, merged(t, `{server: {audit: {policyConfigMapRef: {name: audit}, log: {}}}}`))
		in.Release.Layout, in.Release.EtcdLayout, in.Release.Controllers = test.servers, test.etcd, nil
		result := rendered(t, in)
		if got := find(result, "Secret", "fleet-audit-"+in.Audit.Digest()) != nil; got != test.want {
			t.Errorf("servers of %s, etcd of %s: audited %t", test.servers, test.etcd, got)
		}
		if got := at(t, result, "Deployment/fleet-server"+container+"/args/--audit-policy-file") != nil; got != test.want {
			t.Errorf("servers of %s, etcd of %s: they read a policy: %t", test.servers, test.etcd, got)
		}
	}
}
