package framework

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
)

// Sample returns the ClusterRegistry in a file of manifests/samples, for the
// test's namespace, without controllers and guarded fields: most tests are about clients of
// the registry, in releases that have none of these, too. It does not exist yet.
func (e *Env) Sample(file string) *operatorv1alpha1.ClusterRegistry {
	e.t.Helper()
	content, err := os.ReadFile(filepath.Join(Root(e.t), "manifests", "samples", file))
	if err != nil {
		e.t.Fatal(err)
	}
	registry := &operatorv1alpha1.ClusterRegistry{}
	if err := yaml.UnmarshalStrict(content, registry); err != nil {
		e.t.Fatalf("%s: %v", file, err)
	}
	registry.Namespace, registry.Spec.Controllers = e.Namespace, nil
	registry.Spec.Server.Authorization = nil
	return registry
}

// Install creates a registry. When the test ends it is deleted, and gone before
// its namespace is deleted.
func (e *Env) Install(registry *operatorv1alpha1.ClusterRegistry) {
	e.t.Helper()
	e.Create(registry)
	e.t.Cleanup(func() {
		e.dumpIfFailed()
		ctx := context.Background()
		if err := client.IgnoreNotFound(e.Client.Delete(ctx, registry)); err != nil {
			e.t.Errorf("delete ClusterRegistry %s: %v", registry.Name, err)
		}
		EventuallyAfter(e.t, "ClusterRegistry "+registry.Name+" to be gone", func(ctx context.Context) error { return e.registryGone(ctx, registry) })
	})
}

// Remove deletes a registry and waits until it is gone.
func (e *Env) Remove(registry *operatorv1alpha1.ClusterRegistry) {
	e.t.Helper()
	if err := e.Client.Delete(e.t.Context(), registry); err != nil {
		e.t.Fatalf("delete ClusterRegistry %s: %v", registry.Name, err)
	}
	e.WaitGone(registry)
}

// WaitGone waits until a registry is gone that was deleted.
func (e *Env) WaitGone(registry *operatorv1alpha1.ClusterRegistry) {
	e.t.Helper()
	e.Eventually("ClusterRegistry "+registry.Name+" to be gone", func(ctx context.Context) error { return e.registryGone(ctx, registry) })
}

func (e *Env) registryGone(ctx context.Context, registry *operatorv1alpha1.ClusterRegistry) error {
	left := &operatorv1alpha1.ClusterRegistry{}
	err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), left)
	if apierrors.IsNotFound(err) || err == nil && left.UID != registry.UID {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("it is still there\n%s", conditions(left))
}

// Change edits a registry's spec as it is now.
func (e *Env) Change(registry *operatorv1alpha1.ClusterRegistry, change func(*operatorv1alpha1.ClusterRegistrySpec)) {
	e.t.Helper()
	e.Update(registry, func() { change(&registry.Spec) })
}

// WaitReady waits until a registry is as its spec says and serves clients, and reads it.
func (e *Env) WaitReady(registry *operatorv1alpha1.ClusterRegistry) {
	e.t.Helper()
	e.Eventually(fmt.Sprintf("ClusterRegistry %s to be ready and available", registry.Name), func(ctx context.Context) error {
		if err := e.read(ctx, registry); err != nil {
			return err
		}
		if err := hasCondition(registry, operatorv1alpha1.ConditionReady, metav1.ConditionTrue, operatorv1alpha1.ReasonReady); err != nil {
			return err
		}
		return hasCondition(registry, operatorv1alpha1.ConditionAvailable, metav1.ConditionTrue, operatorv1alpha1.ReasonAvailable)
	})
}

// WaitCondition waits until a condition of a registry is about its spec as it is
// now, has a status and a reason and tells the given texts; and reads the registry.
func (e *Env) WaitCondition(registry *operatorv1alpha1.ClusterRegistry, kind string, status metav1.ConditionStatus, reason string, texts ...string) {
	e.t.Helper()
	what := fmt.Sprintf("ClusterRegistry %s to be %s=%s (%s)", registry.Name, kind, status, reason)
	e.Eventually(what, func(ctx context.Context) error {
		if err := e.read(ctx, registry); err != nil {
			return err
		}
		return hasCondition(registry, kind, status, reason, texts...)
	})
}

