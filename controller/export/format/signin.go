package format

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/hosts"
)

// SignIn is what a client runs to sign in by a provider, and where its credentials may go. Whoever
// writes an entry chooses among these by the name of the provider, and nothing else but the values
// that texts ask for.
type SignIn struct {
	Provider string   `json:"provider"`
	Hosts    []string `json:"hosts"`
	// Exec is a program, AWS what Argo CD has for clusters of EKS, and Flux what Flux has for
	// all: one of them is set.
	Exec *Exec `json:"exec,omitempty"`
	AWS  *AWS  `json:"aws,omitempty"`
	Flux *Flux `json:"flux,omitempty"`

	hosts hosts.Hosts
}

// Exec is a program that prints credentials.
type Exec struct {
	APIVersion  string            `json:"apiVersion,omitempty"`
	Command     string            `json:"command"`
	Args        []string          `json:"args,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	InstallHint string            `json:"installHint,omitempty"`
}

// AWS is a role that is assumed to sign in; none where it is empty.
type AWS struct {
	RoleARN string `json:"roleARN,omitempty"`
}

// Flux is with which identity Flux signs in.
type Flux struct {
	// Provider is generic, or that of a cloud.
	Provider           string   `json:"provider"`
	Audiences          []string `json:"audiences,omitempty"`
	ServiceAccountName string   `json:"serviceAccountName,omitempty"`
}

// By are the kinds of what is run for a provider.
type By string

const (
	// ByExec is a program.
	ByExec By = "exec"
	// ByAWS is what Argo CD has for clusters of EKS.
	ByAWS By = "aws"
	// ByFlux is what Flux has.
	ByFlux By = "flux"
)

// Hosted returns a provider whose clients know themselves what to run: only where their credentials
// may go is said.
func Hosted(provider string, at []string) (SignIn, error) {
	out := SignIn{Provider: provider, Hosts: at}
	if provider == "" {
		return SignIn{}, fmt.Errorf("it has a provider without a name: remove it")
	}
	var err error
	if out.hosts, err = hosts.Parse(at); err != nil {
		return SignIn{}, fmt.Errorf("provider %q: %w", provider, err)
	}
	return out, nil
}

// by returns the kinds that are set.
func (s *SignIn) by() (out []By) {
	for by, set := range map[By]bool{ByExec: s.Exec != nil, ByAWS: s.AWS != nil, ByFlux: s.Flux != nil} {
		if set {
			out = append(out, by)
		}
	}
	return out
}

// Complete reads what texts say, or says what is wrong with them for a format that takes some kinds.
func (s *SignIn) Complete(takes []By) error {
	var err error
	if s.hosts, err = hosts.Parse(s.Hosts); err != nil {
		return fmt.Errorf("signIn %q: %w", s.Provider, err)
	}
	by := s.by()
	switch {
	case s.Provider == "" || len(by) != 1 || !slices.Contains(takes, by[0]):
		return fmt.Errorf("signIn %q needs a provider, and one of %v for this format", s.Provider, takes)
	case s.Flux != nil && !slices.Contains([]string{"aws", "azure", "gcp", "generic"}, s.Flux.Provider):
		return fmt.Errorf("signIn %q: flux needs a provider, which is aws, azure, gcp or generic", s.Provider)
	case s.Exec != nil && s.Exec.Command == "":
		return fmt.Errorf("signIn %q: exec needs a command", s.Provider)
	case s.Exec != nil && s.Exec.APIVersion == "":
		s.Exec.APIVersion = "client.authentication.k8s.io/v1"
	}
	return nil
}

// allows reports whether a namespace has a provider.
func (t Target) allows(provider string) bool {
	return slices.Contains(t.Providers, provider) || slices.ContainsFunc(t.SignIn, func(s SignIn) bool { return s.Provider == provider })
}

// Chosen returns the first way of an entry to sign in whose credentials may go to its endpoint,
// and what clients run for it, or why there is none.
func (t Target) Chosen(of Offer) (Way, SignIn, *Withheld) {
	var elsewhere []string
	for _, way := range of.Ways {
		for _, s := range t.SignIn {
			if s.Provider != way.Provider {
				continue
			}
			if s.hosts.Lead(of.Endpoint.URL) {
				return way, s, nil
			}
			elsewhere = append(elsewhere, way.Provider)
		}
	}
	return Way{}, SignIn{}, &Withheld{"HostNotAllowed", fmt.Sprintf("Endpoint %q is at none of the hosts where the credentials of its providers may go: %s. If it is one of yours, add its host to hosts of signIn of the export.", of.Endpoint.Name, List(elsewhere)), Sweep}
}

// MayLead reports whether the credentials of a provider may go to an address.
func (t Target) MayLead(provider, address string) bool {
	return slices.ContainsFunc(t.SignIn, func(s SignIn) bool { return s.Provider == provider && s.hosts.Lead(address) })
}

var (
	// placeholder is what is filled in: the name of the cluster, or a value of the entry.
	placeholder = regexp.MustCompile(`\{(name|config\.[^{}]+)\}`)
	// harmless are values that are no option of a program, whatever it is.
	harmless = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+=,-]{0,252}$`)
)

// Filled returns the program with what its texts ask for, of an entry that has this way to sign in.
func (e Exec) Filled(cluster *v1beta1.Cluster, way Way) (Exec, *Withheld) {
	config := way.PluginConfig(cluster.Name)
	var missing []string
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(found string) string {
			if found == "{name}" {
				return cluster.Name
			}
			key := strings.TrimSuffix(strings.TrimPrefix(found, "{config."), "}")
			value, _ := config[key].(string)
			if !harmless.MatchString(value) {
				missing = append(missing, key)
			}
			return value
		})
	}
	out := Exec{APIVersion: e.APIVersion, Command: e.Command, InstallHint: e.InstallHint}
	for _, arg := range e.Args {
		out.Args = append(out.Args, fill(arg))
	}
	for name, value := range e.Env {
		if out.Env == nil {
			out.Env = map[string]string{}
		}
		out.Env[name] = fill(value)
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return Exec{}, &Withheld{"ConfigMissing", fmt.Sprintf("provider.config of access %q lacks a value of letters, digits and ._:/@+=,- that begins with a letter or a digit, for: %s.", way.Name, List(slices.Compact(missing))), Sweep}
	}
	return out, nil
}

// Named returns a value of the way to sign in, by its key, that may be the name of something; the
// name of the cluster where it has none.
func (w Way) Named(cluster *v1beta1.Cluster, key string) (string, *Withheld) {
	value, _ := w.PluginConfig(cluster.Name)[key].(string)
	if value == "" {
		value = cluster.Name
	}
	// No program gets it, so that it may begin as the IDs of Azure do.
	if !harmless.MatchString(strings.TrimPrefix(value, "/")) {
		return "", &Withheld{"ConfigMissing", fmt.Sprintf("%s in provider.config of access %q is not a valid name: write letters, digits and ._:/@+=,-, of which the first is a letter, a digit or a slash.", key, w.Name), Sweep}
	}
	return value, nil
}
