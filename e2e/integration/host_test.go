package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/e2e/framework"
)

// hosts are the ends of the supported range, or, for a quick look, the newer end
// alone.
var hosts = func() []string {
	if framework.Full() {
		return []string{"v1.34.4", newest}
	}
	return []string{newest}
}()

const newest = "v1.37.1"

// testHostIsReal makes sure that a host of this package's tests is the version that it
// claims to be, and runs admission as a cluster does.
func testHostIsReal(t *testing.T, host *framework.Host, version string) {
	client := clientset(t, host.Config)
	got, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got.GitVersion != version {
		t.Errorf("/version says %s", got.GitVersion)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}
	_, err = client.CoreV1().Pods(ns.Name).Create(t.Context(), pod, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a pod that isn't restricted gave %v", err)
	}
}
