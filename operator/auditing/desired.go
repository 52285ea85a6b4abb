package auditing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
)

// desired returns what the spec asks for. The error says what is wrong with that, or that it
// can't be read.
func desired(ctx context.Context, o *operand.Objects, spec operatorv1alpha1.Audit) (*render.Audit, error) {
	out := &render.Audit{Spec: spec}
	var err error
	if out.Policy, err = readPolicy(ctx, o, spec.PolicyConfigMapRef); err != nil {
		return nil, err
	}
	if spec.Webhook != nil {
		if out.Webhook, err = readWebhook(ctx, o, spec.Webhook.SecretRef); err != nil {
			return nil, err
		}
	}
	if spec.Log != nil && spec.Log.File.ClaimName != "" {
		if err := checkClaim(ctx, o, spec.Log.File.ClaimName); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readPolicy returns the policy, if the servers take it.
func readPolicy(ctx context.Context, o *operand.Objects, ref operatorv1alpha1.AuditPolicySelector) ([]byte, error) {
	const field = "spec.server.audit.policyConfigMapRef"
	config := &corev1.ConfigMap{}
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.Registry.Namespace, Name: ref.Name}, config)
	if apierrors.IsNotFound(err) {
		return nil, invalidf("ConfigMap %s with the audit policy (%s) does not exist", ref.Name, field)
	}
	if err != nil {
		return nil, err
	}
	content := config.BinaryData[ref.Key]
	if text, has := config.Data[ref.Key]; has {
		content = []byte(text)
	} else if content == nil {
		return nil, invalidf("ConfigMap %s has no key %s with the audit policy (%s)", ref.Name, ref.Key, field)
	}
	if err := checkPolicy(content); err != nil {
		return nil, invalidf("the servers would refuse the audit policy in ConfigMap %s, key %s: %w", ref.Name, ref.Key, err)
	}
	return content, nil
}

// checkPolicy returns the server's own error.
func checkPolicy(content []byte) error {
	if len(content) == 0 {
		return errEmpty
	}
	_, err := policy.LoadPolicyFromBytes(content)
	return err
}

// readWebhook returns the kubeconfig of the server that receives events, if servers can use
// it in their pods.
func readWebhook(ctx context.Context, o *operand.Objects, ref operatorv1alpha1.SecretKeySelector) ([]byte, error) {
	const field = "spec.server.audit.webhook.secretRef"
	secret, err := o.Secret(ctx, ref.Name)
	switch {
	case err != nil:
		return nil, err
	case secret == nil:
		return nil, invalidf("Secret %s with the kubeconfig of the audit webhook (%s) does not exist", ref.Name, field)
	case secret.Data[ref.Key] == nil:
		return nil, invalidf("Secret %s has no key %s with the kubeconfig of the audit webhook (%s)", ref.Name, ref.Key, field)
	}
	content := secret.Data[ref.Key]
	if err := checkWebhook(content); err != nil {
		return nil, invalidf("the servers can't use the kubeconfig of the audit webhook in Secret %s, key %s: %w", ref.Name, ref.Key, err)
	}
	return content, nil
}

// checkWebhook returns why a kubeconfig is of no use in a pod.
func checkWebhook(content []byte) error {
	if len(content) == 0 {
		return errEmpty
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return errInvalidConfig
	}
	if err := clientcmd.ConfirmUsable(*config, ""); err != nil {
		return err
	}
	loaded, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).RawConfig()
	if err != nil {
		return err
	}
	current, has := loaded.Contexts[loaded.CurrentContext]
	if !has {
		return fmt.Errorf("it has no current context")
	}
	if user := loaded.AuthInfos[current.AuthInfo]; user != nil {
		if err := checkUser(user); err != nil {
			return err
		}
	}
	cluster := loaded.Clusters[current.Cluster]
	if cluster == nil {
		return fmt.Errorf("its current context names no cluster")
	}
	return checkServer(cluster)
}

func checkUser(user *clientcmdapi.AuthInfo) error {
	switch {
	case user.Exec != nil || user.AuthProvider != nil:
		return fmt.Errorf("it runs a program to authenticate, which the servers' image does not have: use a certificate or a token")
	case slices.ContainsFunc([]string{user.ClientCertificate, user.ClientKey, user.TokenFile}, func(file string) bool { return file != "" }):
		return fmt.Errorf("it refers to files, which the servers' pods do not have: put their content into it (client-certificate-data, client-key-data, token)")
	}
	return nil
}

func checkServer(cluster *clientcmdapi.Cluster) error {
	address, err := url.Parse(cluster.Server)
	switch {
	case err != nil || address.Scheme != "https" || address.Host == "":
		return errors.New("its server is not an https URL") // which may have credentials in it
	case cluster.InsecureSkipTLSVerify:
		return fmt.Errorf("it has insecure-skip-tls-verify: put the CA that signed the server's certificate into certificate-authority-data")
	case cluster.CertificateAuthority != "":
		return fmt.Errorf("it refers to a file, which the servers' pods do not have: put its content into certificate-authority-data")
	}
	return nil
}

// checkClaim returns why servers on several nodes can't write to a claim.
func checkClaim(ctx context.Context, o *operand.Objects, name string) error {
	const field = "spec.server.audit.log.file.claimName"
	claim := &corev1.PersistentVolumeClaim{}
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.Registry.Namespace, Name: name}, claim)
	switch {
	case apierrors.IsNotFound(err):
		return invalidf("PersistentVolumeClaim %s for the audit log (%s) does not exist", name, field)
	case err != nil:
		return err
	case claim.DeletionTimestamp != nil:
		return invalidf("PersistentVolumeClaim %s for the audit log (%s) is being deleted", name, field)
	case !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany):
		return invalidf("PersistentVolumeClaim %s for the audit log (%s) is not ReadWriteMany: servers on several nodes write to it, while they are replaced at the latest", name, field)
	}
	return nil
}
