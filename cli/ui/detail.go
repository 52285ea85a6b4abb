package ui

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// longestDetail is how long a text of a cluster that is open may be, in characters.
const longestDetail = 2000

// Detail is a cluster that is open.
type Detail struct {
	Row
	ID         string      `json:"id,omitempty"`
	Created    *time.Time  `json:"created,omitempty"`
	Manager    string      `json:"manager,omitempty"`
	Source     string      `json:"source,omitempty"`
	Heartbeat  int32       `json:"heartbeat,omitempty"`
	Taints     []string    `json:"taints,omitempty"`
	Endpoints  []Endpoint  `json:"endpoints"`
	Access     []Access    `json:"access"`
	Conditions []Condition `json:"conditions"`
	Reporters  []Reporter  `json:"reporters"`
	Properties []Property  `json:"properties"`
}

// Endpoint is a way to reach a cluster.
type Endpoint struct {
	Name        string      `json:"name"`
	URL         string      `json:"url,omitempty"`
	ServerName  string      `json:"serverName,omitempty"`
	Proxy       string      `json:"proxy,omitempty"`
	Clients     string      `json:"clients,omitempty"`
	Authorities []Authority `json:"authorities,omitempty"`
}

// Authority is a CA certificate.
type Authority struct {
	Subject  string    `json:"subject"`
	NotAfter time.Time `json:"notAfter"`
	SHA256   string    `json:"sha256"`
}

// Access is a way to sign in to a cluster.
type Access struct {
	Name     string `json:"name"`
	Audience string `json:"audience"`
	Kind     string `json:"kind"`
	// How is a program with its arguments, an issuer, or an object.
	How string `json:"how,omitempty"`
}

// Condition is a condition of a cluster or a registry.
type Condition struct {
	Type    string     `json:"type"`
	Status  string     `json:"status"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
}

// Reporter is a controller that reports a cluster.
type Reporter struct {
	Name       string      `json:"name"`
	Seen       *time.Time  `json:"seen,omitempty"`
	Conditions []Condition `json:"conditions"`
}

// Property is a fact of a cluster.
type Property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// detailOf returns all that the page shows of a cluster.
func detailOf(cluster *v1beta1.Cluster) Detail {
	spec := &cluster.Spec
	out := Detail{
		Row: rowOf(cluster), ID: detail(spec.ID), Created: at(&cluster.CreationTimestamp),
		Endpoints: []Endpoint{}, Access: []Access{}, Conditions: []Condition{}, Reporters: []Reporter{}, Properties: []Property{},
	}
	if spec.Manager != nil {
		out.Manager = detail(spec.Manager.Name)
	}
	if s := spec.SourceRef; s != nil {
		out.Source = reference(s.Kind, s.Namespace, s.Name)
	}
	if spec.Heartbeat != nil {
		out.Heartbeat = spec.Heartbeat.PeriodSeconds
	}
	for _, taint := range spec.Taints {
		out.Taints = append(out.Taints, detail((&corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)}).ToString()))
	}
	for _, e := range spec.Endpoints {
		out.Endpoints = append(out.Endpoints, Endpoint{
			Name: detail(e.Name), URL: detail(e.URL), ServerName: detail(e.TLSServerName), Proxy: detail(e.ProxyURL),
			Clients: detail(strings.Join(e.ClientCIDRs, ", ")), Authorities: authorities(e.CABundle),
		})
	}
	for i := range spec.Access {
		out.Access = append(out.Access, accessOf(&spec.Access[i]))
	}
	if s := cluster.Status; s != nil {
		out.Conditions = conditions(s.Conditions)
		for _, r := range s.Reporters {
			out.Reporters = append(out.Reporters, Reporter{detail(r.Name), at(r.LastSeen), conditions(r.Conditions)})
		}
		for _, p := range s.Properties {
			out.Properties = append(out.Properties, Property{detail(p.Name), detail(p.Value)})
		}
		out.Properties = append(out.Properties, sizes(s)...)
	}
	return out
}

// sizes returns how large a cluster is, as properties.
func sizes(s *v1beta1.ClusterStatus) (out []Property) {
	if s.Nodes != nil {
		out = append(out, Property{"nodes ready", ratio(s.Nodes.Ready, s.Nodes.Total)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Capacity)) {
		quantity := s.Capacity[name]
		out = append(out, Property{"capacity " + detail(name), quantity.String()})
	}
	return out
}

// accessOf returns a way to sign in. Values of environment variables and of a provider's
// configuration stay in the registry: they are for programs.
func accessOf(a *v1beta1.Access) Access {
	out := Access{Name: detail(a.Name), Audience: detail(string(a.Audience))}
	switch {
	case a.Exec != nil:
		out.Kind, out.How = "program", detail(strings.Join(append([]string{a.Exec.Command}, a.Exec.Args...), " "))
	case a.OIDC != nil:
		out.Kind, out.How = "OIDC", detail(a.OIDC.IssuerURL+", client "+a.OIDC.ClientID)
	case a.ObjectRef != nil:
		out.Kind, out.How = "object", reference(a.ObjectRef.Kind, a.ObjectRef.Namespace, a.ObjectRef.Name)
	case a.Provider != nil:
		out.Kind, out.How = "provider", detail(a.Provider.Type)
	}
	return out
}

// reference returns an object's name as a person writes it.
func reference(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return detail(kind + " " + name)
}

// conditions returns conditions, in their order.
func conditions(all []metav1.Condition) []Condition {
	out := []Condition{}
	for _, c := range all {
		out = append(out, Condition{detail(c.Type), string(c.Status), detail(c.Reason), detail(c.Message), at(&c.LastTransitionTime)})
	}
	return out
}

// authorities returns the certificates of a bundle.
func authorities(bundle []byte) (out []Authority) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue // the registry admits only what can be parsed
		}
		sum := sha256.Sum256(certificate.Raw)
		out = append(out, Authority{detail(certificate.Subject.String()), certificate.NotAfter.UTC(), hex.EncodeToString(sum[:])})
	}
	return out
}

func detail(s string) string { return cut(s, longestDetail) }
