package clusterapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// EntryTemplate is what the entries of some Clusters have that Cluster API does not know. It
// is the registry owner's: a Cluster chooses among templates, and values in them, and never a
// program.
type EntryTemplate struct {
	Selector            *metav1.LabelSelector `json:"selector,omitempty"`
	InfrastructureKinds []string              `json:"infrastructureKinds,omitempty"`
	ClusterSet          string                `json:"clusterSet,omitempty"`
	Access              []v1beta1.Access      `json:"access,omitempty"`

	chosen labels.Selector
}

// known is what may stand in braces in a text of a template.
var known = regexp.MustCompile(`^\{(name|namespace|entry|infrastructure|controlPlane|label:[A-Za-z0-9._/-]+)\}$`)

// ParseEntryTemplates returns the templates that a text in JSON has, none for the empty text.
func ParseEntryTemplates(text string) ([]EntryTemplate, error) {
	if text == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var out []EntryTemplate
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	for i := range out {
		t := &out[i]
		if t.chosen = labels.Everything(); t.Selector != nil {
			var err error
			if t.chosen, err = metav1.LabelSelectorAsSelector(t.Selector); err != nil {
				return nil, fmt.Errorf("template %d: selector: %w", i, err)
			}
		}
		for j := range t.Access {
			if err := complete(&t.Access[j]); err != nil {
				return nil, fmt.Errorf("template %d: access %q: %w", i, t.Access[j].Name, err)
			}
		}
	}
	return out, nil
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

// wellFormed says which braces of a text mean nothing.
func wellFormed(text string) error {
	for _, found := range placeholder.FindAllString(text, -1) {
		if !known.MatchString(found) {
			return fmt.Errorf("%q has %s: only {name}, {namespace}, {entry}, {infrastructure}, {controlPlane} and {label:KEY} are known", text, found)
		}
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(text, ""), "{}") {
		return fmt.Errorf("%q has a brace alone", text)
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

// filling is what the template of a Cluster makes for its entry.
type filling struct {
	clusterSet string
	access     []v1beta1.Access
	// unknown are the names of ways that need what the Cluster does not say now: they stay as
	// they are.
	unknown []string
}

// fillingOf returns what the first template for a Cluster makes, and what of it can't be made,
// for people.
func (c *Controller) fillingOf(source *clusterv1.Cluster, namespace map[string]string, entry string) (out filling, faults []string) {
	all := merged(source, namespace)
	at := slices.IndexFunc(c.Templates, func(t EntryTemplate) bool {
		return t.chosen.Matches(all) && (len(t.InfrastructureKinds) == 0 || slices.Contains(t.InfrastructureKinds, source.Spec.InfrastructureRef.Kind))
	})
	if at < 0 {
		return filling{}, nil
	}
	out.clusterSet = c.Templates[at].ClusterSet
	for _, template := range c.Templates[at].Access {
		way := *template.DeepCopy()
		err := eachText(&way, func(text string) (string, error) { return expand(text, source, all, entry) })
		if err != nil {
			out.unknown, faults = append(out.unknown, way.Name), append(faults, fmt.Sprintf("access %q of clusterAPI.templates: %v", way.Name, err))
			continue
		}
		out.access = append(out.access, way)
	}
	return out, faults
}

// expand fills in what is known of a Cluster. What it fills in is not looked at again.
func expand(text string, source *clusterv1.Cluster, all labels.Set, entry string) (string, error) {
	var missing error
	made := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, what := "", strings.Trim(found, "{}")
		key, isLabel := strings.CutPrefix(what, "label:")
		switch {
		case isLabel:
			value = all[key]
		case what == "name":
			value = source.Name
		case what == "namespace":
			value = source.Namespace
		case what == "entry":
			value = entry
		case what == "infrastructure":
			value = source.Spec.InfrastructureRef.Name
		case what == "controlPlane":
			value = source.Spec.ControlPlaneRef.Name
		}
		if value == "" && missing == nil {
			missing = fmt.Errorf("the Cluster has nothing for %s", found)
		}
		return value
	})
	return made, missing
}
