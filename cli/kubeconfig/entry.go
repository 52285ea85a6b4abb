package kubeconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
)

// entry is a cluster of the registry as it gets into a kubeconfig: all of it that can
// lead a person, with credentials, somewhere else.
type entry struct {
	// Name is that of the context, the cluster and the user.
	Name          string   `json:"name"`
	Server        string   `json:"server"`
	CA            []byte   `json:"ca,omitempty"`
	TLSServerName string   `json:"tlsServerName,omitempty"`
	Proxy         string   `json:"proxy,omitempty"`
	APIVersion    string   `json:"apiVersion,omitempty"`
	Command       string   `json:"command,omitempty"`
	Args          []string `json:"args,omitempty"`
	ClusterInfo   bool     `json:"clusterInfo,omitempty"`
	// Interactive is whether the program gets the standard input; empty without one.
	Interactive clientcmdapi.ExecInteractiveMode `json:"interactiveMode,omitempty"`

	// Foreign are settings of a kubeconfig that entries never have, by their names there:
	// of an entry in a file that someone has changed by hand. They are removed.
	Foreign []string `json:"foreign,omitempty"`

	// hint is how to get the program; it is no part of what is compared.
	hint string
	// cluster is the name in the registry, and notes are for the person.
	cluster string
	notes   []string
}

// maxCommandLine is the longest command line, in bytes, that is shown for confirmation.
const maxCommandLine = 2048

// newEntry returns a cluster's entry for a client at an address, or why it gets none.
func newEntry(cluster *v1beta1.Cluster, prefix string, client netip.Addr, allowed []string) (entry, error) {
	// A registry refuses what is not valid, but it may have been written by an older
	// one, or not be the one that it should.
	if err := command.Validate(cluster); err != nil {
		return entry{}, fmt.Errorf("%s", command.Plain(err.Error()))
	}
	at := cluster.Spec.EndpointFor(client)
	if at < 0 {
		return entry{}, fmt.Errorf("it has no endpoint for your address: say with --for which address you reach clusters from")
	}
	endpoint := cluster.Spec.Endpoints[at]
	for _, text := range []string{cluster.Name, endpoint.URL, endpoint.TLSServerName, endpoint.ProxyURL} {
		if text != command.Plain(text) {
			return entry{}, fmt.Errorf("its endpoint has control characters: %q", command.Plain(text))
		}
	}
	if err := reachable(endpoint.URL); err != nil {
		return entry{}, fmt.Errorf("its endpoint %s is refused: %w", command.Plain(endpoint.Name), err)
	}
	if endpoint.ProxyURL != "" {
		// A proxy on the person's own computer is the end of a tunnel of theirs, and TLS goes through it.
		refusal := &address.Refusal{}
		if err := reachable(endpoint.ProxyURL); err != nil && (!errors.As(err, &refusal) || refusal.What != address.Loopback) {
			return entry{}, fmt.Errorf("the proxy of its endpoint %s is refused: %w", command.Plain(endpoint.Name), err)
		}
	}
	out := entry{
		Name: prefix + cluster.Name, Server: endpoint.URL, CA: endpoint.CABundle, TLSServerName: endpoint.TLSServerName, Proxy: endpoint.ProxyURL,
		cluster: cluster.Name,
	}
	var reasons []string
	for _, access := range cluster.Spec.Access {
		if access.Audience != v1beta1.AudienceUser || access.Exec == nil && access.OIDC == nil {
			continue
		}
		exec, note, err := login(access, allowed)
		if err != nil {
			reasons = append(reasons, fmt.Sprintf("access %q: %v", command.Plain(access.Name), err))
			continue
		}
		if note != "" {
			out.notes = append(out.notes, note+": set your own with \"kubectl config set-credentials "+command.Quote(out.Name)+" --exec-env=VARIABLE=VALUE\", which stay")
		}
		if line := commandLine(exec.Command, exec.Args); len(line) > maxCommandLine {
			reasons = append(reasons, fmt.Sprintf("access %q: its command line has %d bytes, more than a person checks (%d)", command.Plain(access.Name), len(line), maxCommandLine))
			continue
		}
		out.APIVersion, out.Command, out.Args, out.ClusterInfo, out.hint = exec.APIVersion, exec.Command, exec.Args, exec.ProvideClusterInfo, exec.InstallHint
		out.Interactive = exec.InteractiveMode
		return out, nil
	}
	if len(reasons) > 0 {
		// An entry whose program is refused is not half taken: its server is most
		// likely where the program's credentials were to go.
		return entry{}, fmt.Errorf("%s", strings.Join(reasons, "; "))
	}
	out.notes = append(out.notes, "it does not say how people sign in: set the user of its context with \"kubectl config set-context "+command.Quote(out.Name)+" --user=NAME\"")
	return out, nil
}

// reachable returns why no entry may lead a person, with credentials, to a URL.
func reachable(at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return errors.New("its URL can't be read")
	}
	return address.Policy{}.Check(u.Hostname(), false)
}

