package migration

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	hub "github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/operator/etcd"
)

// need is why a stored cluster is to be written again.
type need string

const (
	// needNothing is that of a cluster that is stored as it should be.
	needNothing need = ""
	// needVersion is that of one that is stored in another version of the API. No
	// upgrade is complete before it is met: a later release may not read that version.
	needVersion need = "version"
	// needRenewal is that of one that v1alpha1 shows as releases up to v0.3.0 did. It is
	// met where that is possible: clients can use such a cluster as before.
	needRenewal need = "renewal"
)

// needs returns what decides why a stored cluster is to be written again: it is stored
// in another version than the given one or, if asked for, is to be renewed.
func needs(version string, renew bool) func(content []byte) (need, error) {
	return func(content []byte) (need, error) {
		stored, err := etcd.StoredVersion(content)
		if err != nil {
			return needNothing, err
		}
		if stored != v1beta1.GroupName+"/"+version {
			return needVersion, nil
		}
		if !renew || version != form.V1beta1 {
			return needNothing, nil
		}
		if before, err := isShownAsBefore(content); !before || err != nil {
			return needNothing, err
		}
		return needRenewal, nil
	}
}

var clusterDecoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// isShownAsBefore reports whether v1alpha1 shows a cluster, which is stored as
// v1beta1, as releases up to v0.3.0 derived it from there.
func isShownAsBefore(content []byte) (bool, error) {
	cluster := &v1beta1.Cluster{}
	if _, _, err := clusterDecoder.Decode(content, nil, cluster); err != nil {
		return false, fmt.Errorf("can't be read: %w", err)
	}
	spec := hub.ClusterSpec{}
	if err := v1beta1.Convert_v1beta1_ClusterSpec_To_clusterregistry_ClusterSpec(&cluster.Spec, &spec, nil); err != nil {
		return false, err
	}
	form.DeriveV1alpha1(&spec)
	var remainder struct {
		V1alpha1 *struct {
			Spec v1alpha1.ClusterSpec `json:"spec"`
		} `json:"v1alpha1"`
	}
	if text := cluster.Annotations[hub.RemainderAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &remainder); err != nil {
			return false, fmt.Errorf("has an annotation %s that can't be read: %w", hub.RemainderAnnotation, err)
		}
	}
	if remainder.V1alpha1 != nil {
		if err := v1alpha1.Convert_v1alpha1_ClusterSpec_To_clusterregistry_ClusterSpec(&remainder.V1alpha1.Spec, &spec, nil); err != nil {
			return false, err
		}
	}
	return form.Outdated(&spec), nil
}
