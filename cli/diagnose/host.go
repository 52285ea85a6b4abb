package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmetav1 "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/status"
	"github.com/clusterregistry/operator/internal/diagnose"
)

const (
	// operatorName is that of the operator's Deployment, Lease and label.
	operatorName     = "clusterregistry-operator"
	operatorSelector = "app.kubernetes.io/name=" + operatorName
	// certManagerSelector finds the controller of cert-manager, as its own manifests and
	// chart label it.
	certManagerSelector = "app.kubernetes.io/name=cert-manager"
)

// operator finds whether the operator runs and leads.
func (d *diagnosis) operator(ctx context.Context) {
	namespace := d.operatorNamespace
	found, listed := list[appsv1.Deployment](ctx, d, deployments, namespace, operatorSelector)
	switch {
	case !listed:
	case len(found) == 0:
		d.add(status.Error, "namespace "+namespace, "kubectl get deployments -A -l "+operatorSelector+"; name its namespace with --operator-namespace, or see docs/how-to/install.md", "the operator is not in this namespace")
	case !slices.ContainsFunc(found, func(deployment appsv1.Deployment) bool { return deployment.Status.AvailableReplicas > 0 }):
		d.add(status.Error, "deployment "+namespace+"/"+found[0].Name, "kubectl -n "+namespace+" describe deployment "+found[0].Name, "the operator is not running: no pod of it is available, and registries are neither changed nor repaired")
	}
	if listed && len(found) == 0 {
		return
	}
	if all, listed := list[corev1.Pod](ctx, d, pods, namespace, operatorSelector); listed {
		d.pods(all, d.warnings(ctx, namespace), "") // none is of etcd
	}
	all, listed := list[coordinationv1.Lease](ctx, d, leases, namespace, "")
	if !listed {
		return
	}
	next := "kubectl -n " + namespace + " logs -l " + operatorSelector + " --tail=100"
	i := slices.IndexFunc(all, func(lease coordinationv1.Lease) bool { return lease.Name == operatorName })
	switch {
	case i < 0:
		d.add(status.Error, "namespace "+namespace, next, "no operator leads: the Lease %s does not exist", operatorName)
	case !held(&all[i], d.env.Now()):
		d.add(status.Error, "lease "+namespace+"/"+operatorName, next, "no operator leads: the Lease is not held, or was last renewed at %s", renewed(&all[i]))
	}
}

// patience is how long beyond its duration a Lease counts as held: clocks differ.
const patience = 2 * time.Minute

