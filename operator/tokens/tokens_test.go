package tokens

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestRenew is about servers that are older than their ServiceAccount: they are
// evicted, one at a time, and only while the host cluster may still refuse their tokens.
func TestRenew(t *testing.T) {
	type aged struct {
		*Holders
		// made is when the ServiceAccount was, and pods are when these were.
		made time.Time
		pods []*corev1.Pod
		// refusal answers evictions.
		refusal error
	}
	ago := func(s *aged, i int, age time.Duration) {
		s.pods[i].CreationTimestamp = metav1.NewTime(s.Now.Add(-age))
	}
	for _, test := range []struct {
		reason  string
		change  func(*aged)
		evicted string
		says    string // the hold does, unless it is empty: then there is none
	}{
		{"both are older", func(*aged) {}, "fleet-server-0", "servers: 2 of 2 are older than ServiceAccount fleet-server, which was deleted and recreated, and kube-apiserver may reject their tokens; fleet-server-0 is being replaced"},
		{"one is", func(s *aged) { ago(s, 0, time.Minute) }, "fleet-server-1", "servers: 1 of 2 are older"},
		{"none is", func(s *aged) { s.made = s.Now.Add(-3 * time.Hour) }, "", ""},
		{"kubelet has fetched other tokens since", func(s *aged) {
			s.made = s.Now.Add(-51 * time.Minute)
		}, "", ""},
		{"one is not ready: it goes first", func(s *aged) { s.pods[1].Status.Conditions = nil }, "fleet-server-1", "fleet-server-1 is being replaced"},
		{"the first was replaced and comes up", func(s *aged) {
			ago(s, 0, time.Second)
			s.pods[0].Status.Conditions = nil
		}, "", "fleet-server-1 is next, once the others are ready"},
		{"the first ends, and there is none in its place yet", func(s *aged) {
			s.pods[0].DeletionTimestamp, s.pods[0].Finalizers = new(metav1.NewTime(s.Now)), []string{"kubelet/here"}
		}, "", "fleet-server-1 is next, once the others are ready"},
		{"etcd's members are being replaced", func(s *aged) { s.Wait = "the etcd members are replaced" }, "", "fleet-server-0 is next, once the etcd members are replaced"},
		{"the host refuses", func(s *aged) { s.refusal = apierrors.NewTooManyRequests("disruption budget", 0) }, "", "fleet-server-0 is next, but its eviction is refused for now: disruption budget"},
		{"it is read-only", func(s *aged) { s.Freeze("spec.paused is false") }, "", "nothing is changed now; kubelet renews their tokens within an hour"},
		{"the ServiceAccount is not made again yet", func(s *aged) { s.Account = "-other" }, "", ""},
	} {
		var replaced []string
		s := &aged{Holders: &Holders{Objects: operandtest.New(t, operandtest.InstalledAggregated), What: "servers", Account: "-server", Replaced: func(pod, _ string) { replaced = append(replaced, pod) }}}
		s.made = s.Now.Add(-10 * time.Minute)
		deployment, pod := operandtest.Servers(2)
		for i := range 2 {
			one := pod.DeepCopy()
			one.Name, one.UID = fmt.Sprintf("fleet-server-%d", i), "1"
			one.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			s.pods = append(s.pods, one)
			ago(s, i, 2*time.Hour)
		}
		test.change(s)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server", CreationTimestamp: metav1.NewTime(s.made)}}
		s.HostCluster = operandtest.Host(t, deployment, account, s.pods[0], s.pods[1])
		var evicted []string
		s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
			SubResourceCreate: func(_ context.Context, _ client.Client, _ string, object client.Object, sub client.Object, _ ...client.SubResourceCreateOption) error {
				if *sub.(*policyv1.Eviction).DeleteOptions.Preconditions.UID == "1" && s.refusal == nil {
					evicted = append(evicted, object.GetName())
				}
				return s.refusal
			}})
		s.Applier = apply.New(s.Client, s.Live)
		pods, err := s.Objects.Pods(t.Context(), operand.ComponentServer)
		if err != nil {
			t.Fatal(err)
		}
		s.Deployment, s.Pods = deployment, pods
		rolling, v := s.Renew(t.Context())
		if (rolling != "") != (test.says != "") || !strings.HasPrefix(v.Message, rolling) {
			t.Errorf("%s: %q is being replaced, and %+v", test.reason, rolling, v)
		}
		if (!v.Complete()) != (test.says != "") || !v.Complete() && (v.Err != nil || !strings.Contains(v.Message, test.says)) {
			t.Errorf("%s: %+v", test.reason, v)
		}
		if got := strings.Join(evicted, " "); got != test.evicted || strings.Join(replaced, " ") != got {
			t.Errorf("%s: evicted %q, want %q", test.reason, got, test.evicted)
		}
	}
}
