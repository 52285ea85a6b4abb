package remainder

import (
	"encoding/json"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// A remainder is a JSON object with a member for each version that the object
// holds more of than the stored version can, and those for what an older release has
// no field for: see newer. Members with other names are of a newer release. These are
// the types of the known versions.
type (
	alpha struct {
		Spec v1alpha1.ClusterSpec `json:"spec"`
	}
	beta struct {
		Spec   v1beta1.ClusterSpec    `json:"spec"`
		Status *v1beta1.ClusterStatus `json:"status,omitempty"`
	}
)

// of returns what a version has no field for of a cluster, or "". What older releases
// have no field for was taken out of it.
func of(cluster *clusterregistry.Cluster, newer newer, version string) (string, error) {
	members := map[string]json.RawMessage{}
	if cluster.Remainder != "" {
		if err := json.Unmarshal([]byte(cluster.Remainder), &members); err != nil {
			return "", err
		}
	}
	if err := newer.set(members); err != nil {
		return "", err
	}
	needsBeta := version == form.V1alpha1 && !alphaIsAll(cluster)
	if needsBeta {
		var content beta
		if err := v1beta1.Convert_clusterregistry_ClusterSpec_To_v1beta1_ClusterSpec(&cluster.Spec, &content.Spec, nil); err != nil {
			return "", err
		}
		if cluster.Status != nil {
			content.Status = &v1beta1.ClusterStatus{}
			if err := v1beta1.Convert_clusterregistry_ClusterStatus_To_v1beta1_ClusterStatus(cluster.Status, content.Status, nil); err != nil {
				return "", err
			}
		}
		if err := set(members, form.V1beta1, content); err != nil {
			return "", err
		}
	}
	// Beside the form of v1beta1, be it stored or remaining, that of v1alpha1
	// remains when it isn't what follows from there.
	if (needsBeta || version == form.V1beta1) && !alphaFollows(&cluster.Spec) {
		var content alpha
		if err := v1alpha1.Convert_clusterregistry_ClusterSpec_To_v1alpha1_ClusterSpec(&cluster.Spec, &content.Spec, nil); err != nil {
			return "", err
		}
		if err := set(members, form.V1alpha1, content); err != nil {
			return "", err
		}
	}
	return text(members)
}

// add puts a remainder, which may be empty, into a cluster that was decoded from
// a version.
func add(remainder string, cluster *clusterregistry.Cluster, version string) error {
	var members map[string]json.RawMessage
	if remainder != "" {
		if err := json.Unmarshal([]byte(remainder), &members); err != nil {
			return err
		}
	}
	stored := &clusterregistry.Cluster{Spec: cluster.Spec}
	rich, isRich := members[form.V1beta1]
	if isRich {
		if err := addBeta(rich, stored); err != nil {
			return err
		}
	}
	if isRich || version == form.V1beta1 {
		form.DeriveV1alpha1(&stored.Spec)
	}
	if plain, ok := members[form.V1alpha1]; ok {
		var content alpha
		if err := json.Unmarshal(plain, &content); err != nil {
			return err
		}
		// This sets no more than v1alpha1's form.
		if err := v1alpha1.Convert_v1alpha1_ClusterSpec_To_clusterregistry_ClusterSpec(&content.Spec, &stored.Spec, nil); err != nil {
			return err
		}
	}
	newer, err := takeNewer(members)
	if err != nil {
		return err
	}
	delete(members, form.V1alpha1)
	delete(members, form.V1beta1)
	if stored.Remainder, err = text(members); err != nil {
		return err
	}
	switch {
	case version == form.V1alpha1 && isRich:
		// The object as it is stored may have been written after the remainder.
		form.Restore(form.V1alpha1, cluster, stored)
	case version == form.V1beta1:
		form.Restore(form.V1beta1, cluster, stored)
	}
	cluster.Remainder = stored.Remainder
	newer.addTo(cluster)
	return nil
}

// addBeta puts what v1beta1 holds of a cluster into it.
func addBeta(rich json.RawMessage, cluster *clusterregistry.Cluster) error {
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

// alphaFollows reports whether the form of v1alpha1 is what a server of any release
// makes of that of v1beta1.
func alphaFollows(spec *clusterregistry.ClusterSpec) bool {
	follows := *spec
	form.DeriveV1alpha1(&follows)
	return equality.DeepEqual(follows, *spec)
}

func set(members map[string]json.RawMessage, version string, content any) error {
	data, err := json.Marshal(content)
	members[version] = data
	return err
}

// text returns a remainder with the given members, or "" for none.
func text(members map[string]json.RawMessage) (string, error) {
	if len(members) == 0 {
		return "", nil
	}
	data, err := json.Marshal(members)
	return string(data), err
}
