package clusterapi

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/hosts"
)

// maxText bounds a text of a template once it is filled in, in bytes: all that templates can
// make of an entry is well below what the registry takes.
const maxText = 512

// filling is what the grants of a Cluster's namespace make for its entry.
type filling struct {
	clusterSet string
	access     []v1beta1.Access
	// template is the number of the template that access is of, and hosts where its
	// credentials may go.
	template int
	hosts    hosts.Hosts
	// missing says, for people, which of its ways to sign in can't be made.
	missing []string
}

// fillingOf returns what a Cluster gets: the Cluster itself chooses only among what its namespace
// was given.
func (c *Controller) fillingOf(source *clusterv1.Cluster) (out filling) {
	for _, set := range c.Grants.ClusterSets {
		if set.Namespace == source.Namespace {
			out.clusterSet = set.ClusterSet
		}
	}
	if out.template = slices.IndexFunc(c.Grants.AccessTemplates, func(t AccessTemplate) bool { return t.isFor(source) }); out.template < 0 {
		return out
	}
	template := c.Grants.AccessTemplates[out.template]
	out.hosts = template.hosts
	for i := range template.Access {
		way := *template.Access[i].DeepCopy()
		if err := eachText(&way, func(text string) (string, error) { return expand(text, source) }); err != nil {
			out.missing = append(out.missing, fmt.Sprintf("access %q of clusterAPI.accessTemplates[%d] is not entered: %v", way.Name, out.template, err))
			continue
		}
		out.access = append(out.access, way)
	}
	return out
}

// isFor reports whether a template is for a Cluster.
func (t AccessTemplate) isFor(source *clusterv1.Cluster) bool {
	if !slices.Contains(t.Namespaces, source.Namespace) {
		return false
	}
	for key, value := range t.MatchLabels {
		if has, ok := source.Labels[key]; !ok || has != value {
			return false
		}
	}
	return len(t.InfrastructureKinds) == 0 || slices.Contains(t.InfrastructureKinds, source.Spec.InfrastructureRef.Kind)
}

// expand fills in what is known of a Cluster. What is filled in is the name of an object, which
// begins with a letter or a digit and has nothing that a program or a shell reads in another
// way; whoever may write the Cluster could else fill in anything.
func expand(text string, source *clusterv1.Cluster) (string, error) {
	var fault error
	made := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value := map[string]string{"{namespace}": source.Namespace, "{name}": source.Name, "{controlPlane}": source.Spec.ControlPlaneRef.Name}[found]
		if value == "" {
			fault = fmt.Errorf("the Cluster has nothing for %s", found)
		} else if len(validation.IsDNS1123Subdomain(value)) > 0 {
			fault = fmt.Errorf("what the Cluster has for %s is not the name of an object", found)
		}
		return value
	})
	if fault == nil && len(made) > maxText {
		fault = fmt.Errorf("it has a text of more than %d bytes for this Cluster: use shorter names", maxText)
	}
	if fault != nil {
		return "", fault
	}
	return made, nil
}

// outside returns the first endpoint of an entry to which the credentials of the template may
// not go; nil for none.
func (f filling) outside(entry *v1beta1.Cluster) *v1beta1.Endpoint {
	for i := range entry.Spec.Endpoints {
		if e := &entry.Spec.Endpoints[i]; e.URL != "" && !f.hosts.Lead(e.URL) {
			return e
		}
	}
	return nil
}

// reached reports whether an entry leads anywhere yet.
func reached(entry *v1beta1.Cluster) bool {
	return slices.ContainsFunc(entry.Spec.Endpoints, func(e v1beta1.Endpoint) bool { return e.URL != "" })
}

// allowed returns the ways to sign in that an entry may have: none while one of its endpoints
// leads where the credentials may not go, or while it has none.
func (f filling) allowed(entry *v1beta1.Cluster) []v1beta1.Access {
	if !reached(entry) || f.outside(entry) != nil {
		return nil
	}
	return f.access
}

// withheld says, for people, what of the access of its template an entry does not have that has
// an endpoint; empty when it has all.
func (f filling) withheld(entry *v1beta1.Cluster) string {
	if f.template < 0 || !reached(entry) {
		return ""
	}
	if at := f.outside(entry); at != nil {
		return fmt.Sprintf("clusterAPI.accessTemplates[%d] is not entered: its hosts do not have that of the endpoint %q, %s, and credentials must not go there: add it to hosts if your platform runs that server, or correct the endpoint", f.template, at.Name, at.URL)
	}
	return strings.Join(f.missing, "; ")
}
