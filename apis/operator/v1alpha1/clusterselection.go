package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterselections,shortName=csel
// +kubebuilder:printcolumn:name="Registry",type=string,JSONPath=`.spec.registryRef.name`,description="The registry whose clusters are selected"
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`,description="How many clusters are selected"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the decisions are up to date"
// +kubebuilder:printcolumn:name="Published",type=string,JSONPath=`.status.conditions[?(@.type=="Published")].status`,description="Whether PlacementDecisions have the decisions"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What the condition Ready says"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="metadata.name becomes the value of a label of PlacementDecisions: use at most 63 lowercase letters, digits and dashes, with a letter or digit first and last"

// ClusterSelection selects clusters of a registry for the programs of a namespace, in an
// order, and keeps the selection stable. The controller of the registry writes the decisions
// to the status and, where the host cluster has that kind, to PlacementDecisions
// (multicluster.x-k8s.io). It acts where spec.controllers.clusterSelections of the registry
// has the namespace, and selects among the clusters that this entry lets the namespace see.
type ClusterSelection struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata. The name has at most 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which clusters are selected. A change of it takes effect at once, without
	// stabilizationSeconds.
	// +required
	Spec ClusterSelectionSpec `json:"spec"`

	// status is what the controller of the registry has decided.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterSelectionStatus `json:"status,omitempty,omitzero"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ClusterSelectionList is a list of selections.
type ClusterSelectionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's standard metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the selections.
	Items []ClusterSelection `json:"items"`
}

// ClusterSelectionSpec says which clusters are selected, and in which order.
type ClusterSelectionSpec struct {
	// registryRef names the ClusterRegistry. It can't be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the registry of a selection can't be changed: create another ClusterSelection"
	RegistryRef RegistryReference `json:"registryRef"`

	// where is a CEL expression that is true for the clusters to select, such as
	// "cluster.labels[?'tier'].orValue('') == 'gold' && cluster.conditions[?'Available'].orValue('') != 'False'".
	// Its variable cluster has the fields name, clusterSet and version (strings), labels,
	// properties and conditions (the status of each, by type), all three maps of strings,
	// capacity and allocatable (maps of quantities by resource), nodes (with total and ready)
	// and taints (a list, each with key, value and effect). A cluster for which it fails, as
	// for want of a label, is not selected. Functions are those of CEL in
	// Kubernetes whose cost has a bound. Default: all clusters that the namespace may see.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Where string `json:"where,omitempty"`

	// orderBy says which clusters come first: the first expression decides, and each of the
	// following between clusters that are equal so far. Then the name decides. At most 4.
	// Default: by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	OrderBy []ClusterOrder `json:"orderBy,omitempty"`

	// limit is how many clusters are selected at most, 1 to 1000. Default: 1000.
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Limit int32 `json:"limit,omitempty"`

	// tolerations let clusters be selected in spite of their taints, as of pods and nodes: a
	// cluster with a taint that is not tolerated is not selected (NoSchedule), not selected
	// and given up at once (NoExecute), or selected after all others (PreferNoSchedule). At
	// most 16. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []ClusterToleration `json:"tolerations,omitempty"`

	// stabilizationSeconds is how long a selected cluster stays selected after it has ceased to
	// match, or after others have come before it, without interruption: 0 to 86400. The order
	// of the same clusters changes once in this time at most. A cluster that the registry no
	// longer has, or that the namespace may no longer see, goes at once. Default: 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	StabilizationSeconds *int32 `json:"stabilizationSeconds,omitempty"`
}

// RegistryReference names a ClusterRegistry.
type RegistryReference struct {
	// name is the name of the ClusterRegistry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	// namespace is the namespace of the ClusterRegistry.
	// +required
	Namespace NamespaceName `json:"namespace"`
}

// ClusterOrder orders clusters by the value of an expression.
type ClusterOrder struct {
	// expression is a CEL expression with the variable cluster, as where has it, whose value is
	// a number, a quantity, a string or true or false, such as "cluster.allocatable['cpu']".
	// Clusters for which it fails come last.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`

	// direction is Ascending, which has the least value (or false) first, or Descending.
	// Default: Ascending.
	// +optional
	Direction OrderDirection `json:"direction,omitempty"`
}

// OrderDirection is which of two clusters comes first.
//
// +kubebuilder:validation:Enum=Ascending;Descending
type OrderDirection string

