package command

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
)

// Scheme knows both versions of Cluster, and converts between them.
var Scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// Validate returns what the registry would refuse of a cluster, before it is asked.
func Validate(cluster *v1beta1.Cluster) error {
	hub := &clusterregistry.Cluster{}
	if err := Scheme.Convert(cluster, hub, nil); err != nil {
		return Refusedf("cluster %q: %w", cluster.Name, err)
	}
	if faults := validation.Cluster(hub, form.V1beta1); len(faults) > 0 {
		return Refusedf("cluster %q is not valid: %w", cluster.Name, faults.ToAggregate())
	}
	return nil
}

// ID returns a cluster's identity for a message.
func ID(cluster *v1beta1.Cluster) string {
	if cluster.Spec.ID == "" {
		return "no id"
	}
	return fmt.Sprintf("id %s", Plain(cluster.Spec.ID))
}
