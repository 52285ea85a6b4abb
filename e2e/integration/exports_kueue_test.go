package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// kueues is the namespace of Kueue, in the host cluster: what docs/how-to/integrations/kueue.md says
// is done in it.
type kueues struct {
	*hub
	kubectl *framework.Kubectl
	// page is what the guide says, kubeconfig an administrator's.
	page, kubeconfig string
	// export is what the spec of the registry has.
	export string
}

func newKueues(h *hub, kubectl *framework.Kubectl, kubeconfig string) *kueues {
	h.t.Helper()
	page, err := os.ReadFile(filepath.Join(framework.Root(h.t), "docs", "how-to", "integrations", "kueue.md"))
	h.must(err)
	h.must(h.Create(h.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kueue-system", Labels: map[string]string{registryMark: "default"}}}))
	h.permit("kueue-system", toSelect...)
	k := &kueues{hub: h, kubectl: kubectl, page: string(page), kubeconfig: kubeconfig}
	k.export = k.cut("exports: [", "]\n---")
	return k
}

// cut returns what the guide has between two texts.
func (k *kueues) cut(after, before string) string {
	k.t.Helper()
	_, rest, is := strings.Cut(k.page, after)
	out, _, ends := strings.Cut(rest, before)
	if !is || !ends {
		k.t.Fatalf("the guide has nothing between %q and %q", after, before)
	}
	return out
}

// testNamed has the guide's selection put the cheapest worker first, and its commands name them to
// Kueue. The names are such that YAML takes them for something else. Then the first one leaves.
func (k *kueues) testNamed() {
	k.t.Helper()
	for cost, name := range []string{"null", "1e3", "worker"} {
		k.enter(name, "lead", func(c *v1beta1.Cluster) { c.Labels["kueue"] = "worker" })
		status := apply.ClusterStatus().WithProperties(apply.Property().WithName("cost").WithValue(fmt.Sprint(cost)))
		_, err := k.clusters.ApplyStatus(k.t.Context(), apply.Cluster(name).WithStatus(status), metav1.ApplyOptions{FieldManager: "agent", Force: true})
		k.must(err)
	}
	k.enter("idle", "lead")
	selection := strings.ReplaceAll(k.cut("providers: [secretreader]}]\n---\n", "END\n"), "{name: fleet, namespace: registries}", "{name: hub, namespace: default}")
	k.kubectl.Stdin(selection).Run("create", "-f", "-")
	for _, name := range []string{"null", "1e3", "worker"} {
		k.await("kueue-system", name, "published", whole)
	}
	framework.Eventually(k.t, "the workers to be in their order", func(context.Context) error {
		got, err := k.kubectl.Try("get", "csel", "workers", "--namespace=kueue-system", "--output=jsonpath={.status.decisions[*].clusterName}")
		if err == nil && got != "null 1e3 worker" {
			err = fmt.Errorf("they are %q", got)
		}
		return err
	})
	k.name()
	k.expectNamed("null", "1e3", "worker")
	k.remove("null")
}

// testWorkerLeft expects that Kueue has lost that worker by its profile: that its MultiKueueCluster stays is
// what has Kueue dispatch the jobs again. Then the selection is gone, and Kueue keeps what it has.
func (k *kueues) testWorkerLeft() {
	k.t.Helper()
	k.awaitGone("kueue-system", "null")
	k.must(k.Get(k.t.Context(), client.ObjectKey{Name: "null"}, &kueue.MultiKueueCluster{}))
	k.name()
	k.expectNamed("1e3", "worker")
	k.must(k.Delete(k.t.Context(), &kueue.MultiKueueCluster{ObjectMeta: metav1.ObjectMeta{Name: "null"}}))

	k.kubectl.Run("delete", "csel", "workers", "--namespace=kueue-system")
	k.name()
	k.expectNamed("1e3", "worker")

	most := make([]string, 20)
	for i := range most {
		most[i] = fmt.Sprint("w", i)
	}
	for _, clusters := range [][]string{most, append(most, "one-more")} {
		err := k.Create(k.t.Context(), &kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("of-", len(clusters))}, Spec: kueue.MultiKueueConfigSpec{Clusters: clusters}})
		if apierrors.IsInvalid(err) != (len(clusters) > 20) {
			k.t.Errorf("a MultiKueueConfig of %d workers: %v", len(clusters), err)
		}
	}
}

// name types the commands of the guide that name the workers to Kueue.
func (k *kueues) name() {
	k.t.Helper()
	programs := filepath.Dir(framework.Program(k.t, "kubernetes", newest, "kubectl"))
	cmd := exec.CommandContext(k.t.Context(), "bash", "-c", "workers="+k.cut("```sh\nworkers=", "```")) //nolint:gosec // the guide's
	cmd.Env = append(os.Environ(), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+k.t.TempDir(), "KUBECONFIG="+k.kubeconfig)
	out, err := cmd.CombinedOutput()
	k.t.Logf("%s\n%v", out, err)
}

// expectNamed expects that Kueue dispatches jobs to these clusters, in this order, and finds the
// profile of each. Its API server has taken what is decoded here by Kueue's own types.
func (k *kueues) expectNamed(want ...string) {
	t := k.t
	t.Helper()
	config := &kueue.MultiKueueConfig{}
	k.strictly("MultiKueueConfig", "workers", config)
	if !slices.Equal(config.Spec.Clusters, want) {
		t.Errorf("Kueue dispatches to %q, want %q", config.Spec.Clusters, want)
	}
	plugins := access.New([]access.Provider{{Name: "secretreader", ExecConfig: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "secretreader", ProvideClusterInfo: true}}})
	for _, name := range config.Spec.Clusters {
		cluster, profile := &kueue.MultiKueueCluster{}, &v1alpha1.ClusterProfile{}
		k.strictly("MultiKueueCluster", name, cluster)
		if cluster.Spec.ClusterSource.KubeConfig != nil || cluster.Spec.ClusterSource.ClusterProfileRef == nil {
			t.Fatalf("%s does not name a profile: %+v", name, cluster.Spec)
		}
		k.must(k.Get(t.Context(), client.ObjectKey{Namespace: "kueue-system", Name: cluster.Spec.ClusterSource.ClusterProfileRef.Name}, profile))
		if built, err := plugins.BuildConfigFromCP(profile); err != nil || built.Host != k.at+"/"+name {
			t.Errorf("Kueue connects to %s by %+v: %v", name, built, err)
		}
	}
}

// strictly reads an object of the whole host cluster by Kueue's type, without a field that it does
// not know.
func (k *kueues) strictly(kind, name string, into any) {
	k.t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind(kind))
	k.must(k.Get(k.t.Context(), client.ObjectKey{Name: name}, object))
	content, err := json.Marshal(object)
	k.must(err)
	decoder := json.NewDecoder(strings.NewReader(string(content)))
	decoder.DisallowUnknownFields()
	k.must(decoder.Decode(into))
}
