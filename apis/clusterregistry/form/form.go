// Package form relates the two forms in which the hub holds where a cluster is
// and how to sign in to it: that of v1alpha1 and that of v1beta1. Each can say
// what the other can't: v1alpha1 an address without a scheme, a provider without
// a name or a CA bundle without an endpoint; v1beta1 names, proxies, a CA bundle
// for each endpoint and other ways to sign in than providers.
//
// A write comes in one form. Fill makes the other for a new cluster; Restore
// makes it for a changed one, and changes no more of it than what the writer
// could see and did change.
package form

import (
	"bytes"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
)

// The versions of the API, each with its form.
const (
	V1alpha1 = "v1alpha1"
	V1beta1  = "v1beta1"
)

// FillV1beta1 makes the form of v1beta1 from that of v1alpha1.
func FillV1beta1(spec *clusterregistry.ClusterSpec) {
	spec.Endpoints = endpoints(spec.KubernetesAPIEndpoints, clusterregistry.KubernetesAPIEndpoints{}, nil)
	spec.Access = access(spec.AuthInfo.Providers, nil, nil)
}

// FillV1alpha1 makes the form of v1alpha1 from that of v1beta1.
func FillV1alpha1(spec *clusterregistry.ClusterSpec) {
	spec.KubernetesAPIEndpoints = shownEndpoints(spec.Endpoints)
	spec.AuthInfo = clusterregistry.AuthInfo{Providers: shownProviders(spec.Access)}
}

// Restore completes what a client of a version wrote with what that version
// can't show of the stored cluster. What clients see is what they wrote. What
// they don't see stays, but for entries that they removed: endpoints and ways to
// sign in are matched one by one. Another version than the two, such as none,
// means that the writer saw all. Nothing of stored is changed; written shares
// parts of it.
func Restore(version string, written, stored *clusterregistry.Cluster) {
	switch version {
	case V1alpha1:
		written.Status = restoreStatus(written.Status, stored.Status)
		restoreV1beta1(&written.Spec, &stored.Spec)
	case V1beta1:
		restoreV1alpha1(&written.Spec, &stored.Spec)
	}
	written.Remainder = stored.Remainder
}

// restoreV1beta1 completes what came in the form of v1alpha1.
func restoreV1beta1(written, stored *clusterregistry.ClusterSpec) {
	addresses, auth := written.KubernetesAPIEndpoints, written.AuthInfo
	*written = *stored
	if !equality.DeepEqual(addresses, stored.KubernetesAPIEndpoints) {
		written.KubernetesAPIEndpoints = addresses
		written.Endpoints = endpoints(addresses, stored.KubernetesAPIEndpoints, stored.Endpoints)
	}
	if !equality.DeepEqual(auth, stored.AuthInfo) {
		written.AuthInfo = auth
		written.Access = access(auth.Providers, stored.AuthInfo.Providers, stored.Access)
	}
}

// restoreV1alpha1 completes what came in the form of v1beta1.
func restoreV1alpha1(written, stored *clusterregistry.ClusterSpec) {
	shareBundles(written.Endpoints, stored.Endpoints)
	written.KubernetesAPIEndpoints = spelledEndpoints(shownEndpoints(written.Endpoints), shownEndpoints(stored.Endpoints), stored.KubernetesAPIEndpoints)
	written.AuthInfo.Providers = spelledProviders(shownProviders(written.Access), shownProviders(stored.Access), stored.AuthInfo.Providers)
}

// shareBundles makes CA bundles that did not change those of the stored cluster: what is
// one slice is compared by its address, by those who compare by reflection, too.
func shareBundles(written, stored []clusterregistry.Endpoint) {
	for i := range written {
		for _, s := range stored {
			if bytes.Equal(written[i].CABundle, s.CABundle) {
				written[i].CABundle = s.CABundle
				break
			}
		}
	}
}

// restoreStatus completes a status that came in the form of v1alpha1, which
// shows the conditions, the version and whether there is a status at all.
func restoreStatus(written, stored *clusterregistry.ClusterStatus) *clusterregistry.ClusterStatus {
	if stored == nil {
		return written
	}
	out := *stored
	out.Conditions, out.Version = nil, clusterregistry.ClusterVersion{}
	if written != nil {
		out.Conditions, out.Version = written.Conditions, written.Version
	} else if equality.DeepEqual(out, clusterregistry.ClusterStatus{}) {
		return nil
	}
	return &out
}
