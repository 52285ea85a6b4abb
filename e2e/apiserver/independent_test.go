package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/session"
)

// TestIndependent uses a registry that has no part in its host's API, from
// outside of the cluster, and restarts its servers while clients write.
func TestIndependent(t *testing.T) {
	e := framework.New(t)
	t.Cleanup(func() { stopServers(t, e) })
	e.Apply("independent.yaml", map[string]string{
		"Namespace": e.Namespace,
		"Server":    framework.FindImage(t, "clusterregistry-apiserver").Reference,
		"Etcd":      framework.FindImage(t, "etcd").Reference,
	})
	e.Eventually("the servers to be available", func(ctx context.Context) error { return rolledOut(ctx, e) })
	address := nodePort(t, e)
	admin := kubeconfig(t, e, address, "admin")

	t.Run("kubectl", func(t *testing.T) { session.Run(t, write(t, admin)) })
	t.Run("roles", func(t *testing.T) {
		root, ann := framework.NewKubectl(t, "v1.37.1", write(t, admin)), framework.NewKubectl(t, "v1.37.1", write(t, kubeconfig(t, e, address, "ann")))
		if out := ann.Run("auth", "whoami"); !strings.Contains(out, "ann") || !strings.Contains(out, "fleet") {
			t.Errorf("whoami: %s", out)
		}
		if out, err := ann.Try("auth", "can-i", "list", "crc"); err == nil || !strings.HasPrefix(out, "no") {
			t.Errorf("ann may list before anybody let her: %v: %s", err, out)
		}
		if _, err := ann.Try("get", "crc"); err == nil || !strings.Contains(err.Error(), `User "ann" cannot list resource "clusters"`) {
			t.Errorf("get crc: %v", err)
		}
		root.Run("create", "clusterrolebinding", "fleet-viewers", "--clusterrole=clusterregistry:viewer", "--group=fleet")
		e.Eventually("both servers to let ann list", func(context.Context) error {
			for range 10 {
				if _, err := ann.Try("get", "crc"); err != nil {
					return err
				}
			}
			return nil
		})
		if _, err := ann.Try("create", "clusterrolebinding", "more", "--clusterrole=clusterregistry:admin", "--user=ann"); err == nil || !strings.Contains(err.Error(), "cannot create resource") {
			t.Errorf("ann made herself an administrator: %v", err)
		}
	})
	t.Run("restart", func(t *testing.T) {
		config := restConfig(t, admin)
		load := framework.StartLoad(t, config, rate)
		restart(t, e, func() {})
		load.Settle(t)
		report := load.Stop()
		t.Logf("a restart of the servers: %s", report)
		clients, err := versioned.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		check(t, clients, report)
	})
}

// nodePort returns where the registry is reached from outside.
func nodePort(t *testing.T, e *framework.Env) string {
	t.Helper()
	var service corev1.Service
	if err := e.Get(t.Context(), "registry", &service); err != nil {
		t.Fatal(err)
	}
	var nodes corev1.NodeList
	if err := e.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, address := range nodes.Items[0].Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return fmt.Sprintf("https://%s:%d", address.Address, service.Spec.Ports[0].NodePort)
		}
	}
	t.Fatalf("node %s has no address", nodes.Items[0].Name)
	return ""
}

// kubeconfig returns how the holder of the certificate in a Secret connects.
func kubeconfig(t *testing.T, e *framework.Env, address, secret string) *clientcmdapi.Config {
	t.Helper()
	read := func(name string) map[string][]byte {
		var s corev1.Secret
		if err := e.Get(t.Context(), name, &s); err != nil {
			t.Fatal(err)
		}
		return s.Data
	}
	client := read(secret)
	config := clientcmdapi.NewConfig()
	config.Clusters["registry"] = &clientcmdapi.Cluster{Server: address, CertificateAuthorityData: read("server")["ca.crt"], TLSServerName: "registry." + e.Namespace + ".svc"}
	config.AuthInfos[secret] = &clientcmdapi.AuthInfo{ClientCertificateData: client["tls.crt"], ClientKeyData: client["tls.key"]}
	config.Contexts["registry"] = &clientcmdapi.Context{Cluster: "registry", AuthInfo: secret}
	config.CurrentContext = "registry"
	return config
}

func write(t *testing.T, config *clientcmdapi.Config) string {
	t.Helper()
	path := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func restConfig(t *testing.T, config *clientcmdapi.Config) *rest.Config {
	t.Helper()
	out, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	return out
}
