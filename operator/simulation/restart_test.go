package simulation

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// TestRolloutRestart has a person ask for a restart of the servers and of the members as "kubectl
// rollout restart" does, and label their pods: each is replaced once, and the operator leaves in the
// templates what is not its own.
func TestRolloutRestart(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(3)
		workloads := append(w.host.list(deploymentKind, key.namespace), w.host.list(setKind, key.namespace)...)
		before, seen := map[string]int{}, map[string]map[types.UID]bool{}
		for _, workload := range workloads {
			before[workload.name], seen[workload.name] = len(w.children(workload)), map[types.UID]bool{}
			w.note("a person restarts %s", workload.id)
			_, err := w.host.update(workload.id, func(tree *unstructured.Unstructured) error {
				template := []string{"spec", "template", "metadata"}
				return errors.Join(
					unstructured.SetNestedField(tree.Object, "2026-03-01T10:00:00Z", append(template, "annotations", "kubectl.kubernetes.io/restartedAt")...),
					unstructured.SetNestedField(tree.Object, "42", append(template, "labels", "cost-center")...))
			})
			must(err)
		}
		if len(workloads) != 2 {
			w.fails("there are %d workloads", len(workloads))
		}
		restarted := func() bool {
			all := true
			for _, workload := range workloads {
				now := w.host.objects[workload.id]
				for _, pod := range w.children(now) {
					seen[now.name][pod.GetUID()] = true
				}
				for _, added := range []string{"kubectl.kubernetes.io/restartedAt", "cost-center:42"} {
					all = all && w.updated([]*stored{now}, added, before[now.name])
				}
			}
			return all
		}
		w.until("all pods are replaced", 20*time.Minute, restarted)
		w.rests(20 * time.Minute)
		if !restarted() {
			w.fails("the request is gone, or the pods are others than it asks for")
		}
		for name, pods := range seen {
			if len(pods) != 2*before[name] {
				w.fails("%s had %d pods in all, and should have %d", name, len(pods), 2*before[name])
			}
		}
	})
}

// TestCertManagerReinstalled takes cert-manager away with all that it was asked for, as its
// CustomResourceDefinitions do when they are deleted: clients are served meanwhile, and when it is
// back the registry is ready with the CAs that it had.
func TestCertManagerReinstalled(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		cas := w.authorities()
		for _, kind := range []schema.GroupKind{certificateKind, {Group: certificateKind.Group, Kind: "Issuer"}} {
			for _, object := range w.host.list(kind, key.namespace) {
				w.deletes(object.id)
			}
		}
		w.certManagerAway = true
		w.pass(5 * time.Minute)
		if c := w.condition("Available"); c.Status != "True" {
			w.fails("without cert-manager it is not available: %s", c.Message)
		}
		w.restarts()
		w.certManagerAway = false
		w.rests(20 * time.Minute)
		if now := w.authorities(); fmt.Sprint(now) != fmt.Sprint(cas) || strings.TrimSpace(cas[key.name+"-etcd-ca"]) == "" {
			w.fails("the CAs are others")
		}
	})
}
