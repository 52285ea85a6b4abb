package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// needs are what an admission plugin, or priority and fairness, reads of the
// host. A plugin whose reads fail would let every write wait and then fail.
type needs struct {
	plugin    string
	group     schema.GroupVersion
	resources []string
}

// fairness stands for API priority and fairness, which is not a plugin.
const fairness = "APIPriorityAndFairness"

var (
	registration = schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}

	hostNeeds = []needs{
		{lifecycle.PluginName, schema.GroupVersion{Version: "v1"}, []string{"namespaces"}},
		{mutatingpolicy.PluginName, registration, []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}},
		{mutatingwebhook.PluginName, registration, []string{"mutatingwebhookconfigurations"}},
		{validatingpolicy.PluginName, registration, []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}},
		{validatingwebhook.PluginName, registration, []string{"validatingwebhookconfigurations"}},
		{fairness, schema.GroupVersion{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}, []string{"flowschemas", "prioritylevelconfigurations"}},
	}

	disabledPlugins = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name:           "clusterregistry_admission_plugin_disabled",
		Help:           "1 for each admission plugin that is off because the host cluster does not serve what it reads, or the server may not read it.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"plugin", "reason"})
)

func init() { legacyregistry.MustRegister(disabledPlugins) }

// probeTimeout bounds the questions asked of the host at start.
const probeTimeout = 30 * time.Second

// probeHost returns the plugins that must be off on this host. What the host
// does not serve is logged; a missing permission is an error that names the
// rule, unless it is to be tolerated.
func probeHost(ctx context.Context, client kubernetes.Interface, tolerate bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var off, missing []string
	for _, need := range hostNeeds {
		served, err := serves(client, need)
		if err != nil {
			return nil, err
		}
		if !served {
			klog.InfoS("Admission plugin is off: the host cluster does not serve what it reads", "plugin", need.plugin, "group", need.group.String(), "resources", need.resources)
			disabledPlugins.WithLabelValues(need.plugin, "NotServed").Set(1)
			off = append(off, need.plugin)
			continue
		}
		rules, err := forbidden(ctx, client, need)
		if err != nil {
			return nil, err
		}
		if len(rules) > 0 {
			missing = append(missing, rules...)
			disabledPlugins.WithLabelValues(need.plugin, "Forbidden").Set(1)
			off = append(off, need.plugin)
		}
	}
	if len(missing) == 0 {
		return off, nil
	}
	text := strings.Join(missing, "; ")
	if !tolerate {
		return nil, fmt.Errorf("the server may not read what admission needs from the host cluster: grant its user %s, or accept that these plugins are off with --tolerate-missing-admission-permissions", text)
	}
	klog.ErrorS(nil, "Admission plugins are off: the server may not read what they need", "missing", text, "plugins", off)
	return off, nil
}

// serves reports whether the host serves all that a plugin reads.
func serves(client kubernetes.Interface, need needs) (bool, error) {
	list, err := client.Discovery().ServerResourcesForGroupVersion(need.group.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the host cluster what it serves of %s: %w", need.group, err)
	}
	served := map[string]bool{}
	for _, r := range list.APIResources {
		served[r.Name] = true
	}
	for _, r := range need.resources {
		if !served[r] {
			return false, nil
		}
	}
	return true, nil
}

// forbidden returns the rules that the server lacks, as an administrator would
// write them.
func forbidden(ctx context.Context, client kubernetes.Interface, need needs) ([]string, error) {
	var missing []string
	for _, resource := range need.resources {
		for _, verb := range []string{"list", "watch"} {
			review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: need.group.Group, Version: need.group.Version, Resource: resource, Verb: verb,
				}},
			}, metav1.CreateOptions{})
			if err != nil {
				return nil, fmt.Errorf("ask the host cluster for the server's own permissions: %w", err)
			}
			if !review.Status.Allowed {
				missing = append(missing, fmt.Sprintf("%q on %q in API group %q", verb, resource, need.group.Group))
			}
		}
	}
	return missing, nil
}
