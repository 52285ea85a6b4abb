// Package kubeconfig keeps the kubeconfig of an independent registry's administrator in
// the Secret <name>-kubeconfig.
package kubeconfig

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// key is the key of the Secret with the administrator's kubeconfig.
const key = "kubeconfig"

// Write writes a kubeconfig that leads to url and trusts the given CAs, in PEM; again
// when the administrator's certificate was renewed. In a read-only reconcile, that in the
// Secret stays as it is.
func Write(ctx context.Context, o *operand.Objects, url string, authorities []byte) verdict.Verdict {
	admin, err := o.Secret(ctx, o.Name(contract.AdminSuffix))
	if err != nil {
		return verdict.Failed(err)
	}
	if admin == nil || len(admin.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "Secret %s with the administrator's certificate does not exist yet", o.Name(contract.AdminSuffix)).In(verdict.Soon)
	}
	name, user := o.Registry.Name, o.Name(contract.AdminSuffix)
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: authorities}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.Data[corev1.TLSCertKey], ClientKeyData: admin.Data[corev1.TLSPrivateKeyKey]}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return verdict.Failed(err)
	}
	secret := &corev1.Secret{ObjectMeta: o.Meta(contract.KubeconfigSuffix, "certificates"), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{key: content}}
	secret.APIVersion, secret.Kind = "v1", "Secret"
	object, err := operand.Unstructured(secret)
	if err != nil {
		return verdict.Failed(err)
	}
	if err := apply.IgnoreReadOnly(o.Apply(ctx, object)); err != nil {
		return verdict.Failed(err)
	}
	o.Registry.Status.KubeconfigSecretRef = &operatorv1alpha1.LocalObjectReference{Name: secret.Name}
	return verdict.Verdict{}
}

// Server returns the URL that the kubeconfig leads to, empty when there is none that
// clients could have.
func Server(ctx context.Context, o *operand.Objects) (string, error) {
	content, err := o.SecretValue(ctx, o.Name(contract.KubeconfigSuffix), key)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.Load(content)
	if err != nil || config.Clusters[o.Registry.Name] == nil {
		return "", nil //nolint:nilerr // no client has an address from a kubeconfig that is none
	}
	return config.Clusters[o.Registry.Name].Server, nil
}
