package remainder

import (
	"bytes"
	"encoding/json"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// A remainder is a JSON object with a member for the version that the object is not
// stored in, if that holds more than follows from the one that it is stored in. Members
// with other names are of a newer release. These are the types of the known versions.
type (
	alpha struct {
		Spec v1alpha1.ClusterSpec `json:"spec"`
		// CAFollows says that the CA bundle is left out, since it is that of v1beta1's form.
		CAFollows bool `json:"caFollows,omitempty"`
	}
	beta struct {
		Spec   v1beta1.ClusterSpec    `json:"spec"`
		Status *v1beta1.ClusterStatus `json:"status,omitempty"`
	}
)

// of returns what a version has no field for of a cluster, or "".
func of(cluster *clusterregistry.Cluster, version string) (string, error) {
	members, err := membersOf(cluster.Remainder)
	if err != nil {
		return "", err
	}
	switch {
	case version == form.V1alpha1 && !alphaIsAll(cluster):
		err = setBeta(members, cluster)
	case version == form.V1beta1:
		err = setAlpha(members, &cluster.Spec)
	}
	if err != nil {
		return "", err
	}
	return text(members)
}

// add puts a remainder, which may be empty, into a cluster that was decoded from
// a version.
func add(remainder string, cluster *clusterregistry.Cluster, version string) error {
	members, err := membersOf(remainder)
	if err != nil {
		return err
	}
	switch version {
	case form.V1alpha1:
		err = addBeta(members[form.V1beta1], cluster)
	case form.V1beta1:
		err = addAlpha(members[form.V1alpha1], &cluster.Spec)
	}
	if err != nil {
		return err
	}
	delete(members, form.V1alpha1)
	delete(members, form.V1beta1)
	cluster.Remainder, err = text(members)
	return err
}

// setAlpha sets the form of v1alpha1 unless it follows from that of v1beta1. What follows is
// not stored, and neither is a CA bundle that does though the rest does not: it is most of a
// cluster. So every release has to derive the same: a client may read from a server of one
// and write to one of another.
func setAlpha(members map[string]json.RawMessage, spec *clusterregistry.ClusterSpec) error {
	follows := *spec
	form.FillV1alpha1(&follows)
	if equality.DeepEqual(follows, *spec) {
		return nil
	}
	var content alpha
	if err := v1alpha1.Convert_clusterregistry_ClusterSpec_To_v1alpha1_ClusterSpec(spec, &content.Spec, nil); err != nil {
		return err
	}
	endpoints := &content.Spec.KubernetesAPIEndpoints
	if len(endpoints.CABundle) > 0 && bytes.Equal(endpoints.CABundle, follows.KubernetesAPIEndpoints.CABundle) {
		endpoints.CABundle, content.CAFollows = nil, true
	}
	return set(members, form.V1alpha1, content)
}

// addAlpha puts v1alpha1's form into a spec that was stored in v1beta1, if it has one of
// its own. The spec has what follows from v1beta1's form.
func addAlpha(plain json.RawMessage, spec *clusterregistry.ClusterSpec) error {
	if plain == nil {
		return nil
	}
	var content alpha
	if err := json.Unmarshal(plain, &content); err != nil {
		return err
	}
	if content.CAFollows {
		content.Spec.KubernetesAPIEndpoints.CABundle = spec.KubernetesAPIEndpoints.CABundle
	}
	return v1alpha1.Convert_v1alpha1_ClusterSpec_To_clusterregistry_ClusterSpec(&content.Spec, spec, nil)
}

func setBeta(members map[string]json.RawMessage, cluster *clusterregistry.Cluster) error {
	var content beta
	if err := v1beta1.Convert_clusterregistry_ClusterSpec_To_v1beta1_ClusterSpec(&cluster.Spec, &content.Spec, nil); err != nil {
		return err
	}
	if cluster.Status != nil {
		content.Status = &v1beta1.ClusterStatus{}
		if err := v1beta1.Convert_clusterregistry_ClusterStatus_To_v1beta1_ClusterStatus(cluster.Status, content.Status, nil); err != nil {
			return err
		}
	}
	return set(members, form.V1beta1, content)
}

// addBeta puts what v1beta1 holds into a cluster that was stored in v1alpha1, if that is
// more.
func addBeta(rich json.RawMessage, cluster *clusterregistry.Cluster) error {
	if rich == nil {
		return nil
	}
	var content beta
	if err := json.Unmarshal(rich, &content); err != nil {
		return err
	}
	if err := v1beta1.Convert_v1beta1_ClusterSpec_To_clusterregistry_ClusterSpec(&content.Spec, &cluster.Spec, nil); err != nil {
		return err
	}
	if content.Status == nil {
		return nil
	}
	cluster.Status = &clusterregistry.ClusterStatus{}
	return v1beta1.Convert_v1beta1_ClusterStatus_To_clusterregistry_ClusterStatus(content.Status, cluster.Status, nil)
}

// alphaIsAll reports whether the rest of a cluster follows from what v1alpha1
// holds of it.
func alphaIsAll(cluster *clusterregistry.Cluster) bool {
	spec := clusterregistry.ClusterSpec{KubernetesAPIEndpoints: cluster.Spec.KubernetesAPIEndpoints, AuthInfo: cluster.Spec.AuthInfo}
	form.FillV1beta1(&spec)
	if !equality.DeepEqual(spec, cluster.Spec) {
		return false
	}
	return cluster.Status == nil || equality.DeepEqual(*cluster.Status, clusterregistry.ClusterStatus{Conditions: cluster.Status.Conditions, Version: cluster.Status.Version})
}

func set(members map[string]json.RawMessage, version string, content any) error {
	data, err := json.Marshal(content)
	members[version] = data
	return err
}

// membersOf returns the members of a remainder, none for "".
func membersOf(remainder string) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if remainder == "" {
		return members, nil
	}
	return members, json.Unmarshal([]byte(remainder), &members)
}

// text returns a remainder with the given members, or "" for none.
func text(members map[string]json.RawMessage) (string, error) {
	if len(members) == 0 {
		return "", nil
	}
	data, err := json.Marshal(members)
	return string(data), err
}