// exec returns the entry's program, nil for none.
func (e entry) exec() *clientcmdapi.ExecConfig {
	if e.Command == "" {
		return nil
	}
	return &clientcmdapi.ExecConfig{
		APIVersion: e.APIVersion, Command: e.Command, Args: e.Args, InstallHint: e.hint,
		ProvideClusterInfo: e.ClusterInfo, InteractiveMode: e.Interactive,
	}
}

// commandLine returns the program as a person would type it.
func (e entry) commandLine() string {
	if e.Command == "" {
		return ""
	}
	return commandLine(e.Command, e.Args)
}

// same reports whether two entries lead a person to the same place in the same way.
func (e entry) same(other entry) bool {
	return e.Server == other.Server && bytes.Equal(e.CA, other.CA) && e.TLSServerName == other.TLSServerName && e.Proxy == other.Proxy &&
		e.APIVersion == other.APIVersion && e.Command == other.Command && slices.Equal(e.Args, other.Args) && e.ClusterInfo == other.ClusterInfo && e.Interactive == other.Interactive && slices.Equal(e.Foreign, other.Foreign)
}

// fromFile returns what a kubeconfig has under a name.
func fromFile(config *clientcmdapi.Config, name string) entry {
	out := entry{Name: name}
	if cluster := config.Clusters[name]; cluster != nil {
		out.Server, out.CA, out.TLSServerName, out.Proxy = cluster.Server, cluster.CertificateAuthorityData, cluster.TLSServerName, cluster.ProxyURL
		out.Foreign = foreignIn(cluster)
	}
	if context := config.Contexts[name]; context != nil && context.Cluster != name {
		// The user that a person has set for their context would get to know another server.
		out.Server = fmt.Sprintf("that of the cluster %q", command.Plain(context.Cluster))
	}
	user := config.AuthInfos[name]
	if user != nil {
		out.Foreign = append(out.Foreign, credentialsIn(user)...)
	}
	if user != nil && user.Exec != nil {
		out.APIVersion, out.Command, out.Args, out.ClusterInfo = user.Exec.APIVersion, user.Exec.Command, user.Exec.Args, user.Exec.ProvideClusterInfo
		out.Interactive = user.Exec.InteractiveMode
	}
	return out
}

// set returns the names of the settings that are set.
func set(settings map[string]bool) []string {
	maps.DeleteFunc(settings, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(settings))
}

// foreignIn returns what of a cluster in a kubeconfig entries never have, and weakens
// what was confirmed.
func foreignIn(cluster *clientcmdapi.Cluster) []string {
	return set(map[string]bool{"insecure-skip-tls-verify": cluster.InsecureSkipTLSVerify, "certificate-authority": cluster.CertificateAuthority != ""})
}

// credentialsIn returns what of a user in a kubeconfig entries never have: credentials,
// which go to the entry's server.
func credentialsIn(user *clientcmdapi.AuthInfo) []string {
	return set(map[string]bool{
		"client-certificate": user.ClientCertificate != "" || len(user.ClientCertificateData) > 0,
		"client-key":         user.ClientKey != "" || len(user.ClientKeyData) > 0,
		"token":              user.Token != "" || user.TokenFile != "",
		"username":           user.Username != "" || user.Password != "",
		"auth-provider":      user.AuthProvider != nil,
	})
}

// kept returns what of the user of an entry in a kubeconfig is a person's own choice and
// stays, for that person: as whom they act, and the variables of the program that the
// entry still has.
func kept(user *clientcmdapi.AuthInfo, wanted entry) string {
	if user == nil || wanted.Command == "" {
		return ""
	}
	var out []string
	if user.Exec != nil && user.Exec.Command == wanted.Command {
		for _, variable := range user.Exec.Env {
			out = append(out, "the variable "+distinct(command.Plain(variable.Name)))
		}
	}
	if user.Impersonate != "" {
		out = append(out, "as "+distinct(command.Plain(user.Impersonate)))
	}
	return strings.Join(out, ", ")
}

// digest is what a person accepts: all that they are shown, and where it is from.
func (p plan) digest(origin mark) (string, error) {
	type item struct {
		Before  *entry `json:"before,omitempty"`
		After   entry  `json:"after"`
		User    string `json:"user,omitempty"`
		Kept    string `json:"kept,omitempty"`
		OtherCA bool   `json:"otherCA,omitempty"`
	}
	content := struct {
		Registry string   `json:"registry"`
		CA       string   `json:"ca,omitempty"`
		Items    []item   `json:"items"`
		Pruned   []string `json:"pruned,omitempty"`
	}{Registry: origin.Registry, CA: origin.CA, Pruned: p.pruned}
	for _, change := range p.changes {
		content.Items = append(content.Items, item{change.before, change.after, change.user, change.kept, change.otherCA})
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("digest of what is to be confirmed: %w", err)
	}
	// All of it: who writes both the entry that is accepted and the one that follows must
	// not find two with the same digest.
	return fmt.Sprintf("sha256:%x", sha256.Sum256(raw)), nil
}
