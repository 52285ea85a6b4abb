package contract

// LockResource is the resource, in the keys of etcd, of the locks that servers hold while
// they give a cluster its id. A lock is no object that clients see.
const LockResource = "clusterids"

// KeyPrefix returns where the servers of an API group keep their objects in etcd: the
// prefix of all their keys, which is their --etcd-prefix. An etcd may have other users.
func KeyPrefix(group string) string { return "/registry/" + group }

// ObjectPrefix returns the prefix of the keys of a resource's objects, such as clusters.
// An object's name follows.
func ObjectPrefix(group, resource string) string { return KeyPrefix(group) + "/" + resource + "/" }

// OwnerKey is the key of an external etcd that says which registry it belongs to. It is below
// the servers' prefix, since an etcd with users may let them, and so the operator, write nothing
// else. No resource has its name.
const OwnerKey = "/registry/clusterregistry.k8s.io/operator/owner"
