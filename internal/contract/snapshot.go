package contract

// Snapshot is what is known of a snapshot of etcd. The helper reports it, as a line of
// JSON, in the termination message of the container that has saved it, where the
// operator reads it.
type Snapshot struct {
	// Name is that of the snapshot.
	Name string `json:"name"`
	// Revision is etcd's revision that the snapshot holds, read from its file. It is
	// not below that of any write which etcd acknowledged before it was saved.
	Revision int64 `json:"revision"`
	// Bytes is the size of the file, checksum included.
	Bytes int64 `json:"bytes"`
	// Version is that of the member that it was taken from, such as 3.6.14.
	Version string `json:"version"`
}
