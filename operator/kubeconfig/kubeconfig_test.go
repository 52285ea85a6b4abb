package kubeconfig_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/kubeconfig"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// admin is the Secret with the administrator's certificate.
func admin(certificate, key string) *corev1.Secret {
	secret := operandtest.Secret("fleet-admin", []byte(certificate))
	secret.Data[corev1.TLSPrivateKeyKey] = []byte(key)
	return secret
}

// written is the Secret with the kubeconfig.
func written(content string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-kubeconfig"}, Data: map[string][]byte{"kubeconfig": []byte(content)}}
}

// independent returns a registry that the host cluster has, beside the given objects.
func independent(t *testing.T, objects ...client.Object) *operand.Objects {
	t.Helper()
	o := operandtest.New(t, "{spec: {mode: Independent}}")
	o.HostCluster = operandtest.Host(t, append(objects, o.Registry.DeepCopy())...)
	return o
}

// read returns the kubeconfig that the host cluster has, and its Secret.
func read(t *testing.T, o *operand.Objects) (*clientcmdapi.Config, *corev1.Secret) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := o.Live.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-kubeconfig"}, secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	return config, secret
}

// TestWrite gives the administrator a kubeconfig, which follows the certificate, the
// address and the CAs.
func TestWrite(t *testing.T) {
	secret := admin("first", "key")
	o := independent(t, secret)
	for _, step := range []struct{ url, authorities, certificate string }{
		{"https://a", "CA", "first"},
		{"https://a", "CA", "renewed"},
		{"https://b:30443", "CA and another", "renewed"},
	} {
		secret.Data[corev1.TLSCertKey] = []byte(step.certificate)
		if err := o.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if v := kubeconfig.Write(t.Context(), o, step.url, []byte(step.authorities)); !v.Complete() {
			t.Fatalf("%+v: %+v", step, v)
		}
		config, made := read(t, o)
		context := config.Contexts[config.CurrentContext]
		if context == nil || config.Clusters[context.Cluster] == nil || config.AuthInfos[context.AuthInfo] == nil {
			t.Fatalf("%+v: it has no current context: %s", step, made.Data["kubeconfig"])
		}
		cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
		if cluster.Server != step.url || string(cluster.CertificateAuthorityData) != step.authorities || string(user.ClientCertificateData) != step.certificate || string(user.ClientKeyData) != "key" {
			t.Errorf("%+v: it is %s", step, made.Data["kubeconfig"])
		}
		if reference := o.Registry.Status.KubeconfigSecretRef; apply.Owner(made) != "team/fleet" || !metav1.IsControlledBy(made, o.Registry) || reference == nil || reference.Name != made.Name {
			t.Errorf("%+v: it is not the registry's: %+v, status %+v", step, made.ObjectMeta, reference)
		}
		if server, err := kubeconfig.Server(t.Context(), o); err != nil || server != step.url {
			t.Errorf("%+v: it leads to %q, %v", step, server, err)
		}
	}
}

// TestNoCertificate waits for the administrator's certificate, and writes nothing before.
func TestNoCertificate(t *testing.T) {
	for reason, objects := range map[string][]client.Object{"there is none": nil, "its key is missing": {operandtest.Secret("fleet-admin", []byte("first"))}} {
		o := independent(t, objects...)
		v := kubeconfig.Write(t.Context(), o, "https://a", []byte("CA"))
		if v.Complete() || v.Err != nil || v.Reason != operatorv1alpha1.ReasonWaiting || v.After != verdict.Soon || !strings.Contains(v.Message, "Secret fleet-admin") {
			t.Errorf("%s: %+v", reason, v)
		}
		secret, err := o.Secret(t.Context(), "fleet-kubeconfig")
		if err != nil || secret != nil || o.Registry.Status.KubeconfigSecretRef != nil {
			t.Errorf("%s: written is %v, %v", reason, secret, err)
		}
	}
}

// TestReadOnly leaves the kubeconfig as it is.
func TestReadOnly(t *testing.T) {
	o := independent(t, admin("first", "key"), written("as it was"))
	o.Freeze("spec.paused is false")
	if v := kubeconfig.Write(t.Context(), o, "https://a", []byte("CA")); !v.Complete() {
		t.Errorf("%+v", v)
	}
	if secret, err := o.Secret(t.Context(), "fleet-kubeconfig"); err != nil || string(secret.Data["kubeconfig"]) != "as it was" {
		t.Errorf("written is %v, %v", secret, err)
	}
}

// TestServer says where the kubeconfig leads that clients could have.
func TestServer(t *testing.T) {
	for reason, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"there is none":         {nil, ""},
		"it is nonsense":        {[]client.Object{written("[]")}, ""},
		"it is empty":           {[]client.Object{written("")}, ""},
		"it is of another name": {[]client.Object{written("clusters: [{name: other, cluster: {server: 'https://a'}}]")}, ""},
		"it leads somewhere":    {[]client.Object{written("clusters: [{name: fleet, cluster: {server: 'https://a'}}]")}, "https://a"},
	} {
		if got, err := kubeconfig.Server(t.Context(), independent(t, test.objects...)); err != nil || got != test.want {
			t.Errorf("%s: %q, %v", reason, got, err)
		}
	}
}
