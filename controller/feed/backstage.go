package feed

import (
	"iter"
)

// entity is a Resource of Backstage's catalog.
type entity struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   entityMetadata `json:"metadata"`
	Spec       entitySpec     `json:"spec"`
}

type entityMetadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]string `json:"labels,omitempty"`
}

type entitySpec struct {
	Type  string `json:"type"`
	Owner string `json:"owner"`
}

// The annotations by which the Kubernetes plugin of Backstage finds clusters, and where Backstage
// has an entity from.
const (
	annotationServer   = "kubernetes.io/api-server"
	annotationCA       = "kubernetes.io/api-server-certificate-authority"
	annotationProvider = "kubernetes.io/auth-provider"
	annotationOIDC     = "kubernetes.io/oidc-token-provider"
	annotationLocation = "backstage.io/managed-by-location"
	annotationOrigin   = "backstage.io/managed-by-origin-location"
)

// writeBackstage writes entities of the type kubernetes-cluster. Only those have the annotations by
// which the plugin connects that have an address and a CA, and whose provider the settings have for
// Backstage.
func writeBackstage(s *Server, out *limited, entries iter.Seq[*entry]) error {
	location := "url:" + s.Audience + "/v1/backstage.json"
	return list(out, "", each(entries, func(e *entry) (entity, bool) {
		annotations := map[string]string{annotationLocation: location, annotationOrigin: location}
		if by := s.backstage[e.Provider]; e.Address != "" && len(e.ca) > 0 && by.AuthProvider != "" {
			annotations[annotationServer], annotations[annotationCA], annotations[annotationProvider] = e.Address, e.CA(), by.AuthProvider
			if by.OIDCTokenProvider != "" {
				annotations[annotationOIDC] = by.OIDCTokenProvider
			}
		}
		return entity{"backstage.io/v1alpha1", "Resource", entityMetadata{e.Name, annotations, e.Labels}, entitySpec{"kubernetes-cluster", "unknown"}}, true
	}), "")
}
