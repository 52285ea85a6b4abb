package clusterapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/hosts"
)

// Grants are what entries get that Cluster API does not know. The registry's owner gives it to
// namespaces: whoever may write a Cluster gets nothing that its namespace was not given.
type Grants struct {
	// AccessTemplates say how to sign in. The first for a Cluster counts, alone.
	AccessTemplates []AccessTemplate `json:"accessTemplates,omitempty"`
	// ClusterSets are those of namespaces.
	ClusterSets []NamespaceClusterSet `json:"clusterSets,omitempty"`
}

// AccessTemplate says how to sign in to clusters of some namespaces, and where credentials may go.
type AccessTemplate struct {
	Namespaces          []string          `json:"namespaces"`
	MatchLabels         map[string]string `json:"matchLabels,omitempty"`
	InfrastructureKinds []string          `json:"infrastructureKinds,omitempty"`
	Hosts               []string          `json:"hosts"`
	Access              []v1beta1.Access  `json:"access"`

	// hosts is what Hosts says.
	hosts hosts.Hosts
}

// NamespaceClusterSet says in which ClusterSet the entries of a namespace are.
type NamespaceClusterSet struct {
	Namespace  string `json:"namespace"`
	ClusterSet string `json:"clusterSet"`
}

// ParseGrants returns the grants that a text in JSON has. Those to namespaces that are not read
// mean nothing.
func ParseGrants(content []byte) (Grants, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var out Grants
	if err := decoder.Decode(&out); err != nil {
		return Grants{}, err
	}
	for i := range out.AccessTemplates {
		if err := out.AccessTemplates[i].complete(); err != nil {
			return Grants{}, fmt.Errorf("accessTemplates[%d]: %w", i, err)
		}
	}
	for i, set := range out.ClusterSets {
		if set.Namespace == "" || set.ClusterSet == "" {
			return Grants{}, fmt.Errorf("clusterSets[%d]: it needs a namespace and a clusterSet", i)
		}
		if slices.ContainsFunc(out.ClusterSets[:i], func(other NamespaceClusterSet) bool { return other.Namespace == set.Namespace }) {
			return Grants{}, fmt.Errorf("clusterSets[%d]: the namespace %q has a ClusterSet already", i, set.Namespace)
		}
	}
	return out, nil
}

// complete fills in what a template may leave out, and says what is wrong with it.
func (t *AccessTemplate) complete() error {
	if len(t.Namespaces) == 0 || len(t.Access) == 0 {
		return fmt.Errorf("it needs namespaces and access")
	}
	var err error
	if t.hosts, err = hosts.Parse(t.Hosts); err != nil {
		return err
	}
	for i := range t.Access {
		if err := complete(&t.Access[i]); err != nil {
			return fmt.Errorf("access %q: %w", t.Access[i].Name, err)
		}
	}
	return nil
}

// complete fills in what the registry requires of a way to sign in and a template may leave out,
// and says what is wrong with it. What looks like a credential the registry refuses.
func complete(way *v1beta1.Access) error {
	if way.Audience == "" {
		way.Audience = v1beta1.AudienceController
	}
	if (way.Exec == nil) == (way.Provider == nil) || way.OIDC != nil || way.ObjectRef != nil {
		return fmt.Errorf("it must have exactly one of exec and provider")
	}
	program := ""
	if way.Exec != nil {
		program = way.Exec.Command
		if way.Exec.APIVersion == "" {
			way.Exec.APIVersion = "client.authentication.k8s.io/v1"
		}
	} else {
		program = way.Provider.Type
	}
	if strings.ContainsAny(program+way.Name, "{}") {
		return fmt.Errorf("%q: a Cluster chooses neither the name nor the program", program)
	}
	return eachText(way, func(text string) (string, error) { return text, wellFormed(text) })
}

var (
	// known is what may stand in braces in a text of a template.
	known = regexp.MustCompile(`^\{(namespace|name|controlPlane)\}$`)
	// choosable is what whoever may write a Cluster chooses of that.
	choosable = regexp.MustCompile(`\{(name|controlPlane)\}`)
	// pinned is the namespace between characters that no value has: two texts that agree there
	// are of one namespace.
	pinned = regexp.MustCompile(`(^|[^-.A-Za-z0-9}])\{namespace\}($|[^-.A-Za-z0-9{])`)
)

// wellFormed says what is wrong with a text of a template.
func wellFormed(text string) error {
	for _, found := range placeholder.FindAllString(text, -1) {
		if !known.MatchString(found) {
			return fmt.Errorf("%q has %s: only {namespace}, {name} and {controlPlane} are known", text, found)
		}
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(text, ""), "{}") {
		return fmt.Errorf("%q has a brace alone", text)
	}
	if choosable.MatchString(text) && !pinned.MatchString(text) {
		return fmt.Errorf("%q lets whoever may write a Cluster name a cluster of another namespace: add {namespace}, set off by a character that no name has, such as {namespace}/{name}", text)
	}
	return nil
}

// eachText changes each text of a way to sign in that may depend on the Cluster.
func eachText(way *v1beta1.Access, change func(text string) (string, error)) (err error) {
	if way.Exec != nil {
		for i := range way.Exec.Args {
			if way.Exec.Args[i], err = change(way.Exec.Args[i]); err != nil {
				return err
			}
		}
		for i := range way.Exec.Env {
			if way.Exec.Env[i].Value, err = change(way.Exec.Env[i].Value); err != nil {
				return err
			}
		}
	}
	if way.Provider != nil {
		for _, key := range slices.Sorted(maps.Keys(way.Provider.Config)) {
			if way.Provider.Config[key], err = change(way.Provider.Config[key]); err != nil {
				return err
			}
		}
	}
	return nil
}
