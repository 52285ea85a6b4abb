package v1alpha1

// Labels and annotations of what belongs to a registry.
const (
	// LabelManagedBy is on all that the operator makes, with ManagedBy as its value.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the operator's name.
	ManagedBy = "clusterregistry-operator"
	// LabelInstance holds the registry's name.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelNamespace holds the registry's namespace, for objects elsewhere.
	LabelNamespace = GroupName + "/namespace"
	// LabelComponent holds what part of the registry it is.
	LabelComponent = "app.kubernetes.io/component"
	// AnnotationRetain is on what outlives a registry with deletionPolicy Retain.
	AnnotationRetain = GroupName + "/retain"
	// Finalizer holds the deletion of a registry up until nothing of it is left,
	// but for what is retained.
	Finalizer = GroupName + "/cleanup"
)
