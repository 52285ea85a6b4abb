package feed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/labelkeys"
)

// Settings are what is published of clusters, as spec.controllers.feed of a ClusterRegistry says
// it. The zero value publishes no addresses and no labels.
type Settings struct {
	target    format.Target
	backstage map[string]Backstage
}

// Backstage is how Backstage signs in by a provider.
type Backstage struct {
	AuthProvider      string `json:"authProvider"`
	OIDCTokenProvider string `json:"oidcTokenProvider,omitempty"`
}

// word is what Backstage's annotations may have.
var word = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// ParseSettings reads settings from an object in JSON.
func ParseSettings(content []byte) (Settings, error) {
	var said struct {
		Labels    []string `json:"labels,omitempty"`
		Providers []struct {
			Name      string     `json:"name"`
			Hosts     []string   `json:"hosts"`
			Backstage *Backstage `json:"backstage,omitempty"`
		} `json:"providers,omitempty"`
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&said); err != nil {
		return Settings{}, err
	}
	out := Settings{target: format.Target{Selector: labels.Everything()}, backstage: map[string]Backstage{}}
	var err error
	if out.target.Labels, err = labelkeys.Parse(said.Labels); err != nil {
		return Settings{}, err
	}
	for _, provider := range said.Providers {
		signIn, err := format.Hosted(provider.Name, provider.Hosts)
		if err != nil {
			return Settings{}, err
		}
		if _, twice := out.backstage[provider.Name]; twice {
			return Settings{}, fmt.Errorf("the provider %q is there twice: put all of its hosts into one", provider.Name)
		}
		out.target.SignIn = append(out.target.SignIn, signIn)
		out.backstage[provider.Name] = Backstage{}
		if b := provider.Backstage; b != nil {
			if !word.MatchString(b.AuthProvider) || b.OIDCTokenProvider != "" && !word.MatchString(b.OIDCTokenProvider) {
				return Settings{}, fmt.Errorf("backstage of provider %q needs an authProvider, such as oidc, and may have an oidcTokenProvider, such as okta", provider.Name)
			}
			out.backstage[provider.Name] = *b
		}
	}
	return out, nil
}

// plain are addresses of which nothing is read as more than an address.
var plain = regexp.MustCompile(`^https://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$`)

// The reasons for which a cluster has no address, besides those of package format.
const (
	reasonUnsupported  = "EndpointUnsupported"
	reasonRefused      = "AddressRefused"
	reasonNotAsked     = "NotAsked"
	reasonNotVerified  = "NotVerified"
	reasonLastVerified = "LastVerified"
)

// offer returns where clients would be led by an entry, and by which provider they sign in, or the
// reason why they are led nowhere.
func (s Settings) offer(cluster *v1beta1.Cluster) (endpoint v1beta1.Endpoint, provider, reason string) {
	of, why := format.OfferOf(cluster, s.target)
	if why != nil {
		return endpoint, "", why.Reason
	}
	way, _, why := s.target.Chosen(of)
	switch {
	case why != nil:
		return endpoint, "", why.Reason
	// A client that is told neither would ask another server, or none.
	case of.Endpoint.TLSServerName != "" || of.Endpoint.ProxyURL != "" || !plain.MatchString(of.Endpoint.URL):
		return endpoint, "", reasonUnsupported
	}
	return of.Endpoint, way.Provider, ""
}
