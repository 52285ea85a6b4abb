package validation_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
)

// TestBoundsComeBeforeRules: of a list that is too long, no entry is checked. Each of these
// entries breaks a rule, and would be a fault of its own.
func TestBoundsComeBeforeRules(t *testing.T) {
	const many = 5000
	for path, spec := range map[string]clusterregistry.ClusterSpec{
		"spec.access":    {Access: make([]clusterregistry.Access, many)},
		"spec.endpoints": {Endpoints: make([]clusterregistry.Endpoint, many)},
		"spec.taints":    {Taints: make([]clusterregistry.Taint, many)},
	} {
		cluster := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: spec}
		only(t, path, validation.Cluster(cluster, form.V1beta1))
		old := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", ResourceVersion: "1"}}
		cluster.ResourceVersion = "1"
		only(t, path, validation.ClusterUpdate(cluster, old, form.V1beta1))
	}
	cluster := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", ResourceVersion: "1"}}
	full := cluster.DeepCopy()
	full.Status = &clusterregistry.ClusterStatus{Conditions: make([]metav1.Condition, many)}
	only(t, "status.conditions", validation.ClusterStatusUpdate(full, cluster))
}

// TestMetadataBounds: labels, finalizers and owner references are bounded together.
func TestMetadataBounds(t *testing.T) {
	cluster := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{"a": strings.Repeat("x", validation.MaxMetadata)}}}
	only(t, "metadata", validation.Cluster(cluster, form.V1beta1))
	cluster.Labels, cluster.Finalizers = nil, make([]string, validation.MaxItems+1)
	only(t, "metadata.finalizers", validation.Cluster(cluster, form.V1beta1))
}

// TestHeartbeatBounds: a heartbeat has little besides its name, and nothing that keeps it.
func TestHeartbeatBounds(t *testing.T) {
	old := &clusterregistry.ClusterHeartbeat{ObjectMeta: metav1.ObjectMeta{Name: "east.agent", ResourceVersion: "1"}, ClusterName: "east"}
	half := strings.Repeat("x", validation.MaxHeartbeat/2)
	for _, test := range []struct {
		path string
		meta metav1.ObjectMeta
	}{
		{"", metav1.ObjectMeta{Annotations: map[string]string{"a": half}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "agent", Operation: metav1.ManagedFieldsOperationApply}}}},
		{"metadata", metav1.ObjectMeta{Annotations: map[string]string{"a": half, "b": half}}},
		{"metadata", metav1.ObjectMeta{Labels: map[string]string{"a": half}, Annotations: map[string]string{"a": half}}},
		{"metadata", metav1.ObjectMeta{Annotations: map[string]string{"a": half}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: half, Operation: metav1.ManagedFieldsOperationApply}}}},
		{"metadata", metav1.ObjectMeta{GenerateName: half + half + "x"}},
		{"metadata.finalizers", metav1.ObjectMeta{Finalizers: []string{"example.com/wait"}}},
		{"metadata.ownerReferences", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "a", UID: "a"}}}},
	} {
		beat := &clusterregistry.ClusterHeartbeat{ObjectMeta: test.meta, ClusterName: "east"}
		beat.Name, beat.ResourceVersion = old.Name, old.ResourceVersion
		for _, faults := range []field.ErrorList{validation.ClusterHeartbeat(beat), validation.ClusterHeartbeatUpdate(beat, old)} {
			if test.path != "" {
				only(t, test.path, faults)
			} else if len(faults) > 0 {
				t.Error(faults.ToAggregate())
			}
		}
		for _, fault := range validation.ClusterHeartbeatUpdate(beat, beat) {
			if fault.Field == test.path {
				t.Errorf("as it is stored: %v", fault)
			}
		}
	}
}

// TestFaultsAreBounded: what is more than one can read is counted.
func TestFaultsAreBounded(t *testing.T) {
	for _, n := range []int{32, 33, 5000} {
		var faults field.ErrorList
		for range n {
			faults = append(faults, field.Required(field.NewPath("a"), ""))
		}
		told := validation.Told(faults)
		if n == 32 && len(told) != 32 || n > 32 && (len(told) != 33 || told[32].BadValue != n-32) {
			t.Errorf("%d faults become %d, the last of them %v", n, len(told), told[len(told)-1])
		}
	}
}

// only expects one fault, at a path.
func only(t *testing.T, path string, faults field.ErrorList) {
	t.Helper()
	if len(faults) != 1 || faults[0].Field != path {
		t.Errorf("%s: %d faults, the first of them %.300v", path, len(faults), faults.ToAggregate())
	}
}
