package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	authexec "k8s.io/client-go/plugin/pkg/client/auth/exec"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/homedir"
	"sigs.k8s.io/yaml"
)

// preference is what is read of a user's preferences for kubectl (kuberc):
// kubectl.config.k8s.io, Preference.
type preference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Policy     string `json:"credentialPluginPolicy"`
	Allowlist  []struct {
		Name    string `json:"name"` // what command was called in kubectl 1.35
		Command string `json:"command"`
	} `json:"credentialPluginAllowlist"`
}

// ApplyPluginPolicy lets a client run only the credential plugins that the user's
// kuberc allows, as kubectl does. It is for every client of a context of a kubeconfig.
// Unlike kubectl, which warns, it refuses where a kuberc is there and can't be read.
func ApplyPluginPolicy(config *rest.Config) error {
	if config.ExecProvider == nil {
		return nil
	}
	file, named := kubercFile()
	if file == "" {
		return nil
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) && !named {
		return nil
	}
	if err == nil {
		config.ExecProvider.PluginPolicy, err = pluginPolicy(content)
	}
	if err == nil {
		err = authexec.ValidatePluginPolicy(config.ExecProvider.PluginPolicy)
	}
	if err != nil {
		return Refusedf("which credential plugins may run is not known: kuberc %s: %w; correct it, or use no kuberc with KUBERC=off", Plain(file), err)
	}
	return nil
}

// kubercFile returns the file that kubectl reads, empty for none, and whether the
// environment names it.
func kubercFile() (file string, named bool) {
	if on, err := strconv.ParseBool(os.Getenv("KUBECTL_KUBERC")); err == nil && !on {
		return "", false
	}
	switch file := os.Getenv("KUBERC"); file {
	case "off":
		return "", false
	case "":
		return filepath.Join(homedir.HomeDir(), clientcmd.RecommendedHomeDir, "kuberc"), false
	default:
		return file, true
	}
}

// pluginPolicy returns the policy of the first document that kubectl takes for
// preferences: v1alpha1 has none.
func pluginPolicy(content []byte) (clientcmdapi.PluginPolicy, error) {
	out := clientcmdapi.PluginPolicy{}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for some := false; ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			if some {
				return out, errors.New("it has no Preference of kubectl.config.k8s.io/v1beta1")
			}
			return out, nil
		}
		if err != nil {
			return out, err
		}
		some = some || len(bytes.TrimSpace(document)) > 0
		found := preference{}
		if err := yaml.Unmarshal(document, &found); err != nil {
			return out, err
		}
		switch schema.FromAPIVersionAndKind(found.APIVersion, found.Kind) {
		case schema.GroupVersionKind{Group: "kubectl.config.k8s.io", Version: "v1alpha1", Kind: "Preference"}:
			return out, nil
		case schema.GroupVersionKind{Group: "kubectl.config.k8s.io", Version: "v1beta1", Kind: "Preference"}:
			return found.policy()
		}
	}
}

func (p preference) policy() (clientcmdapi.PluginPolicy, error) {
	out := clientcmdapi.PluginPolicy{PolicyType: clientcmdapi.PolicyType(p.Policy)}
	if p.Allowlist != nil {
		out.Allowlist = []clientcmdapi.AllowlistEntry{} // an empty list is a mistake that is told
	}
	for i, entry := range p.Allowlist {
		switch {
		case entry.Command == "":
			entry.Command = entry.Name
		case entry.Name != "" && entry.Name != entry.Command:
			return out, fmt.Errorf("credentialPluginAllowlist[%d] has a command and another name: remove the name", i)
		}
		out.Allowlist = append(out.Allowlist, clientcmdapi.AllowlistEntry{Command: entry.Command})
	}
	return out, nil
}
