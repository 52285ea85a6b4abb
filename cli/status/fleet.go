package status

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/internal/unregistered"
)

// Count counts clusters by their condition Available.
type Count struct {
	Total       int `json:"total"`
	Available   int `json:"available"`
	Unavailable int `json:"unavailable"`
	Unknown     int `json:"unknown"`
	// Unreported are clusters that no one reports of.
	Unreported int `json:"unreported"`
}

// Cluster is a cluster that is not well.
type Cluster struct {
	Name      string `json:"name"`
	Available string `json:"available"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

// unknownToAll is the availability of clusters that nothing probes. It is said once.
const unknownToAll = "unknown to all"

// Conditions of clusters.
const (
	clusterAvailable = v1beta1.ConditionAvailable
	clusterIdentity  = v1beta1.ConditionIdentityVerified
)

// availability returns whether a cluster is available: True, False, Unknown, or ""
// when no one reports of it.
func availability(cluster *v1beta1.Cluster) (string, *metav1.Condition) {
	if cluster.Status == nil {
		return "", nil
	}
	found := meta.FindStatusCondition(cluster.Status.Conditions, clusterAvailable)
	if found == nil {
		return "", nil
	}
	return string(found.Status), found
}

// IdentityDiffers is the state of a cluster that is another one than its entry says.
const IdentityDiffers = "identity differs"

// State returns how a cluster is, and the condition that says so: IdentityDiffers, or the
// status of its condition Available, which is "" when no one reports of it.
func State(cluster *v1beta1.Cluster) (string, *metav1.Condition) {
	if cluster.Status != nil {
		if identity := meta.FindStatusCondition(cluster.Status.Conditions, clusterIdentity); identity != nil && identity.Status == metav1.ConditionFalse {
			return IdentityDiffers, identity
		}
	}
	return availability(cluster)
}

// addCluster counts a cluster, and adds it to those that are not well.
func (r *Report) addCluster(cluster *v1beta1.Cluster) {
	r.Clusters.Total++
	available, _ := availability(cluster)
	state, why := State(cluster)
	if r.unprobed && available != "" {
		available = unknownToAll
		if state != IdentityDiffers {
			state = unknownToAll
		}
	}
	switch available {
	case "":
		r.Clusters.Unreported++
	case string(metav1.ConditionTrue):
		r.Clusters.Available++
	case string(metav1.ConditionFalse):
		r.Clusters.Unavailable++
	default:
		r.Clusters.Unknown++
	}
	if state == "" || state == string(metav1.ConditionTrue) || state == unknownToAll {
		return
	}
	r.NotWell = append(r.NotWell, Cluster{Name: cluster.Name, Available: state, Reason: command.Plain(why.Reason), Message: command.Plain(why.Message)})
}

// named is how many clusters a problem names.
const named = 5

// clustersNotWell makes one problem of all clusters that are not well: one line of
// each is below.
func (r *Report) clustersNotWell() {
	var names []string
	for i, cluster := range r.NotWell {
		if i == named {
			names = append(names, fmt.Sprintf("and %d more", len(r.NotWell)-named))
			break
		}
		names = append(names, cluster.Name)
	}
	if len(names) > 0 {
		r.problem(Error, "clusters", "kubectl describe crc "+names[0], "%s not well: %s", plural(len(r.NotWell), "cluster is", "clusters are"), strings.Join(names, ", "))
	}
}

// noClusters notes that the clusters could not be listed; it is a problem where one of
// the registries should answer.
func (r *Report) noClusters(err, explained error) {
	if apierrors.IsForbidden(err) {
		r.note("you may not list the clusters in the registry: see docs/reference/plugin.md for the rights")
		return
	}
	for _, registry := range r.Registries {
		switch aggregated := registry.Mode == string(operatorv1alpha1.ModeAggregated); {
		case aggregated && unregistered.Is(err):
			r.problem(Critical, "clusters", fmt.Sprintf("kubectl -n %s describe creg %s", registry.Namespace, registry.Name), "the registry is not registered with the host cluster; its condition APIServiceReady says why")
			return
		case aggregated:
			r.problem(Critical, "clusters", "kubectl get apiservices v1beta1.clusterregistry.k8s.io", "%s", command.Plain(explained.Error()))
			return
		}
	}
	r.note("the clusters of an independent registry are listed with its own context: use --context, or --kubeconfig with the content of the Secret in status.kubeconfigSecretRef")
}
