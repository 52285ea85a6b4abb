package backup

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// plugin is kubectl-registry, built from this checkout.
type plugin struct {
	t       *testing.T
	program string
	e       *framework.Env
}

func newPlugin(t *testing.T, e *framework.Env) plugin {
	t.Helper()
	p := plugin{t, filepath.Join(t.TempDir(), "kubectl-registry"), e}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", p.program, "./cli/kubectl-registry")
	build.Dir = framework.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return p
}

// run runs a command, expects its exit code, and returns what it prints.
func (p plugin) run(code int, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.program, append([]string{"--kubeconfig=" + framework.ClusterKubeconfig(p.t), "-n", p.e.Namespace, "backup"}, args...)...) //nolint:gosec // built here
	out, err := cmd.CombinedOutput()
	got := 0
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		p.t.Fatal(err)
	}
	if got != code {
		p.t.Fatalf("backup %s exits with %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

// expect reports what a text lacks.
func expect(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
}

// TestPlugin takes, shows and verifies backups with kubectl registry, and deletes the registry
// with deletionPolicy Snapshot: while the store is down it serves, and says what it waits for
// and how to end that; with Retain it goes, and its data stays for one of the same name, which
// goes once its last backup is verified.
func TestPlugin(t *testing.T) {
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	registry := registryWith(e, s, 1, never)
	registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicySnapshot
	e.Install(registry)
	e.WaitReady(registry)
	addCluster(t, e, registry, "one")
	p := newPlugin(t, e)

	expect(t, p.run(0, "create", registry.Name, "--name", "typed", "--wait"), "Saving", "typed created", "it is in its store, and was verified")
	expect(t, p.run(0, "list", registry.Name), "OK: "+e.Namespace+"/"+registry.Name, "typed", "Completed", "a person")
	expect(t, p.run(0, "show", "typed"), "OK: backup "+e.Namespace+"/typed", "s3://"+bucket, "1 clusters")
	b := &operatorv1alpha1.ClusterRegistryBackup{}
	b.Name, b.Namespace = "typed", e.Namespace
	waitPhase(e, b, operatorv1alpha1.BackupCompleted)
	first := b.Status.VerifiedTime
	expect(t, p.run(0, "verify", "typed", "--wait"), "typed annotated", "verified at")
	waitPhase(e, b, operatorv1alpha1.BackupCompleted)
	if !first.Before(b.Status.VerifiedTime) || b.Status.VerifyRequest == "" {
		t.Errorf("verified at %s, it was verified again at %s, by %q", first, b.Status.VerifiedTime, b.Status.VerifyRequest)
	}

	s.scale(0)
	expect(t, p.run(1, "verify", "typed", "--wait"), "it could not be verified again", s.host)
	expect(t, p.run(0, "show", "typed"), "it is in its store, and was verified")
	testSavedFirst(t, e, s, registry)
}

// testSavedFirst deletes a registry with deletionPolicy Snapshot, whose store is down.
func testSavedFirst(t *testing.T, e *framework.Env, s *store, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	if err := e.Client.Delete(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	e.WaitCondition(registry, operatorv1alpha1.ConditionProgressing, metav1.ConditionTrue, operatorv1alpha1.ReasonDeleting, "-del1 is Saving", "the store can't be reached since", s.host, "set spec.deletionPolicy to Retain")
	e.WaitCondition(registry, operatorv1alpha1.ConditionAvailable, metav1.ConditionTrue, operatorv1alpha1.ReasonAvailable)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyRetain
	})
	e.WaitGone(registry)
	if claims := etcdClaims(t, e, registry); len(claims) == 0 {
		t.Error("with Retain, no volume of etcd is left")
	}

	s.scale(1)
	second := registryWith(e, s, 1, never)
	second.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicySnapshot
	e.Install(second)
	waitPhase(e, request(e, second, "after", operatorv1alpha1.BackupDeletionPolicyRetain), operatorv1alpha1.BackupCompleted)
	e.WaitReady(second)
	e.Remove(second)
	var list operatorv1alpha1.ClusterRegistryBackupList
	if err := e.Client.List(t.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		t.Fatal(err)
	}
	last := slices.IndexFunc(list.Items, func(b operatorv1alpha1.ClusterRegistryBackup) bool {
		return b.Annotations[operatorv1alpha1.AnnotationBackupReason] == string(operatorv1alpha1.BackupDeletion) && b.Status.Phase == operatorv1alpha1.BackupCompleted
	})
	if last < 0 {
		t.Fatalf("there is no last backup: %+v", list.Items)
	}
	checkCompleted(t, s, list.Items[last])
	if claims := etcdClaims(t, e, second); len(claims) > 0 {
		t.Errorf("with Snapshot, %v are left", claims)
	}
}

// etcdClaims returns the names of the claims of a registry's etcd.
func etcdClaims(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) []string {
	t.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := e.Client.List(t.Context(), &list, client.InNamespace(e.Namespace), client.MatchingLabels{operatorv1alpha1.LabelInstance: registry.Name}); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, claim := range list.Items {
		out = append(out, claim.Name)
	}
	return out
}

// waitNoLastBackup waits for the event about a namespace that says which backup is left of a
// registry which went with it.
func waitNoLastBackup(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	e.Eventually("the event NoLastBackup", func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := e.Client.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Reason == "NoLastBackup" && event.Regarding.Name == e.Namespace && strings.Contains(event.Note, e.Namespace+"/"+registry.Name) && strings.Contains(event.Note, "is the newest that is verified") {
				return nil
			}
		}
		return fmt.Errorf("there is none among %d events", len(list.Items))
	})
}
