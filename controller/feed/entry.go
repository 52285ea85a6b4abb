package feed

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

// entry is what is published of a cluster. It is never changed.
type entry struct {
	Name, ID, Set string
	// Labels are those that are published, and all those that selectors select by.
	Labels, all map[string]string
	// Provider, Address and ca are how clients get there, empty for nowhere.
	Provider, Address string
	ca                []byte
	// Verified says that Address is what the entry says now, and Reason why it is not.
	Verified bool
	Reason   string

	uid     types.UID
	created time.Time
	// withheld says that there is no Address although the entry offers one, and pending that it
	// may be verified in a moment.
	withheld, pending bool
	// former are the sets that it was in, and moved is when it left the last of them.
	former []string
	moved  time.Time
}

// CA returns the certificates in PEM, in base64: in one line, whatever the format.
func (e *entry) CA() string { return base64.StdEncoding.EncodeToString(e.ca) }

// same reports whether two entries are published in the same way.
func (e *entry) same(as *entry) bool {
	return as != nil && e.Name == as.Name && e.ID == as.ID && e.Set == as.Set && e.Provider == as.Provider && e.Address == as.Address &&
		e.Verified == as.Verified && e.Reason == as.Reason && e.uid == as.uid && bytes.Equal(e.ca, as.ca) && maps.Equal(e.Labels, as.Labels) && maps.Equal(e.all, as.all)
}

// entryOf returns what is published of a cluster, given what is known of its endpoint and what was
// published before, nil for nothing.
func (s Settings) entryOf(cluster *v1beta1.Cluster, known format.Known, before *entry) *entry {
	out := &entry{Name: cluster.Name, Labels: map[string]string{}, all: cluster.Labels, uid: cluster.UID, created: cluster.CreationTimestamp.Time}
	if before != nil {
		out.former, out.moved = before.former, before.moved
	}
	// The registry takes no others, and what it holds may be older than that.
	if len(validation.IsDNS1123Subdomain(cluster.Spec.ID)) == 0 {
		out.ID = cluster.Spec.ID
	}
	if len(validation.IsDNS1123Subdomain(cluster.Spec.ClusterSet)) == 0 {
		out.Set = cluster.Spec.ClusterSet
	}
	for key, value := range s.target.Copied(cluster) {
		if len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 {
			out.Labels[key] = value
		}
	}
	endpoint, provider, reason := s.offer(cluster)
	switch {
	case reason != "":
		out.Reason = reason
	case known.Refused():
		out.Reason = reasonRefused
	case known.Verified:
		out.Provider, out.Address, out.ca, out.Verified = provider, endpoint.URL, certificates(endpoint.CABundle), true
	// Where clients were led stays until the new address is verified, as long as the same
	// credentials may go there.
	case before != nil && before.Address != "" && before.uid == cluster.UID && before.Provider == provider && s.target.MayLead(provider, before.Address):
		out.Provider, out.Address, out.ca, out.Reason = before.Provider, before.Address, before.ca, reasonLastVerified
	case !known.Asked:
		out.Reason = reasonNotAsked
	default:
		out.Reason = reasonNotVerified
	}
	out.withheld = reason == "" && out.Address == ""
	out.pending = out.withheld && !known.Refused() && known.Failures < failures
	return out
}

// left returns an entry that was in another set before: whoever saw it there has not seen it go.
func (e *entry) left(before *entry, now time.Time) *entry {
	if before != nil && before.Set != "" && before.Set != e.Set {
		e.former, e.moved = append(slices.Clone(e.former), before.Set), now
		slices.Sort(e.former)
		e.former = slices.Compact(e.former)
	}
	return e
}

// certificates returns the certificates of a bundle, and nothing else that it has. A bundle of
// nothing else is not copied: there are many.
func certificates(bundle []byte) []byte {
	var out []byte
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	if bytes.Equal(out, bundle) {
		return bundle
	}
	return out
}
