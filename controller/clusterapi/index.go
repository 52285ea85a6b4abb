package clusterapi

import (
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// byEntry is the index of Clusters by the names of the entries that they get.
const byEntry = "entry"

// indexers are those of the Clusters of a namespace.
func (c *Controller) indexers() cache.Indexers {
	return cache.Indexers{byEntry: func(object any) ([]string, error) {
		source, ok := object.(*clusterv1.Cluster)
		if !ok {
			return nil, nil
		}
		if name, err := c.Name.Name(source.Namespace, source.Name); err == nil {
			return []string{name}, nil
		}
		return nil, nil // it gets no entry
	}}
}

// named returns the Clusters that get an entry of a name.
func (v view) named(name string) (out []*clusterv1.Cluster) {
	if v.store == nil {
		return nil
	}
	objects, err := v.store.ByIndex(byEntry, name)
	if err != nil {
		return nil // there is this index
	}
	for _, object := range objects {
		out = append(out, object.(*clusterv1.Cluster))
	}
	return out
}
