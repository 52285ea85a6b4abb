package integration

import (
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

func TestServerRefusesMissingPermissions(t *testing.T) {
	t.Parallel()
	host := framework.StartHost(t, newest, "front-proxy-client")
	flags := append(host.ServerFlags(), "--etcd-servers="+host.Etcd)
	says := func(want string, flags ...string) {
		t.Helper()
		if said := framework.StartRegistry(t, flags...).WaitRefused(t); !strings.Contains(said, want) {
			t.Errorf("%q is missing in: %s", want, said)
		}
	}
	says("bind the server's ServiceAccount to the Role extension-apiserver-authentication-reader", flags...)
	framework.Create(t, framework.HostClient(t, host.Config), framework.Delegation()...)
	says(`\"list\" on \"validatingadmissionpolicies\" in API group \"admissionregistration.k8s.io\"`, flags...)
	framework.StartRegistry(t, append(flags, "--tolerate-missing-admission-permissions")...).WaitReady(t)
}

func TestServerRefusesAnyFrontProxy(t *testing.T) {
	t.Parallel()
	host := framework.StartHost(t, newest)
	framework.Create(t, framework.HostClient(t, host.Config), append(framework.Delegation(), framework.AdmissionReads()...)...)
	said := framework.StartRegistry(t, append(host.ServerFlags(), "--etcd-servers="+host.Etcd)...).WaitRefused(t)
	if !strings.Contains(said, "requestheader-allowed-names is empty") || !strings.Contains(said, "--requestheader-allowed-names=NAME") {
		t.Errorf("it said: %s", said)
	}
}
