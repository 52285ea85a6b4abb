package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultDuration is how long a leaf certificate is valid when the spec does not
// say it.
const DefaultDuration = 90 * 24 * time.Hour

// SetDefaults fills in what the CRD's schema does, for an object that was stored
// before the schema knew the field, or that never passed through it.
func SetDefaults(r *ClusterRegistry) {
	orElse(&r.Spec.DeletionPolicy, DeletionPolicyRetain)
	orElse(&r.Spec.Images.PullPolicy, corev1.PullIfNotPresent)
	orElse(&r.Spec.Server.Replicas, 2)
	orElse(&r.Spec.Server.ProgressDeadlineSeconds, 600)
	if service := r.Spec.Server.Service; service != nil {
		orElse(&service.Type, corev1.ServiceTypeClusterIP)
	}
	if authentication := r.Spec.Server.Authentication; authentication != nil {
		orElse(&authentication.ConfigMapRef.Key, "authentication.yaml")
	}
	if authorization := r.Spec.Server.Authorization; authorization != nil && authorization.WebhookSecretRef != nil {
		orElse(&authorization.WebhookSecretRef.Key, "kubeconfig")
	}
	if encryption := r.Spec.Server.Encryption; encryption != nil {
		orElse(&encryption.SecretRef.Key, "encryption.yaml")
	}
	if audit := r.Spec.Server.Audit; audit != nil {
		orElse(&audit.PolicyConfigMapRef.Key, "policy.yaml")
		if audit.Log != nil {
			orElse(&audit.Log.Destination, AuditLogStdout)
		}
		if audit.Webhook != nil {
			orElse(&audit.Webhook.SecretRef.Key, "kubeconfig")
		}
	}
	if storage := r.Spec.Etcd.Storage; storage != nil && storage.Size.IsZero() {
		storage.Size = resource.MustParse(DefaultStorageSize)
	}
	if issuer := r.Spec.TLS.IssuerRef; issuer != nil {
		orElse(&issuer.Kind, "Issuer")
		orElse(&issuer.Group, "cert-manager.io")
	}
	if controllers := r.Spec.Controllers; controllers != nil && controllers.Health != nil {
		orElse(&controllers.Health.PeriodSeconds, 60)
	}
	if controllers := r.Spec.Controllers; controllers != nil && controllers.ClusterAPI != nil {
		controllers.ClusterAPI.setDefaults()
	}
	if backup := r.Spec.Backup; backup != nil {
		orElse(&backup.Retention.KeepLast, 7)
		orElse(&backup.Verify, VerifyAlways)
	}
	if r.Spec.TLS.Duration == nil {
		r.Spec.TLS.Duration = &metav1.Duration{Duration: DefaultDuration}
	}
}

// orElse sets a field that has its zero value.
func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
