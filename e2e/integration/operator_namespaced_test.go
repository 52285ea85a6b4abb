package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestOperatorForSomeNamespaces runs the operator with what it may do when it was
// installed for two namespaces. It must not try anything else, whatever its
// registries go through; elsewhere the host lets it do nothing.
func TestOperatorForSomeNamespaces(t *testing.T) {
	t.Parallel()
	host, audit := framework.StartAuditedHost(t, newest, framework.OperatorUser, "front-proxy-client")
	kubectl := framework.NewKubectl(t, newest, host.Kubeconfig("root", "system:masters"))
	framework.InstallCertManagerAPI(t, kubectl)
	one, two, other := newSite(t, host.Config), newSite(t, host.Config), newSite(t, host.Config)
	kubectl.Run("apply", "--server-side", "-k", framework.OperatorOverlay(t, "", one.namespace, two.namespace))
	kubectl.Established("crd/clusterregistries.operator.clusterregistry.io")
	framework.StartOperator(t, host, "--watch-namespaces="+one.namespace+","+two.namespace)

	other.apply("fleet", "{mode: Independent}")
	one.apply("fleet", "{mode: Independent, etcd: {replicas: 1}}")
	one.says("fleet", "EtcdReady", "False", "MembersNotReady")
	one.apply("team", "{mode: Independent}")
	one.ready("team")
	two.apply("fleet", "{mode: Aggregated, deletionPolicy: Delete}")
	// A bare host does not reach the servers.
	two.says("fleet", "APIServiceReady", "False", "NotAvailable")
	two.holds("fleet", "APIService/v1alpha1.clusterregistry.k8s.io")
	two.gone(two.deleted("fleet"))
	testNamespaceDeletion(t, two)
	one.gone(one.deleted("fleet"))
	if made := other.objects("fleet"); len(made) > 0 {
		t.Errorf("a registry of another namespace was looked after: %v", namesOf(made))
	}
	expectPermitted(t, audit)

	config, err := clientcmd.BuildConfigFromFlags("", host.Kubeconfig(framework.OperatorUser))
	if err != nil {
		t.Fatal(err)
	}
	operator := operatorClient(t, config)
	secret := &corev1.Secret{}
	if err := operator.Get(t.Context(), other.key("etcd"), secret); !apierrors.IsForbidden(err) {
		t.Errorf("the operator reads a Secret of another namespace: %v", err)
	}
	if err := operator.Get(t.Context(), one.key("etcd"), secret); err != nil {
		t.Errorf("the operator can't read a Secret that a registry names: %v", err)
	}
}
