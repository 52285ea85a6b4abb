package render

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// clusterSetLabel is the label by which the servers say in which ClusterSet a cluster is. No one
// else sets it.
const clusterSetLabel = "clusterregistry.k8s.io/clusterset"

// Asked returns what a registry asks of its controller, but for exports and selections that would
// show clusters which the registry hides, and for a feed, past the schema, of an independent one,
// whose users the host cluster does not know. Nothing of these is rendered, so that what they have
// published goes.
func Asked(registry *operatorv1alpha1.ClusterRegistry) *operatorv1alpha1.Controllers {
	asked := registry.Spec.Controllers
	if asked == nil {
		return nil
	}
	out := *asked
	if registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		out.Feed = nil
	}
	if !hides(registry) {
		return &out
	}
	out.Exports = slices.DeleteFunc(slices.Clone(asked.Exports), func(export operatorv1alpha1.Export) bool { return !shownBySet(asked, export) })
	out.ClusterSelections = slices.DeleteFunc(slices.Clone(asked.ClusterSelections), func(of operatorv1alpha1.ClusterSelections) bool { return len(of.ClusterSets) == 0 })
	return &out
}

// Unshown says which exports and selections would show clusters that the registry hides, nil when none would.
func Unshown(registry *operatorv1alpha1.ClusterRegistry) error {
	if registry.Spec.Controllers == nil || !hides(registry) {
		return nil
	}
	for i, export := range registry.Spec.Controllers.Exports {
		if export.Selection == "" && !bySet(export.Selector) {
			return fmt.Errorf("visibility is %s, and everyone who may read %ss in namespace %s would see all clusters that spec.controllers.exports[%d] selects; say of which ClusterSets they may see the clusters: add the label %s to matchLabels of its selector, or to matchExpressions with the operator In, or Exists for those of any ClusterSet", operatorv1alpha1.VisibilityClusterSets, export.Format, export.Namespace, i, clusterSetLabel)
		}
	}
	for i, of := range registry.Spec.Controllers.ClusterSelections {
		if len(of.ClusterSets) == 0 {
			return fmt.Errorf("the registry hides clusters, and ClusterSelections of namespace %s would see all of them; say of which ClusterSets they may: set spec.controllers.clusterSelections[%d].clusterSets", of.Namespace, i)
		}
	}
	for i, export := range registry.Spec.Controllers.Exports {
		if !shownBySet(registry.Spec.Controllers, export) {
			return fmt.Errorf("the registry hides clusters, and no one knows which of them spec.controllers.exports[%d] may show; say of which ClusterSets they are: give namespace %s an entry with clusterSets and a valid selector in spec.controllers.clusterSelections", i, export.Namespace)
		}
	}
	return nil
}

// hides reports whether the servers of a registry show callers the clusters of their ClusterSets
// alone, or did, and no one has approved yet that they show all.
func hides(registry *operatorv1alpha1.ClusterRegistry) bool {
	return registry.Spec.Server.Visible() == operatorv1alpha1.VisibilityClusterSets || registry.Status.Visibility != nil
}

// shownBySet reports whether an export says of which ClusterSets the clusters are that it shows.
// One with a selection shows those that the selections of its namespace may see, if these say it,
// and have a valid selector: where no one knows what may be seen, nothing stays.
func shownBySet(controllers *operatorv1alpha1.Controllers, export operatorv1alpha1.Export) bool {
	if export.Selection == "" {
		return bySet(export.Selector)
	}
	return slices.ContainsFunc(controllers.ClusterSelections, func(of operatorv1alpha1.ClusterSelections) bool {
		return of.Namespace == export.Namespace && len(of.ClusterSets) > 0 && validSelector(of)
	})
}

// bySet reports whether a selector says of which ClusterSets the clusters are that it selects. One
// that is not valid selects nothing.
func bySet(selector *metav1.LabelSelector) bool {
	valid, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return true
	}
	requirements, _ := valid.Requirements()
	for _, r := range requirements {
		if r.Key() == clusterSetLabel && slices.Contains([]selection.Operator{selection.In, selection.Equals, selection.DoubleEquals, selection.Exists}, r.Operator()) {
			return true
		}
	}
	return false
}
