package kubeconfig

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
)

// plugin is a program that an entry may have run, with the only arguments that it
// may be given. What a registry's entry says is never passed on: flags and values that
// fit are read from it, and the command line is made of them again.
type plugin struct {
	// command is the program's name, found in $PATH. An entry that names a path doesn't
	// get it.
	command string
	// apiVersion is that of the ExecCredential which the program prints by default.
	apiVersion string
	// words come first: the program's own subcommand.
	words []string
	// flags are those that an entry may set, with the form of their values. None of
	// them names a file, a program, a local profile or a credential, or turns
	// verification off.
	flags map[string]*regexp.Regexp
	// short are other names of flags, as tools write them.
	short map[string]string
	// needed are the flags of which one tells the program for what to sign in, in groups.
	needed [][]string
	// provideClusterInfo says whether the program gets the address and CA of the cluster.
	provideClusterInfo bool
	// sends is what the server that an entry names gets, for the person who is to agree.
	sends string
	// hint says how to get the program; that of the entry is never shown.
	hint string
}

const (
	execV1      = "client.authentication.k8s.io/v1"
	execV1beta1 = "client.authentication.k8s.io/v1beta1"
)

var (
	uuid     = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	issuer   = regexp.MustCompile(`^https://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$`)
	clientID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)
	scope    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`)
)

// plugins is the built-in table.
var plugins = []plugin{
	{
		command: "aws", apiVersion: execV1beta1, words: []string{"eks", "get-token"},
		flags: map[string]*regexp.Regexp{
			"cluster-name": regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`),
			"cluster-id":   uuid, // of a local cluster on Outposts
			"region":       regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+){1,3}-[0-9]{1,2}$`),
			"role-arn":     regexp.MustCompile(`^arn:aws(-[a-z]+)*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}$`),
			"output":       regexp.MustCompile(`^json$`),
		},
		short:  map[string]string{"role": "role-arn"}, // as "aws eks update-kubeconfig" and eksctl write it
		needed: [][]string{{"cluster-name", "cluster-id"}},
		sends:  "a token with which it can act as your AWS identity in the EKS cluster of that name", hint: "Install the AWS CLI.",
	},
	{
		command: "gke-gcloud-auth-plugin", apiVersion: execV1beta1, provideClusterInfo: true,
		sends: "your Google Cloud access token", hint: "Install gke-gcloud-auth-plugin, a component of the Google Cloud CLI.",
	},
	{
		command: "kubelogin", apiVersion: execV1beta1, words: []string{"get-token"},
		flags: map[string]*regexp.Regexp{
			"environment": regexp.MustCompile(`^Azure(Public|China|USGovernment)Cloud$`),
			// The token is for this application, and goes to the entry's server: that of
			// Azure Kubernetes Service only, and no other of the person's.
			"server-id": regexp.MustCompile(`^6dae42f8-4368-4678-94ff-3960e28e3630$`),
			"client-id": uuid, "tenant-id": uuid,
			"login": regexp.MustCompile(`^(devicecode|interactive|azurecli)$`),
		},
		needed: [][]string{{"server-id"}},
		sends:  "your token for Azure Kubernetes Service, which all its clusters accept", hint: "Install Azure's kubelogin.",
	},
	{
		command: "kubectl", apiVersion: execV1, words: []string{"oidc-login", "get-token"},
		flags:  map[string]*regexp.Regexp{"oidc-issuer-url": issuer, "oidc-client-id": clientID, "oidc-extra-scope": scope},
		needed: [][]string{{"oidc-issuer-url"}, {"oidc-client-id"}},
		sends:  "your ID token for that issuer and client", hint: "Install the kubectl plugin oidc-login.",
	},
}

// oidcLogin is the plugin for access of the kind oidc.
var oidcLogin = plugins[len(plugins)-1]

// sends returns what the server of an entry gets by its program.
func sends(name string, args []string) string {
	for _, known := range plugins {
		if _, err := known.rebuild(args); known.command == name && err == nil {
			return known.sends
		}
	}
	return "the credentials that this program prints"
}

// rebuild returns the program's command line from that of an entry.
func (p plugin) rebuild(args []string) (*clientcmdapi.ExecConfig, error) {
	var words []string
	values := map[string][]string{}
	for i := 0; i < len(args); i++ {
		name, value, assigned := strings.Cut(args[i], "=")
		flag, isFlag := strings.CutPrefix(name, "--")
		if !isFlag {
			words = append(words, args[i])
			continue
		}
		if long, is := p.short[flag]; is {
			flag = long
		}
		form, known := p.flags[flag]
		if !known {
			return nil, fmt.Errorf("%s is not run with the flag %q", p.command, command.Plain(name))
		}
		if !assigned {
			i++
			if i == len(args) {
				return nil, fmt.Errorf("the flag %q of %s has no value", command.Plain(name), p.command)
			}
			value = args[i]
		}
		if !form.MatchString(value) {
			return nil, fmt.Errorf("the flag %q of %s does not take %q", command.Plain(name), p.command, command.Plain(value))
		}
		values[flag] = append(values[flag], value)
	}
	if !slices.Equal(words, p.words) {
		return nil, fmt.Errorf("%s is run as %q, and not with %q", p.command, strings.Join(append([]string{p.command}, p.words...), " "), command.Plain(strings.Join(words, " ")))
	}
	out := slices.Clone(p.words)
	for _, flag := range slices.Sorted(maps.Keys(values)) {
		if len(values[flag]) > 1 && flag != "oidc-extra-scope" {
			return nil, fmt.Errorf("the flag --%s of %s is there twice", flag, p.command)
		}
		for _, value := range values[flag] {
			out = append(out, "--"+flag+"="+value)
		}
	}
	for _, group := range p.needed {
		if !slices.ContainsFunc(group, func(flag string) bool { return values[flag] != nil }) {
			return nil, fmt.Errorf("%s is not run without --%s", p.command, strings.Join(group, " or --"))
		}
	}
	return &clientcmdapi.ExecConfig{
		APIVersion: p.apiVersion, Command: p.command, Args: out, InstallHint: p.hint,
		ProvideClusterInfo: p.provideClusterInfo, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}, nil
}

// login returns how a person signs in to a cluster by one way of an entry. What it
// notes is for that person. Allowed are the commands that the person has allowed
// beside the table.
func login(access v1beta1.Access, allowed []string) (exec *clientcmdapi.ExecConfig, note string, err error) {
	if oidc := access.OIDC; oidc != nil {
		args := append(slices.Clone(oidcLogin.words), "--oidc-issuer-url="+oidc.IssuerURL, "--oidc-client-id="+oidc.ClientID)
		for _, scope := range oidc.Scopes {
			args = append(args, "--oidc-extra-scope="+scope)
		}
		exec, err := oidcLogin.rebuild(args)
		return exec, "", err
	}
	if access.Exec == nil {
		return nil, "", fmt.Errorf("it is neither exec nor oidc")
	}
	entry := access.Exec
	if len(entry.Env) > 0 {
		note = fmt.Sprintf("its access %q sets environment variables, which are left out", command.Plain(access.Name))
	}
	for _, text := range append([]string{entry.Command, entry.APIVersion}, entry.Args...) {
		if text != command.Plain(text) {
			return nil, "", fmt.Errorf("its command has control characters: %q", command.Plain(text))
		}
	}
	for _, known := range plugins {
		if known.command == entry.Command {
			exec, err = known.rebuild(entry.Args)
			if err == nil {
				exec.InteractiveMode = clientcmdapi.ExecInteractiveMode(entry.Interactive())
			}
			if err == nil || !slices.Contains(allowed, entry.Command) {
				return exec, note, err
			}
		}
	}
	if slices.Contains(allowed, entry.Command) {
		return &clientcmdapi.ExecConfig{
			APIVersion: entry.APIVersion, Command: entry.Command, Args: entry.Args,
			ProvideClusterInfo: entry.ProvideClusterInfo, InteractiveMode: clientcmdapi.ExecInteractiveMode(entry.Interactive()),
		}, note, nil
	}
	if name := command.ProgramName(entry.Command); name != entry.Command && slices.ContainsFunc(plugins, func(p plugin) bool { return p.command == name }) {
		return nil, "", fmt.Errorf("it would run %s, a path of another computer: have the entry name %s alone, which is found in $PATH", commandLine(entry.Command, entry.Args), name)
	}
	return nil, "", fmt.Errorf("it would run %s, which is not a known plugin%s", commandLine(entry.Command, entry.Args), suggestion(entry.Command))
}

// word is what a shell takes for one word, whatever shell it is.
var word = regexp.MustCompile(`^[\w./:=@,+-]+$`)

// harmless is a command that is safe to paste into a shell.
var harmless = regexp.MustCompile(`^[A-Za-z0-9._/][A-Za-z0-9._/-]*$`)

// suggestion says how a command is allowed. People copy it: there is none for a
// command that a shell would take for something else.
func suggestion(name string) string {
	if !harmless.MatchString(name) {
		return ""
	}
	return "; if you trust it, use --allow-exec=" + name
}

// commandLine returns a program and its arguments so that it can't be mistaken for
// another: what is not a plain word is quoted, and all of it is ASCII.
func commandLine(name string, args []string) string {
	var out []string
	for _, text := range append([]string{name}, args...) {
		if !word.MatchString(text) {
			text = strconv.QuoteToASCII(text)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}