// held reports whether someone holds a Lease.
func held(lease *coordinationv1.Lease, now time.Time) bool {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil {
		return false
	}
	duration := patience
	if spec.LeaseDurationSeconds != nil {
		duration += time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	return now.Sub(spec.RenewTime.Time) <= duration
}

func renewed(lease *coordinationv1.Lease) string {
	if lease.Spec.RenewTime == nil {
		return "no time"
	}
	return lease.Spec.RenewTime.UTC().Format(time.RFC3339)
}

// certManager finds whether cert-manager runs. Whether its API is there is found when
// certificates are listed.
func (d *diagnosis) certManager(ctx context.Context) {
	found, listed := list[appsv1.Deployment](ctx, d, deployments, "", certManagerSelector)
	if !listed {
		return
	}
	const find = "kubectl get deployments -A -l " + certManagerSelector
	if len(found) == 0 {
		d.add(status.Warning, "host cluster", find+"; docs/how-to/install.md", "no Deployment has the labels of cert-manager: certificates are issued and renewed only if it runs elsewhere")
		return
	}
	for _, deployment := range found {
		if deployment.Status.AvailableReplicas == 0 {
			d.add(status.Error, "deployment "+deployment.Namespace+"/"+deployment.Name, "kubectl -n "+deployment.Namespace+" describe deployment "+deployment.Name, "cert-manager is not running: no certificate is issued or renewed")
		}
	}
}

// certificates finds certificates of a registry that are not issued, and CAs that expire.
func (d *diagnosis) certificates(ctx context.Context, creg *operatorv1alpha1.ClusterRegistry) {
	all, err := read[certmanagerv1.Certificate](ctx, d.host, certificates, creg.Namespace, metav1.ListOptions{LabelSelector: of(creg)})
	switch {
	case err != nil && absent(err):
		d.add(status.Error, "host cluster", "docs/how-to/install.md says how to install it; the operator continues automatically", "it has no cert-manager: certificates are neither issued nor renewed")
		return
	case err != nil:
		d.unchecked(certificates.Resource, certificates, creg.Namespace, err)
		return
	}
	var requests []certmanagerv1.CertificateRequest
	asked := false
	for i := range all {
		certificate := &all[i]
		object := "certificate " + certificate.Namespace + "/" + certificate.Name
		next := "kubectl -n " + certificate.Namespace + " describe certificate " + certificate.Name
		if ca := diagnose.ExpiringCA(certificate, d.env.Now()); ca != "" {
			d.add(status.Warning, object, next, "%s", ca)
		}
		problem := diagnose.Certificate(certificate)
		if problem == "" {
			continue
		}
		if !asked {
			requests, _ = list[certmanagerv1.CertificateRequest](ctx, d, certificateRequests, creg.Namespace, "")
			asked = true
		}
		if refusal := refused(requests, certificate); refusal != "" && !strings.Contains(problem, refusal) {
			problem += "; " + refusal
		}
		d.add(status.Error, object, next, "%s", problem)
	}
}

// refused returns what the issuer says of a certificate's next request, "" when it says
// nothing.
func refused(requests []certmanagerv1.CertificateRequest, certificate *certmanagerv1.Certificate) string {
	revision := 1
	if certificate.Status.Revision != nil {
		revision += *certificate.Status.Revision
	}
	for _, request := range requests {
		if request.Name != fmt.Sprintf("%s-%d", certificate.Name, revision) {
			continue
		}
		for _, condition := range request.Status.Conditions {
			if condition.Type == certmanagerv1.CertificateRequestConditionReady && condition.Status == cmmetav1.ConditionFalse {
				return condition.Message
			}
		}
	}
	return ""
}

// apiService is as much of an APIService as is asked for.
type apiService struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Group string `json:"group"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// apiServices finds APIs that kube-apiserver lists and does not reach. They make the
// deletion of any namespace hang, and so does one that is not a registry's.
func (d *diagnosis) apiServices(ctx context.Context, registries []operatorv1alpha1.ClusterRegistry) {
	all, listed := list[apiService](ctx, d, apiServices, "", "")
	if !listed {
		return
	}
	own := false
	for _, service := range all {
		registered := service.Spec.Group == v1beta1.GroupName
		own = own || registered
		for _, condition := range service.Status.Conditions {
			if condition.Type != string(apiregistrationv1.Available) || condition.Status != metav1.ConditionFalse {
				continue
			}
			why := condition.Reason + ": " + condition.Message
			if !registered {
				d.add(status.Warning, "apiservice "+service.Name, "kubectl describe apiservice "+service.Name, "it is not available, and not a registry's; while it is listed, namespaces of the host cluster hang in deletion, any namespace: %s", why)
				continue
			}
			d.add(status.Critical, "apiservice "+service.Name, "kubectl describe apiservice "+service.Name+"; docs/how-to/troubleshooting.md, BackendDown", "kube-apiserver does not reach the registry, and namespaces of the host cluster hang in deletion, any namespace: %s", why)
		}
	}
	for i := range registries {
		if creg := &registries[i]; !own && creg.Spec.Mode == operatorv1alpha1.ModeAggregated && creg.Status.Version != "" && creg.DeletionTimestamp == nil {
			d.add(status.Critical, registryName(creg), "kubectl -n "+creg.Namespace+" describe creg "+creg.Name+"; the operator registers it again when a server answers", "the host cluster does not list its API: no APIService is of the group %s", v1beta1.GroupName)
		}
	}
}
