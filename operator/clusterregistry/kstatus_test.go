package clusterregistry

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestRegistriesAreWaitedFor has the library by which GitOps tools wait read what is reported of
// a registry in each state.
func TestRegistriesAreWaitedFor(t *testing.T) {
	for reason, test := range map[string]struct {
		spec, status, waits string
		want                status.Status
	}{
		"being installed":       {"mode: Aggregated", "", "CertificatesReady", status.InProgressStatus},
		"ready":                 {"mode: Aggregated", complete[2:], "", status.CurrentStatus},
		"degraded":              {"mode: Aggregated", complete[2:], "EtcdReady", status.InProgressStatus},
		"paused, and well":      {"mode: Aggregated, paused: true", complete[2:], "", status.CurrentStatus},
		"paused, and in change": {"mode: Aggregated, paused: true", complete[2:], "ServerReady", status.InProgressStatus},
	} {
		s := look(t, "{spec: {"+test.spec+"}, status: {"+test.status+"}}")
		r := reading(t, s, s.Registry.DeepCopy())
		s.Events = events.NewFakeRecorder(20)
		for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
			v := done
			if kind == test.waits {
				v = verdict.Waiting("Held", "not yet")
			}
			s.record(kind, v)
		}
		if _, err := r.report(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		now := &operatorv1alpha1.ClusterRegistry{}
		if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.Registry), now); err != nil {
			t.Fatal(err)
		}
		if got := waited(t, now); got != test.want {
			t.Errorf("%s: %s; want %s: %+v", reason, got, test.want, now.Status.Conditions)
		}
		now.Generation++
		if got := waited(t, now); got != status.InProgressStatus {
			t.Errorf("%s, and its spec was changed: %s", reason, got)
		}
		now.DeletionTimestamp = timeAt(s.Now)
		if got := waited(t, now); got != status.TerminatingStatus {
			t.Errorf("%s, and it is being deleted: %s", reason, got)
		}
	}
}

// waited returns what tools that wait for a registry make of it.
func waited(t *testing.T, r *operatorv1alpha1.ClusterRegistry) status.Status {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: tree})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}
