package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// auditPolicy returns a policy that records one thing at a level, under a key of a ConfigMap.
func auditPolicy(level string) map[string]string {
	return map[string]string{"policy.yaml": fmt.Sprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {level: %s, resources: [{group: clusterregistry.k8s.io}]}\n- level: None\n", level)}
}

// testAudit has servers record requests by a policy, and then by another: the copy that the
// earlier servers have goes when they are gone. One that servers would refuse changes nothing.
func testAudit(t *testing.T, s *site) {
	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "audit", Namespace: s.namespace}, Data: auditPolicy("Everything")}
	framework.Create(t, s, policy)
	s.apply("fleet", "{mode: Independent, version: v0.2.0, server: {audit: {policyConfigMapRef: {name: audit}, log: {}}}}")
	s.says("fleet", "ServerReady", "False", "AuditInvalid", "the servers would refuse the audit policy in ConfigMap audit, key policy.yaml", "no server is made until then")
	s.holds("fleet", "-Deployment/fleet-server")

	s.publish(policy, auditPolicy("Metadata"))
	s.says("fleet", "ServerReady", "True", "Ready")
	first := s.audited("")
	if kept := s.copies(); len(kept) != 1 || kept[0] != first.copy {
		t.Errorf("the copies of policies are %v, want that of the servers alone, %s", kept, first.copy)
	}
	testAudited(t, s, first)

	// No one reports the change of a ConfigMap of a user's. The pods of the first one are replaced,
	// and only then it goes.
	s.write(policy, auditPolicy("Request"))
	second := s.audited(first.copy)
	s.eventually("Secret "+first.copy+", which no pod has, to be deleted", func(context.Context) error {
		if kept := s.copies(); len(kept) != 1 || kept[0] != second.copy {
			return fmt.Errorf("the copies are %v", kept)
		}
		return nil
	})
	testAudited(t, s, second)

	before := &appsv1.Deployment{}
	s.get("fleet-server", before)
	for _, wrong := range []map[string]string{auditPolicy("Everything"), {"other.yaml": "x"}} {
		s.publish(policy, wrong)
		s.says("fleet", "ServerReady", "False", "AuditInvalid", "ConfigMap audit", "until then, the servers record as before")
		s.publish(policy, auditPolicy("Request"))
		s.says("fleet", "ServerReady", "True", "Ready")
	}
	after := &appsv1.Deployment{}
	s.get("fleet-server", after)
	if kept := s.copies(); after.Generation != before.Generation || len(kept) != 1 || kept[0] != second.copy {
		t.Errorf("a policy that servers would refuse has changed the Deployment from generation %d to %d, and the copies to %v", before.Generation, after.Generation, kept)
	}

	s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Server.Audit = nil })
	s.eventually("all copies of policies to be deleted", func(context.Context) error {
		if kept := s.copies(); len(kept) > 0 {
			return fmt.Errorf("the copies are %v", kept)
		}
		return nil
	})
	s.noErrors()
}

// publish writes a policy, and has the operator reconcile by a change of the spec that
// changes nothing else.
func (s *site) publish(config *corev1.ConfigMap, data map[string]string) {
	s.t.Helper()
	s.write(config, data)
	s.change(func(r *operatorv1alpha1.ClusterRegistry) {
		other := operatorv1alpha1.DeletionPolicyDelete
		if r.Spec.DeletionPolicy == other {
			other = operatorv1alpha1.DeletionPolicyRetain
		}
		r.Spec.DeletionPolicy = other
	})
}

// write writes a policy.
func (s *site) write(config *corev1.ConfigMap, data map[string]string) {
	s.t.Helper()
	before := config.DeepCopy()
	config.Data = data
	if err := s.Patch(s.t.Context(), config, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// copies returns the names of the Secrets with what servers record that the registry owns.
func (s *site) copies() []string {
	s.t.Helper()
	list, out := &corev1.SecretList{}, []string(nil)
	if err := s.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, "fleet-audit-") && list.Items[i].DeletionTimestamp == nil {
			out = append(out, name)
		}
	}
	return out
}

// recording is how servers record requests.
type recording struct {
	// copy is the name of the Secret with the policy, and flags are the servers' own.
	copy  string
	flags []string
}

// audited waits until the Deployment has servers record, by another copy than the given one.
func (s *site) audited(other string) recording {
	s.t.Helper()
	var out recording
	s.eventually("servers to record requests by another policy", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := s.Get(ctx, s.key("fleet-server"), d); err != nil {
			return err
		}
		out = recording{}
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Name == "audit" && v.Secret != nil {
				out.copy = v.Secret.SecretName
			}
		}
		for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
			if strings.HasPrefix(arg, "--audit-") {
				out.flags = append(out.flags, arg)
			}
		}
		if out.copy == "" || out.copy == other {
			return fmt.Errorf("servers have %q, with %q", out.copy, out.flags)
		}
		return nil
	})
	return out
}

// testAudited runs a real server as the Deployment does, and sees a request in its log.
func testAudited(t *testing.T, s *site, r recording) {
	t.Helper()
	secret := &corev1.Secret{}
	s.get(r.copy, secret)
	dir := t.TempDir()
	for key, content := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, key), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var flags []string
	for _, flag := range r.flags {
		flags = append(flags, strings.Replace(flag, "=/audit/", "="+dir+"/", 1))
	}
	registry, _, config := independent(t, flags...)
	clusters := clustersOf(t, config)
	if _, err := clusters.Create(t.Context(), cluster("recorded", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	level := "Metadata"
	if strings.Contains(string(secret.Data["policy.yaml"]), "level: Request,") {
		level = "Request"
	}
	framework.Eventually(t, "the request to be in the log, at level "+level, func(context.Context) error {
		return registry.Said(`"level":"` + level + `"`)
	})
	if err := registry.Said(`"name":"recorded"`); err != nil {
		t.Error(err)
	}
}
