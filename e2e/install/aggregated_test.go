package install

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/e2e/framework"
)

// newest returns the newest kubectl for the holder of a kubeconfig.
func newest(t *testing.T, kubeconfig string) *framework.Kubectl {
	t.Helper()
	return framework.NewKubectl(t, "v1.37.1", kubeconfig)
}

// TestAggregated installs the highly available sample and uses it as a part of
// the host's API, edits it while clients write, damages it, and deletes it with its
// namespace: nothing of it holds the host up.
func TestAggregated(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := e.Sample("aggregated-ha.yaml")
	e.Install(registry)
	kubectl := newest(t, framework.ClusterKubeconfig(t))
	kubectl.Run("wait", "-n", e.Namespace, "--for=condition=Ready", "creg/fleet", "--timeout=10m")
	e.WaitReady(registry)
	t.Run("observed", func(t *testing.T) {
		checkStatus(t, e, registry)
		checkObjects(t, e, registry)
		checkEvents(t, e, registry, "VersionSupported", "CertificatesReady", "EtcdReady", "ServerReady", "APIServiceReady", "Ready")
		const endpoint = "https://kubernetes.default.svc/apis/clusterregistry.k8s.io"
		if registry.Status.Endpoint == nil || registry.Status.Endpoint.URL != endpoint || len(registry.Status.Endpoint.CABundle) == 0 {
			t.Errorf("status.endpoint is %+v", registry.Status.Endpoint)
		}
		line := regexp.MustCompile(`^fleet Aggregated ` + string(registry.Spec.Version) + ` True True 3/3 \S+ ` + endpoint + ` the registry is ready at ` + endpoint + `$`)
		// A busy computer may have it not Ready for a moment.
		e.Eventually("kubectl to show the registry as it is", func(context.Context) error {
			out, err := kubectl.Try("get", "creg", "fleet", "-n", e.Namespace, "-o", "wide", "--no-headers")
			if shown := strings.Join(strings.Fields(out), " "); err == nil && !line.MatchString(shown) {
				err = fmt.Errorf("it shows %s", shown)
			}
			return err
		})
	})
	t.Run("controllers", func(t *testing.T) { controllers(t, e.In(t), registry) })
	t.Run("drift", func(t *testing.T) { drift(e.In(t), registry) })
	t.Run("paused", func(t *testing.T) { paused(t, e.In(t), registry) })
	t.Run("edited", func(t *testing.T) { edited(t, e.In(t), registry) })
	t.Run("CA of the servers deleted", func(t *testing.T) { authorityDeleted(t, e.In(t), registry) })
	t.Run("deleted with its namespace", func(t *testing.T) {
		e := e.In(t)
		if err := e.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}}); err != nil {
			t.Fatal(err)
		}
		e.WaitGone(registry)
		checkLeft(t, e)
	})
}
