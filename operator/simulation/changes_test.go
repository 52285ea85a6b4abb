package simulation

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/health"
)

// changes are undertakings of which the status has no phases: each change that the operator makes
// is one.
var changes = []undertaking{
	{name: "an upgrade that is taken back", from: "v0.1.0", members: 3, steps: 3, by: changed, begins: func(w *world) {
		upgrades(w)
		w.until("the first server is replaced", 30*time.Minute, func() bool {
			return slices.ContainsFunc(sorted(w.pods), func(uid string) bool { return w.pods[uid].answers() && w.pods[uid].version == "v0.2.0" })
		})
		w.asks("the release of before", func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Version = "v0.1.0" })
	}, is: func(w *world) bool { return w.registry().Status.Version == "v0.1.0" && w.rolled("v0.1.0", 2) }},
	{name: "more servers", members: 1, steps: 1, by: changed, begins: servers(4), is: func(w *world) bool { return w.rolled("", 4) }},
	{name: "fewer servers", members: 1, steps: 1, by: changed, begins: servers(1), is: func(w *world) bool { return w.rolled("", 1) }},
	{name: "an audit log", members: 1, steps: 2, by: changed, begins: func(w *world) {
		w.make("v1", "ConfigMap", key.namespace, "audit", map[string]any{"data": map[string]any{"policy.yaml": `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}`}})
		w.asks("an audit log", func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Server.Audit = &operatorv1alpha1.Audit{PolicyConfigMapRef: operatorv1alpha1.AuditPolicySelector{Name: "audit", Key: "policy.yaml"}, Log: &operatorv1alpha1.AuditLog{Destination: operatorv1alpha1.AuditLogStdout}}
		})
	}, is: func(w *world) bool { return w.rolled("audit-policy", 2) }},
	{name: "an address outside", independent: true, members: 1, steps: 4, by: changed, begins: func(w *world) {
		w.asks("a load balancer", func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Server.Service = &operatorv1alpha1.Service{Type: corev1.ServiceTypeLoadBalancer}
		})
	}, is: func(w *world) bool { return w.reachedAt(balancer) }},
	{name: "a name outside", independent: true, members: 1, steps: 4, by: changed, begins: func(w *world) {
		w.asks("a load balancer with a name", func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Server.Service = &operatorv1alpha1.Service{Type: corev1.ServiceTypeLoadBalancer, Hostnames: []operatorv1alpha1.Hostname{outsideName}}
		})
	}, is: func(w *world) bool { return w.reachedAt(outsideName) }},
	{name: "more memory for etcd", members: 3, steps: 4, by: changed, begins: func(w *world) {
		w.asks("more memory", func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Etcd.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi")}
		})
	}, is: func(w *world) bool { return w.updated(w.host.list(setKind, key.namespace), "3Gi", 3) }},
	{name: "a first schedule of backups", bare: true, members: 1, steps: 3, by: changed, begins: func(w *world) { w.stores("*/10 * * * *") }, is: func(w *world) bool {
		status := w.registry().Status.Backup
		return status != nil && status.LastSuccess != nil
	}},
	{name: "a deletion that keeps the data", members: 3, steps: 2, by: changed, begins: func(w *world) { w.deletes(key) }, is: func(w *world) bool {
		return w.registry() == nil && len(w.left()) == 0
	}},
	{name: "a deletion with the data", members: 3, steps: 2, by: changed, begins: drops(operatorv1alpha1.DeletionPolicyDelete), is: gone},
	{name: "a deletion after a last backup", members: 3, steps: 4, by: changed, begins: drops(operatorv1alpha1.DeletionPolicySnapshot), is: func(w *world) bool {
		return gone(w) && len(w.backups) > 1
	}},
	{name: "a registry with kept data", members: 3, steps: 8, by: changed, begins: func(w *world) {
		w.deletes(key)
		w.until("the registry is gone", 20*time.Minute, func() bool { return w.registry() == nil })
		w.begins(3)
	}, is: func(w *world) bool { return w.registry() != nil }},
	{name: "a registry from a backup", members: 3, steps: 10, by: changed, begins: begunAgain, is: func(w *world) bool {
		restored := w.registry().Status.Restored
		return restored != nil && restored.CompletionTime != nil
	}},
}

// changed is what the operator has changed so far.
func changed(w *world) string { return fmt.Sprint("change ", w.changed) }

// servers has a person ask for so many.
func servers(replicas int32) func(*world) {
	return func(w *world) {
		w.asks("other servers", func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Server.Replicas = replicas })
	}
}

// rolled reports whether so many servers answer, all as the Deployment has them, which contains
// a text.
func (w *world) rolled(contains string, count int) bool {
	return w.updated(w.host.list(deploymentKind, key.namespace), contains, count)
}

// updated reports whether the pods of what runs them are so many, all ready and as it has them,
// which contains a text.
func (w *world) updated(owners []*stored, contains string, count int) bool {
	if len(owners) != 1 || !strings.Contains(fmt.Sprint(owners[0].Object["spec"]), contains) {
		return false
	}
	pods := w.children(owners[0])
	for _, pod := range pods {
		if !ready(pod) || pod.GetLabels()["controller-revision-hash"] != revisionOf(owners[0]) {
			return false
		}
	}
	return len(pods) == count
}

// reachedAt reports whether clients are given an address, and all servers show there what they are
// to trust.
func (w *world) reachedAt(host string) bool {
	endpoint := w.registry().Status.Endpoint
	if endpoint == nil || endpoint.URL != "https://"+host || !strings.Contains(string(w.secret(key.name+contract.KubeconfigSuffix, "kubeconfig")), endpoint.URL+"\n") {
		return false
	}
	for _, uid := range sorted(w.pods) {
		p := w.pods[uid]
		if !p.answers() {
			continue
		}
		if _, err := w.askServer(w.t.Context(), health.Server{Address: net.JoinHostPort(p.address, contract.ServerPort), Name: host, CAs: endpoint.CABundle}); err != nil {
			return false
		}
	}
	return w.condition("EndpointReady").Status == metav1.ConditionTrue
}

// drops has a person delete the registry with its data.
func drops(policy operatorv1alpha1.DeletionPolicy) func(*world) {
	return func(w *world) {
		w.asks("to keep no data", func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.DeletionPolicy = policy })
		w.accepted = true
		w.deletes(key)
	}
}

// gone reports whether the registry is gone with its data.
func gone(w *world) bool {
	claims := 0
	for _, claim := range w.host.list(claimKind, key.namespace) {
		claims += int(boolean(strings.HasPrefix(claim.name, "data-")))
	}
	return w.registry() == nil && len(w.left()) == 0 && claims == 0
}

// begunAgain has a person delete the registry with its data, and create it again from a backup.
func begunAgain(w *world) {
	lineage := w.registry().Status.Backup.Lineage
	drops(operatorv1alpha1.DeletionPolicyDelete)(w)
	w.until("the registry is gone", 20*time.Minute, func() bool { return gone(w) })
	w.accepted, w.acked = false, 0
	spec := w.spec(3)
	maps.Copy(spec, map[string]any{"restoreFrom": map[string]any{"lineage": lineage, "name": sorted(w.backups)[0],
		"store": map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "backups"}}}})
	w.creates(spec)
}
