package install

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/version"
)

// releaseOf returns the release that a registry's spec names.
func releaseOf(t *testing.T, registry *operatorv1alpha1.ClusterRegistry) version.Release {
	t.Helper()
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	release, err := version.Find(releases, string(registry.Spec.Version))
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// checkStatus compares what a ready registry's status says with what runs.
func checkStatus(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	release := releaseOf(t, registry)
	host, err := e.Kubernetes.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	status := registry.Status
	equal := func(what, got, want string) {
		if got != want {
			t.Errorf("status.%s is %q, not %q", what, got, want)
		}
	}
	equal("version", status.Version, release.Version)
	equal("etcdVersion", status.EtcdVersion, release.Etcd)
	equal("hostVersion", status.HostVersion, host.GitVersion)
	replicas := registry.Spec.Server.Replicas
	equal("server", fmt.Sprint(status.Server), fmt.Sprint(operatorv1alpha1.ServerStatus{Replicas: replicas, ReadyReplicas: replicas, UpdatedReplicas: replicas}))
	equal("etcd.ready", status.Etcd.Ready, fmt.Sprintf("%d/%[1]d", registry.Spec.Etcd.Replicas))
	cluster, members := etcdIdentity(t, e, registry)
	equal("etcd.clusterID", status.Etcd.ClusterID, cluster)
	for _, member := range status.Etcd.Members {
		equal("etcd.members."+member.Name, fmt.Sprint(member.ID, member.Version, member.Ready), fmt.Sprint(members[member.Name], release.Etcd, true))
	}
	if len(status.Etcd.Members) != len(members) {
		t.Errorf("status.etcd.members are %v, etcd has %v", status.Etcd.Members, members)
	}
	if len(status.History) != 1 || status.History[0].Version != release.Version || status.History[0].State != operatorv1alpha1.TransitionCompleted || status.History[0].CompletionTime == nil {
		t.Errorf("status.history is %+v", status.History)
	}
	if !meta.IsStatusConditionTrue(status.Conditions, operatorv1alpha1.ConditionAvailable) || !meta.IsStatusConditionTrue(status.Conditions, operatorv1alpha1.ConditionReady) {
		t.Errorf("it is ready, and its conditions are %+v", status.Conditions)
	}
	checkCertificates(t, e, status.Certificates)
}

func checkCertificates(t *testing.T, e *framework.Env, certificates []operatorv1alpha1.CertificateStatus) {
	t.Helper()
	if len(certificates) == 0 {
		t.Error("the status tells of no certificate")
	}
	for _, c := range certificates {
		if end := leaf(t, e, c.Name).NotAfter; c.NotAfter == nil || !c.NotAfter.Time.Equal(end) || c.RenewalTime == nil || !c.RenewalTime.Time.Before(end) {
			t.Errorf("certificate %s ends on %s; its status is %+v", c.Name, end.Format(time.RFC3339), c)
		}
	}
}

// leaf returns the certificate in a Secret.
func leaf(t *testing.T, e *framework.Env, name string) *x509.Certificate {
	t.Helper()
	var secret corev1.Secret
	if err := e.Get(t.Context(), name, &secret); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	if block == nil {
		t.Fatalf("Secret %s holds no certificate", name)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// checkObjects looks at every object of a registry: its labels, its pods' images.
func checkObjects(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	var objects []metav1.PartialObjectMetadata
	e.Eventually("the host to list all objects", func(ctx context.Context) (err error) {
		objects, err = e.Objects(ctx)
		return err
	})
	var names []string
	for _, o := range objects {
		names = append(names, framework.Name(o))
		for label, want := range map[string]string{
			"app.kubernetes.io/name":       "clusterregistry",
			"app.kubernetes.io/instance":   registry.Name,
			"app.kubernetes.io/part-of":    "clusterregistry",
			"app.kubernetes.io/managed-by": "clusterregistry-operator",
		} {
			if o.Labels[label] != want {
				t.Errorf("the label %s of %s is %q, not %q", label, framework.Name(o), o.Labels[label], want)
			}
		}
		if o.Labels["app.kubernetes.io/component"] == "" {
			t.Errorf("%s has no label of its component", framework.Name(o))
		}
	}
	for _, reference := range registry.Status.Inventory {
		if !slices.Contains(names, reference.String()) {
			t.Errorf("%s is in the inventory, but not there, or without labels", reference)
		}
	}
	checkImages(t, e)
}

// checkImages looks whether all images come from where the operator was told.
func checkImages(t *testing.T, e *framework.Env) {
	t.Helper()
	repository, _, _ := strings.Cut(framework.FindImage(t, "etcd").Reference, "etcd:")
	var pods corev1.PodList
	if err := e.Client.List(t.Context(), &pods, client.InNamespace(e.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if !strings.HasPrefix(container.Image, repository) {
				t.Errorf("pod %s runs %s, which is not of %s", pod.Name, container.Image, repository)
			}
		}
	}
}

// checkEvents looks whether events tell how a registry was installed.
func checkEvents(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, parts ...string) {
	t.Helper()
	for _, part := range parts {
		e.Eventually("an event to tell that "+part+" is True", func(ctx context.Context) error {
			events, err := e.Kubernetes.CoreV1().Events(e.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(registry.UID)})
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(events.Items, func(event corev1.Event) bool { return strings.HasPrefix(event.Message, part+" is True: ") }) {
				return fmt.Errorf("none of %d does", len(events.Items))
			}
			return nil
		})
	}
}

// etcdMessage returns what the condition of a registry's etcd says.
func etcdMessage(registry *operatorv1alpha1.ClusterRegistry) string {
	if condition := meta.FindStatusCondition(registry.Status.Conditions, operatorv1alpha1.ConditionEtcdReady); condition != nil {
		return condition.Message
	}
	return ""
}
