package transfer

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// TestOverwriteConflicts expects that an import with --overwrite takes conflicts with
// controllers, waits for an id, and does not write over what no one has compared.
func TestOverwriteConflicts(t *testing.T) {
	clusters := v1beta1.SchemeGroupVersion.WithResource("clusters")
	const input = `{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: east}, spec: {id: one, displayName: ours}, status: {version: {kubernetes: v1.36.0}}}`
	const changed = `it was changed meanwhile, and stays as it is now: see \"kubectl get crc east -o yaml\", then run this again`
	probed := func(c *v1beta1.Cluster) { c.Status.Version.Kubernetes = "v1.37.2" }
	for _, test := range []struct {
		reason, subresource string
		times               int
		// change is what someone else does, nil for nothing: the conflict has another reason.
		change  func(*v1beta1.Cluster)
		result  string
		message string
	}{
		{reason: "a controller that reports", times: 3, change: probed, result: updated},
		{reason: "an id that another request holds", times: 3, result: updated},
		{reason: "an id that another request keeps", times: 1000, result: refused, message: "another request is giving its spec.id to a cluster"},
		{reason: "another spec", times: 1, change: func(c *v1beta1.Cluster) { c.Spec.DisplayName = "theirs" }, result: refused, message: changed},
		{reason: "another annotation", times: 1, change: func(c *v1beta1.Cluster) { c.Annotations = map[string]string{"a": "b"} }, result: refused, message: changed},
		{reason: "another object", times: 1, change: func(c *v1beta1.Cluster) { c.UID = "other" }, result: refused, message: changed},
		{reason: "a controller that reports before the status is written", subresource: "status", times: 3, change: probed, result: updated},
		{reason: "another object before the status is written", subresource: "status", times: 1, change: func(c *v1beta1.Cluster) { c.UID = "other" }, result: refused, message: "the cluster was entered, and its status was not: it was changed meanwhile"},
		{reason: "a status that can't be written", subresource: "status", times: 1000, change: func(c *v1beta1.Cluster) { c.ResourceVersion = "5" }, result: refused, message: "the cluster was entered, and its status was not: Operation cannot be fulfilled"},
	} {
		env, calls := commandtest.New(t, some("east", "one")), 0
		env.Clusters.PrependReactor("update", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetSubresource() != test.subresource || calls == test.times {
				return false, nil, nil
			}
			calls++
			if test.change != nil {
				found, err := env.Clusters.Tracker().Get(clusters, "", "east")
				if err != nil {
					return true, nil, err
				}
				now := found.DeepCopyObject().(*v1beta1.Cluster)
				now.ResourceVersion += "1"
				if test.change(now); env.Clusters.Tracker().Update(clusters, now, "") != nil {
					return true, nil, errors.New("it is not there")
				}
			}
			return true, nil, apierrors.NewConflict(clusters.GroupResource(), "east", errors.New("another request is giving its spec.id to a cluster"))
		})
		env.Stdin.WriteString(input)
		i := &importer{env: env.Env, pause: time.Millisecond, held: 20 * time.Millisecond}
		text, code := env.Run(t, i.command(), "-f", "-", "-o", "json", "--overwrite", "--with-status")
		if (code != 0) != (test.result == refused) || !strings.Contains(env.Stdout.String(), `"result": "`+test.result+`"`) || !strings.Contains(env.Stdout.String(), test.message) {
			t.Errorf("%s: %d, %s\n%s", test.reason, code, text, env.Stdout)
		}
		now, err := env.Clusters.ClusterregistryV1beta1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
		if err != nil || test.result == updated && (now.Spec.DisplayName != "ours" || now.Status.Version.Kubernetes != "v1.36.0") || test.message == changed && now.Spec.DisplayName == "ours" {
			t.Errorf("%s: it is %+v, %v", test.reason, now, err)
		}
	}
}

// TestImportOfTheDeleted expects that what was deleted between the read and the write is
// not taken for an error of the registry.
func TestImportOfTheDeleted(t *testing.T) {
	clusters := v1beta1.SchemeGroupVersion.WithResource("clusters")
	env := commandtest.New(t, some("east", "one"))
	env.Clusters.PrependReactor("update", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := env.Clusters.Tracker().Delete(clusters, "", "east"); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewConflict(clusters.GroupResource(), "east", errors.New("the object has been modified"))
	})
	env.Stdin.WriteString(`{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: east}, spec: {id: one}}`)
	if text, code := env.Run(t, NewImport(env.Env), "-f", "-", "-o", "json", "--overwrite"); code != 4 || !strings.Contains(env.Stdout.String(), "it was changed meanwhile") {
		t.Errorf("%d, %s\n%s", code, text, env.Stdout)
	}
}
