package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterregistryv1beta1 "github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	clusters "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// controllers has the registry registered in itself and its clusters probed: the host
// cluster turns Available, and a cluster whose name is in no DNS Available=False. Then it
// turns the functions off again, and nothing of the controller is left, neither in the
// host cluster nor of what it has reported.
func controllers(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	const host, lost = "the-host", "lost"
	before := registry.Spec.Controllers.DeepCopy()
	servers := registry.Status.Server
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Controllers = &operatorv1alpha1.Controllers{Health: &operatorv1alpha1.HealthController{PeriodSeconds: 5}, RegisterHost: &operatorv1alpha1.RegisterHost{Name: host}}
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionControllerReady, metav1.ConditionTrue, operatorv1alpha1.ReasonReady, "health and registerHost run")
	e.WaitReady(registry)
	if registry.Status.Server != servers {
		t.Errorf("the servers were %+v, and are %+v", servers, registry.Status.Server)
	}
	client, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		t.Fatal(err)
	}
	api := client.ClusterregistryV1beta1().Clusters()
	_, err = api.Create(t.Context(), &clusterregistryv1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: lost}, Spec: clusterregistryv1beta1.ClusterSpec{
		Endpoints: []clusterregistryv1beta1.Endpoint{{Name: "main", URL: "https://" + lost + ".invalid:6443"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range []string{host, lost} {
			tried := false
			framework.EventuallyAfter(t, "cluster "+name+" to be deleted", func(ctx context.Context) error {
				err := api.Delete(ctx, name, metav1.DeleteOptions{})
				if apierrors.IsNotFound(err) && tried {
					return nil // it was there, and the answer to an earlier try is lost
				}
				tried = !apierrors.IsNotFound(err)
				return err
			})
		}
	})
	version, err := e.Kubernetes.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	seen := awaitCluster(t, e, api, host, metav1.ConditionTrue, "Available")
	if seen.Spec.ID == "" || seen.Status.Version.Kubernetes != version.GitVersion {
		t.Errorf("the host cluster %s is registered with the id %q and version %q", version.GitVersion, seen.Spec.ID, seen.Status.Version.Kubernetes)
	}
	awaitCluster(t, e, api, lost, metav1.ConditionFalse, "DNSFailed")

	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Controllers = nil })
	e.Eventually("all of the controller to be gone", func(ctx context.Context) error {
		objects, err := e.Objects(ctx)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if strings.Contains(o.Name, registry.Name+contract.ControllerSuffix) || o.Labels[operatorv1alpha1.LabelComponent] == "controller" {
				return fmt.Errorf("%s is there", framework.Name(o))
			}
		}
		return nil
	})
	for _, name := range []string{host, lost} {
		cluster, err := api.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if status := cluster.Status; status != nil && (len(status.Reporters) > 0 || len(status.Conditions) > 0 || status.Version.Kubernetes != "") {
			t.Errorf("without a controller, the status of %s is %+v", name, status)
		}
	}
	e.WaitReady(registry)
	if condition := meta.FindStatusCondition(registry.Status.Conditions, operatorv1alpha1.ConditionControllerReady); condition != nil {
		t.Errorf("without a function, there is %+v", condition)
	}
	if before != nil {
		e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Controllers = before })
		e.WaitReady(registry)
	}
}

// awaitCluster waits until a cluster is Available, or not, for a reason, and returns it.
func awaitCluster(t *testing.T, e *framework.Env, api clusters.ClusterInterface, name string, status metav1.ConditionStatus, reason string) *clusterregistryv1beta1.Cluster {
	t.Helper()
	var seen *clusterregistryv1beta1.Cluster
	e.In(t).Eventually(fmt.Sprintf("cluster %s to be Available=%s (%s)", name, status, reason), func(ctx context.Context) error {
		cluster, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cluster.Status == nil {
			return errors.New("it has no status")
		}
		condition := meta.FindStatusCondition(cluster.Status.Conditions, clusterregistryv1beta1.ConditionAvailable)
		if condition == nil || condition.Status != status || condition.Reason != reason {
			return fmt.Errorf("its conditions are %+v", cluster.Status.Conditions)
		}
		seen = cluster
		return nil
	})
	return seen
}
