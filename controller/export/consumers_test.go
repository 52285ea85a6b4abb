package export

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

// engaged is what the provider of multicluster-runtime v0.24 has connected to: a profile that
// it can't use leaves a client of before as it is, and one that is gone ends it.
type engaged struct {
	config *access.Config
	server string
}

func (e *engaged) reconcile(profile *v1alpha1.ClusterProfile) {
	if profile == nil {
		e.server = ""
		return
	}
	if !meta.IsStatusConditionTrue(profile.Status.Conditions, v1alpha1.ClusterConditionControlPlaneHealthy) {
		return
	}
	if out, err := e.config.BuildConfigFromCP(profile); err == nil {
		e.server = out.Host
	}
}

// TestMistakenClustersAreCutOff expects that consumers that have connected to a cluster drop it
// once another cluster answers there, and come back when it is the right one.
func TestMistakenClustersAreCutOff(t *testing.T) {
	mistaken := func(c *v1beta1.Cluster) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionFalse})
	}
	consumer := engaged{config: access.New([]access.Provider{{Name: "secretreader", ExecConfig: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "plugin", ProvideClusterInfo: true}}})}
	b := newBench(t, "")
	fleet := []*v1beta1.Cluster{member("east"), member("west"), member("north")}
	b.put(fleet...)
	b.pass(time.Minute)
	consumer.reconcile(b.profile("east"))
	if consumer.server != "https://east.example.com:6443" {
		t.Fatalf("it is connected to %q", consumer.server)
	}
	b.writesOf()

	// All at once: what is said of each is no sign of a registry that was emptied. The registry
	// need not answer either.
	b.refusal = errors.New("away")
	b.put(member("east", mistaken), member("west", mistaken), member("north", mistaken))
	consumer.reconcile(b.profile("east"))
	if consumer.server != "" {
		t.Errorf("it is still connected to %s", consumer.server)
	}
	expectWrites(t, b, "other clusters answer", "delete east", "delete west", "delete north")
	expectState(t, b, "other clusters answer", contract.FunctionRunning, `(IdentityVerified is False): "east", "north", "west"`)
	b.pass(time.Hour)
	expectWrites(t, b, "they still do")

	// Identities that are found wrong and right all the time.
	b.refusal = nil
	for range 300 {
		b.put(member("east"))
		b.pass(time.Second)
		b.put(member("east", mistaken))
		b.pass(time.Second)
	}
	if n := len(b.writesOf()); n < 40 || n > 4*(600/30+1) {
		t.Errorf("%d writes in ten minutes", n)
	}
	b.put(fleet...)
	b.pass(time.Minute)
	consumer.reconcile(b.profile("east"))
	if consumer.server == "" || b.profile("west") == nil {
		t.Error("the right clusters answer, and are not published")
	}
	expectState(t, b, "the right clusters answer", contract.FunctionRunning, "")
}

// TestMistakenClusterThatIsHeldBack expects that a profile that waits for someone's finalizer
// has no providers while another cluster answers.
func TestMistakenClusterThatIsHeldBack(t *testing.T) {
	b := newBench(t, "")
	b.put(member("east"))
	b.host.edit("east", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"argoproj.io/cluster-profile-finalizer"}) })
	b.pass(time.Minute)
	b.writesOf()
	b.put(member("east", func(c *v1beta1.Cluster) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionFalse})
	}))
	expectWrites(t, b, "it is held back", "delete east", "apply status east")
	if p := b.profile("east"); p == nil || p.DeletionTimestamp == nil || len(p.Status.AccessProviders) != 0 {
		t.Errorf("%+v", p)
	}
	b.host.edit("east", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	b.pass(time.Minute)
	expectWrites(t, b, "it is let go")
	b.put(member("east"))
	b.pass(time.Minute)
	expectWrites(t, b, "the right cluster answers", "create east", "apply main east", "apply status east")
}