// read reads a registry again, which is to be of a release that the test has asked for.
func (e *Env) read(ctx context.Context, registry *operatorv1alpha1.ClusterRegistry) error {
	if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
		return err
	}
	if err := CheckRelease(Needs(e.t), string(registry.Spec.Version)); err != nil {
		e.t.Fatal(err) // someone else wrote it, as a command of a guide does
	}
	return nil
}

// hasCondition returns nil when a condition is as WaitCondition waits for it.
func hasCondition(registry *operatorv1alpha1.ClusterRegistry, kind string, status metav1.ConditionStatus, reason string, texts ...string) error {
	condition := meta.FindStatusCondition(registry.Status.Conditions, kind)
	if condition == nil || condition.ObservedGeneration != registry.Generation || condition.Status != status || condition.Reason != reason {
		return fmt.Errorf("its conditions are\n%s", conditions(registry))
	}
	for _, text := range texts {
		if !strings.Contains(condition.Message, text) {
			return fmt.Errorf("%q is missing in its conditions\n%s", text, conditions(registry))
		}
	}
	return nil
}

// conditions tells a registry's state line by line.
func conditions(registry *operatorv1alpha1.ClusterRegistry) string {
	var out strings.Builder
	fmt.Fprintf(&out, "  generation %d, observed %d, deleted: %t", registry.Generation, registry.Status.ObservedGeneration, registry.DeletionTimestamp != nil)
	for _, c := range registry.Status.Conditions {
		fmt.Fprintf(&out, "\n  %s %s=%s %s: %s", c.LastTransitionTime.Format("15:04:05"), c.Type, c.Status, c.Reason, c.Message)
	}
	return out.String()
}

// Kubeconfig writes the kubeconfig that an independent registry's status names
// to a file, as it is, and returns its path.
func (e *Env) Kubeconfig(registry *operatorv1alpha1.ClusterRegistry) string {
	e.t.Helper()
	if registry.Status.KubeconfigSecretRef == nil {
		e.t.Fatalf("the status of ClusterRegistry %s names no kubeconfig", registry.Name)
	}
	var secret corev1.Secret
	if err := e.Get(e.t.Context(), registry.Status.KubeconfigSecretRef.Name, &secret); err != nil {
		e.t.Fatal(err)
	}
	if service := registry.Spec.Server.Service; service != nil && service.Type == corev1.ServiceTypeNodePort {
		e.waitOpen(registry.Status.Endpoint.URL)
	}
	return writeFile(e.t, "kubeconfig", secret.Data["kubeconfig"])
}

// waitOpen waits until an address takes connections: a node opens a port some
// moments after its Service has servers that are ready.
func (e *Env) waitOpen(address string) {
	e.t.Helper()
	e.Eventually(address+" to take connections", func(ctx context.Context) error {
		target, err := url.Parse(address)
		if err != nil {
			return err
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", target.Host)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// RegistryConfig returns how clients of a registry connect: with its kubeconfig
// when it is independent, as the host's clients do otherwise.
func (e *Env) RegistryConfig(registry *operatorv1alpha1.ClusterRegistry) *rest.Config {
	e.t.Helper()
	if registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		return e.Config
	}
	config, err := clientcmd.BuildConfigFromFlags("", e.Kubeconfig(registry))
	if err != nil {
		e.t.Fatal(err)
	}
	return config
}

// Unharmed fails the test when a request of a load has failed, or was kept waiting, and when
// what a registry stores is not what was acknowledged: what is done to a registry is not to be
// noticed by those who use it.
func (e *Env) Unharmed(registry *operatorv1alpha1.ClusterRegistry, report Report) {
	e.t.Helper()
	for _, failure := range report.Failed {
		e.t.Error(failure)
	}
	if err := report.Stalled(); err != nil {
		e.t.Error(err)
	}
	e.Compare(registry, report)
}

// Compare fails the test when what a registry stores is not what a load on it was
// acknowledged.
func (e *Env) Compare(registry *operatorv1alpha1.ClusterRegistry, report Report) {
	e.t.Helper()
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		e.t.Fatal(err)
	}
	var list *v1alpha1.ClusterList
	e.Eventually("the clusters of a load to be listed", func(ctx context.Context) (err error) {
		list, err = clients.ClusterregistryV1alpha1().Clusters().List(ctx, metav1.ListOptions{LabelSelector: "load=yes"})
		return err
	})
	if err := report.Compare(list.Items); err != nil {
		e.t.Error(err)
	}
}
