package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// rate is how many requests clients send in a second.
const rate = 50

// rotation renews every certificate of a registry but its CAs while clients write: servers and
// etcd members show the new ones without a restart.
func rotation(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	pods := podsOf(t, e, registry)
	old := map[listener]string{}
	for _, l := range listeners(pods) {
		e.Eventually(fmt.Sprintf("pod %s to show its certificate at port %d", l.pod, l.port), func(ctx context.Context) (err error) {
			old[l], err = e.ServedSerial(ctx, l.pod, l.port)
			return err
		})
	}
	renewLeaves(t, e, registry)
	for _, l := range listeners(pods) {
		e.Eventually(fmt.Sprintf("pod %s to show its new certificate at port %d", l.pod, l.port), func(ctx context.Context) error {
			serial, err := e.ServedSerial(ctx, l.pod, l.port)
			if err != nil {
				return err
			}
			if serial == old[l] {
				return fmt.Errorf("it shows the old one, %s", serial)
			}
			return nil
		})
	}
	e.WaitReady(registry)
	for uid, pod := range podsOf(t, e, registry) {
		if before, is := pods[uid]; !is || restarts(pod) != restarts(before) {
			t.Errorf("pod %s was restarted or is another one", pod.Name)
		}
	}
}

// independent returns a registry with an endpoint of its own, at a port that the
// host chooses, and so many members of etcd. It does not exist yet.
func independent(e *framework.Env, members int32) *operatorv1alpha1.ClusterRegistry {
	registry := e.Sample("independent-nodeport.yaml")
	registry.Spec.Server.Service.NodePort = 0
	registry.Spec.Etcd.Replicas = members
	return registry
}

// podsOf returns a registry's pods, by UID.
func podsOf(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) map[types.UID]corev1.Pod {
	t.Helper()
	t.Helper()
	out := map[types.UID]corev1.Pod{}
	for _, pod := range e.Pods(registry) {
		out[pod.UID] = pod
	}
	return out
}

func restarts(pod corev1.Pod) (count int32) {
	for _, status := range pod.Status.ContainerStatuses {
		count += status.RestartCount
	}
	return count
}

// listener is where a pod shows a certificate.
type listener struct {
	pod  string
	port int
}

func listeners(pods map[types.UID]corev1.Pod) (out []listener) {
	for _, pod := range pods {
		if pod.Labels[operatorv1alpha1.LabelComponent] == "etcd" {
			out = append(out, listener{pod.Name, 2379}, listener{pod.Name, 2380})
			continue
		}
		out = append(out, listener{pod.Name, 6443})
	}
	return out
}

// renewLeaves does what "cmctl renew" does.
func renewLeaves(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	for _, certificate := range registry.Status.Certificates {
		if contract.IsCA(certificate.Name) {
			continue
		}
		c := &certmanagerv1.Certificate{}
		if err := e.Get(t.Context(), certificate.Name, c); err != nil {
			t.Fatal(err)
		}
		now := metav1.Now()
		c.Status.Conditions = append(c.Status.Conditions, certmanagerv1.CertificateCondition{
			Type: certmanagerv1.CertificateConditionIssuing, Status: cmmetav1.ConditionTrue, Reason: "ManuallyTriggered", Message: "renewed by a test", LastTransitionTime: &now, ObservedGeneration: c.Generation})
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": c.Status.Conditions}})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Client.Status().Patch(t.Context(), c, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
}
