package accidents

import (
	"strings"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// outage is why requests may fail in an accident: what all of them need is gone
// until it is made again.
type outage struct {
	damage, kind, part, reason string
	// limit is how long requests may fail for at most.
	limit time.Duration
	// host is true when the API as a whole is gone from a host cluster that
	// aggregates it, and not only some requests fail.
	host bool
}

// The limits are three times and more what results.md has measured.
var outages = []outage{
	{deleted, "Deployment", "-server", "all servers are told to end at once", 30 * time.Second, true},
	{deleted, "StatefulSet", "-etcd", "all members of etcd are told to end at once", 60 * time.Second, true},
	{deleted, "Service", "-server", "it is the only way to the servers", 15 * time.Second, true},
	{deleted, "EndpointSlice", "-server-", "it lists the servers for those who look for them", 15 * time.Second, true},
	{deleted, "APIService", "", "kube-apiserver serves what APIServices say", 15 * time.Second, true},
	{deleted, "ServiceAccount", "-server", "the host refuses the tokens of all servers, which are replaced one at a time", 60 * time.Second, true},
	{deleted, "ClusterRoleBinding", ":auth-delegator", "the servers may not ask kube-apiserver who may do what", 15 * time.Second, false},
}

// expected returns why requests may fail in an accident, nil when none may.
func expected(a accident) *outage {
	for i, o := range outages {
		if o.damage == a.damage && o.kind == a.object.Kind && strings.Contains(a.object.Name, o.part) {
			return &outages[i]
		}
	}
	return nil
}

// byHand are the accidents that need a person, with the reason of the condition
// that says so, and a text in its message.
var byHand = []struct{ damage, kind, part, reason, text string }{
	{deleted, "Secret", "-etcd-ca", operatorv1alpha1.ReasonIdentityMismatch, "restore that Secret"},
	{nonsense, "Secret", "-etcd-ca", operatorv1alpha1.ReasonIdentityMismatch, "restore that Secret"},
}

// asks returns what a condition says that asks for a person, where one is needed.
func asks(a accident, registry *operatorv1alpha1.ClusterRegistry) string {
	for _, h := range byHand {
		if h.damage != a.damage || h.kind != a.object.Kind || !strings.Contains(a.object.Name, h.part) {
			continue
		}
		for _, c := range registry.Status.Conditions {
			if c.Reason == h.reason && strings.Contains(c.Message, h.text) && strings.Contains(c.Message, a.object.Name) {
				return c.Message
			}
		}
	}
	return ""
}
