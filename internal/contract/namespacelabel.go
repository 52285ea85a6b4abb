package contract

// NamespaceLabel returns the key of the label by which an administrator opens a namespace
// of the host cluster to the controller of a registry: its value is the namespace that the
// registry is in. Whoever may write a ClusterRegistry reaches no other namespaces by it.
func NamespaceLabel(registry string) string { return "registry.clusterregistry.io/" + registry }
