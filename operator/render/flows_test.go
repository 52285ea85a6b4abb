package render

import (
	"maps"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestFlows holds the rendered NetworkPolicies to who has to reach whom, and who
// must not. The local cluster enforces none, so that only this test would tell.
func TestFlows(t *testing.T) {
	in := input(t, merged(t, `{mode: Aggregated, controllers: {health: {}, feed: {}}}`))
	in.Snapshot = "before-the-next"
	in.Registry.Spec.Backup = &operatorv1alpha1.Backup{Store: operatorv1alpha1.BackupStore{S3: &operatorv1alpha1.S3Store{Bucket: "b"}}}
	in.Backup = backups["every-field"]
	result := rendered(t, in)
	templates := podTemplates(t, result)
	var policies []networkingv1.NetworkPolicy
	for _, object := range result.Objects() {
		if object.GetKind() == "NetworkPolicy" {
			policies = append(policies, *convert[networkingv1.NetworkPolicy](t, object))
		}
	}
	pod := func(workload string) peer {
		template := templates[workload]
		return peer{"team", template.Labels, template.Spec.Containers[0].Ports}
	}
	elsewhere := func(p peer, namespace string) peer {
		p.namespace = namespace
		return p
	}
	of := func(p peer, instance string) peer {
		p.labels = maps.Clone(p.labels)
		p.labels[operatorv1alpha1.LabelInstance] = instance
		return p
	}
	server, member := pod("Deployment fleet-server"), pod("StatefulSet fleet-etcd")
	snapshot, controller := pod("Job fleet-snapshot"), pod("Deployment fleet-controller")
	backup := pod("Job fleet-backup")
	unknownJob := peer{"team", Labels(in.Registry), nil}
	unknownJob.labels[operatorv1alpha1.LabelComponent] = "other"
	operator := peer{"clusterregistry-system", map[string]string{"app.kubernetes.io/name": "clusterregistry-operator"}, nil}
	neighbour := peer{"team", map[string]string{"app": "shop"}, nil}
	outside, dns := peer{}, peer{"kube-system", map[string]string{"k8s-app": "kube-dns"}, nil}

	// A namespace may deny all that no policy allows. Its other pods have policies of their own.
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	policies = append(policies, networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team"}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: neighbour.labels}, PolicyTypes: both,
		Ingress: []networkingv1.NetworkPolicyIngressRule{{}}, Egress: []networkingv1.NetworkPolicyEgressRule{{}}}},
		networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default-deny", Namespace: "team"},
			Spec: networkingv1.NetworkPolicySpec{PolicyTypes: both}})
	for _, flow := range []struct {
		reason   string
		from, to peer
		port     int32
		want     bool
	}{
		{"servers read and write", server, member, 2379, true},
		{"members redirect clients to each other, and check each other's data", member, member, 2379, true},
		{"members agree", member, member, 2380, true},
		{"the operator looks after the members", operator, member, 2379, true},
		{"the operator looks at what members show each other", operator, member, 2380, true},
		{"snapshots are taken", snapshot, member, 2379, true},
		{"backups are taken", backup, member, 2379, true},
		{"nothing calls what takes backups", neighbour, backup, 8080, false},
		{"a backup does not reach members as one of them", backup, member, 2380, false},
		{"kubelets and Prometheus probe", outside, member, 2381, true},
		{"anybody may see the probes, which have no data", neighbour, member, 2381, true},
		{"the host's API server calls, which is no pod", outside, server, 6443, true},
		{"clients in the host call", neighbour, server, 6443, true},
		{"the operator asks each server", operator, server, 6443, true},
		{"the controller reports", controller, server, 6443, true},
		{"kubelets probe the controller", outside, controller, 8081, true},
		{"Prometheus reads metrics", neighbour, controller, 8443, true},
		{"programs ask for clusters", neighbour, controller, 9443, true},

		{"others of the namespace have no business with the data", neighbour, member, 2379, false},
		{"nor has the outside", outside, member, 2379, false},
		{"nor have pods of the registry that are no servers", unknownJob, member, 2379, false},
		{"another registry has an etcd of its own", of(server, "other"), member, 2379, false},
		{"and so has one whose name begins alike", of(server, "fleet-etcd"), member, 2379, false},
		{"a member of another etcd is no member", of(member, "other"), member, 2380, false},
		{"servers are no members", server, member, 2380, false},
		{"labels mean nothing in another namespace", elsewhere(server, "default"), member, 2379, false},
		{"a member in another namespace is none", elsewhere(member, "default"), member, 2380, false},
		{"anybody can take the operator's labels outside of its namespace", elsewhere(operator, "team"), member, 2379, false},
		{"another pod of the operator's namespace is not the operator", elsewhere(neighbour, "clusterregistry-system"), member, 2379, false},
		{"the controller has no business with the data", controller, member, 2379, false},
		{"nor is it a member", controller, member, 2380, false},
		{"another pod of the operator's namespace is none, either", elsewhere(neighbour, "clusterregistry-system"), member, 2380, false},
		{"the controller has no other port", outside, controller, 8080, false},
		{"members call nobody else", member, neighbour, 8080, false},
		{"nor do Jobs that take snapshots", snapshot, neighbour, 8080, false},
		{"names are looked up", member, dns, 53, true},
		{"also by Jobs", snapshot, dns, 53, true},
		{"servers call webhooks", server, neighbour, 8443, true},
		{"the controller calls clusters", controller, outside, 6443, true},
		{"servers have no other port", outside, server, 8080, false},
		{"members have no other port", server, member, 2382, false},
	} {
		if got := allowed(t, policies, flow.from, flow.to, flow.port); got != flow.want {
			t.Errorf("%s: %v to port %d of %v is allowed: %v", flow.reason, flow.from, flow.port, flow.to.labels, got)
		}
	}
}