const (
	// OrderAscending has the least value first.
	OrderAscending OrderDirection = "Ascending"
	// OrderDescending has the greatest value first.
	OrderDescending OrderDirection = "Descending"
)

// ClusterToleration tolerates taints of clusters.
//
// +kubebuilder:validation:XValidation:rule="!has(self.operator) || self.operator == 'Equal' || !has(self.value)",message="a toleration with operator Exists has no value: remove value, or use operator Equal"
// +kubebuilder:validation:XValidation:rule="has(self.key) || has(self.operator) && self.operator == 'Exists'",message="a toleration without a key tolerates all taints: use operator Exists, or add key"
type ClusterToleration struct {
	// key is the key of the taints. Default: all keys.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`

	// operator is Equal for taints with this value, or Exists for any. Default: Equal.
	// +optional
	Operator TolerationOperator `json:"operator,omitempty"`

	// value is the value of the taints.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`

	// effect is the effect of the taints: NoSchedule, PreferNoSchedule or NoExecute. Default:
	// all effects.
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect,omitempty"`
}

// TolerationOperator is how a toleration compares values.
//
// +kubebuilder:validation:Enum=Equal;Exists
type TolerationOperator string

const (
	// TolerationEqual compares the value.
	TolerationEqual TolerationOperator = "Equal"
	// TolerationExists takes any value.
	TolerationExists TolerationOperator = "Exists"
)

// ClusterSelectionStatus is what was decided.
type ClusterSelectionStatus struct {
	// observedGeneration is the generation of the spec that was decided by.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// selected is the number of decisions.
	// +optional
	Selected int32 `json:"selected,omitempty"`

	// decisions are the clusters that are selected, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Decisions []ClusterDecision `json:"decisions,omitempty"`

	// decisionTime is when the decisions last changed.
	// +optional
	DecisionTime *metav1.Time `json:"decisionTime,omitempty"`

	// conditions are Ready, which is True when the decisions are up to date, and Published,
	// which is True when PlacementDecisions have them.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ClusterDecision is a cluster that is selected.
type ClusterDecision struct {
	// clusterName is the name of the cluster in the registry.
	// +required
	ClusterName string `json:"clusterName"`

	// reason is Matching; or NotMatching, Outranked or Missing of a cluster that is still
	// selected although it has ceased to match, others have come before it, or the registry no
	// longer has it.
	// +required
	Reason DecisionReason `json:"reason"`

	// since is when the cluster has ceased to be among those to select. It is not set of one
	// that is among them.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// DecisionReason is why a cluster is selected.
type DecisionReason string

const (
	// DecisionMatching is among those to select.
	DecisionMatching DecisionReason = "Matching"
	// DecisionNotMatching has ceased to match, and stays for stabilizationSeconds.
	DecisionNotMatching DecisionReason = "NotMatching"
	// DecisionOutranked has as many others before it as there are to select, and stays for
	// stabilizationSeconds.
	DecisionOutranked DecisionReason = "Outranked"
	// DecisionMissing is no longer in the registry, as more than half of the others.
	DecisionMissing DecisionReason = "Missing"
)

// The conditions of a ClusterSelection.
const (
	// SelectionConditionReady is True when the decisions are up to date.
	SelectionConditionReady = "Ready"
	// SelectionConditionPublished is True when PlacementDecisions have the decisions.
	SelectionConditionPublished = "Published"
)

// ClusterSelections says of which clusters selections in a namespace choose.
type ClusterSelections struct {
	// namespace is a namespace of the host cluster. If it is not the registry's own, it needs
	// the label registry.clusterregistry.io/NAME with the registry's namespace as its value,
	// where NAME is the registry's name, and an administrator must have allowed the
	// registry's namespace to reach others (--aggregated-namespaces of the operator).
	// +required
	Namespace NamespaceName `json:"namespace"`

	// selector selects, by their labels, the clusters of the registry that the namespace may
	// see. Default: all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// clusterSets are the ClusterSets whose clusters the namespace may see, of those that
	// selector selects. At most 32. Required if spec.server.authorization.visibility is
	// ClusterSets. Default: all clusters, in a set or not.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ClusterSets []ClusterSetName `json:"clusterSets,omitempty"`
}

// ClusterSetName is the name of a ClusterSet.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write the name of a ClusterSet, such as production"
type ClusterSetName string
