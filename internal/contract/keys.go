package contract

// KeyPrefix returns where the servers of an API group keep their objects in etcd: the
// prefix of all their keys, which is their --etcd-prefix. An etcd may have other users.
func KeyPrefix(group string) string { return "/registry/" + group }

// ObjectPrefix returns the prefix of the keys of a resource's objects, such as clusters.
// An object's name follows.
func ObjectPrefix(group, resource string) string { return KeyPrefix(group) + "/" + resource + "/" }
