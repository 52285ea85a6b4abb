package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/version"
)

// TestEmptiedInPlace empties the data directory of a member under its live pod and
// kills only its container, which kubelet starts again without init containers.
// The member does not start empty under its old ID, and the condition names it.
func TestEmptiedInPlace(t *testing.T) {
	e := framework.New(t).WithOperator()
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	registry := independent(e, 3)
	registry.Spec.Version = operatorv1alpha1.Version(releases[len(releases)-1].Version)
	e.Install(registry)
	e.WaitReady(registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)
	report := load.Stop()

	lost := registry.Status.Etcd.Members[1]
	var before, after corev1.Pod
	if err := e.Get(t.Context(), lost.Name, &before); err != nil {
		t.Fatal(err)
	}
	e.EmptyVolume(before.Spec.NodeName, "data-"+lost.Name)
	e.KillProcess("--name="+lost.Name, "--initial-cluster-token="+e.Namespace+"/"+registry.Name)
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonDataLost, "pod "+lost.Name+": container etcd exited with code 65", "has no data")
	if err := e.Get(t.Context(), lost.Name, &after); err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || len(after.Status.ContainerStatuses) != 1 || after.Status.ContainerStatuses[0].RestartCount == 0 {
		t.Errorf("the container was not started again in its pod: %+v, before %+v", after.Status, before.Status)
	}
	e.Compare(registry, report)
}

// TestDataLost empties the volume of a member of etcd. The member does not start
// empty, and says why; the others serve on. Then a person replaces it, as
// docs/how-to/replace-an-etcd-member.md tells.
func TestDataLost(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := independent(e, 3)
	e.Install(registry)
	e.WaitReady(registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)
	report := load.Stop()

	lost := registry.Status.Etcd.Members[1]
	var pod corev1.Pod
	if err := e.Get(t.Context(), lost.Name, &pod); err != nil {
		t.Fatal(err)
	}
	e.Node("stop", pod.Spec.NodeName)
	framework.Cluster(t, "node", "wipe", pod.Spec.NodeName)
	framework.Cluster(t, "node", "start", pod.Spec.NodeName)
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonDataLost, lost.Name, "has no data, but cluster "+registry.Status.Etcd.ClusterID)

	etcdctl := func(ctx context.Context, args ...string) (string, error) {
		return e.Etcdctl(ctx, registry.Status.Etcd.Members[0].Name, append([]string{"--write-out=json"}, args...)...)
	}
	if _, err := etcdctl(t.Context(), "member", "remove", lost.ID); err != nil {
		t.Fatal(err)
	}
	peer := fmt.Sprintf("https://%s.%s-etcd.%s.svc:2380", lost.Name, registry.Name, e.Namespace)
	var answer string
	e.Eventually("etcd to find its members connected", func(ctx context.Context) error {
		out, err := etcdctl(ctx, "member", "add", lost.Name, "--learner", "--peer-urls="+peer)
		if err != nil && !strings.Contains(err.Error(), "unhealthy cluster") {
			t.Fatal(err)
		}
		answer = out
		return err
	})
	var added struct {
		Member struct{ ID json.Number }
	}
	decoder := json.NewDecoder(strings.NewReader(answer))
	decoder.UseNumber()
	if err := decoder.Decode(&added); err != nil {
		t.Fatal(err)
	}
	var id uint64
	if _, err := fmt.Sscan(added.Member.ID.String(), &id); err != nil {
		t.Fatal(err)
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: registry.Name + "-etcd-identity"}}
	patch := fmt.Appendf(nil, `{"data":{"joining":%q,"member-id.%s":"%x"}}`, lost.Name, lost.Name, id)
	if err := e.Client.Patch(t.Context(), record, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	if err := e.Client.Delete(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the learner to catch up", func(ctx context.Context) error {
		_, err := etcdctl(ctx, "member", "promote", fmt.Sprintf("%x", id))
		return err
	})
	e.WaitReady(registry)
	e.Eventually("the operator to end the member's leave to start empty", func(ctx context.Context) error {
		if err := e.Get(ctx, record.Name, record); err != nil {
			return err
		}
		if joining := record.Data["joining"]; joining != "" {
			return fmt.Errorf("the record says that %s is joining", joining)
		}
		return nil
	})
	if got := registry.Status.Etcd.Members[1].ID; got != fmt.Sprintf("%x", id) || registry.Status.Etcd.Ready != "3/3" {
		t.Errorf("etcd is %+v, the new member should be %x", registry.Status.Etcd, id)
	}
	e.Compare(registry, report)
}
