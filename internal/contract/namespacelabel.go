package contract

// NamespaceLabel returns the key of the label by which an administrator opens a namespace
// of the host cluster to the controller of a registry: its value is the namespace that the
// registry is in. Whoever may write a ClusterRegistry reaches no other namespaces by it.
func NamespaceLabel(registry string) string { return "registry.clusterregistry.io/" + registry }

// ExportsBinding returns the name of the RoleBinding by which the controller of a registry writes
// objects of some kinds in a namespace, in the words of the manifests. What it writes there goes
// with the binding.
func ExportsBinding(namespace, registry, kinds string) string {
	return "clusterregistry:" + namespace + ":" + registry + ":controller-exports-" + kinds
}

// ByAdministrator is at the end of the name of a binding that the operator may not make, and that
// an administrator makes in its place.
const ByAdministrator = ":by-administrator"
