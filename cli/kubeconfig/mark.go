package kubeconfig

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// extension is the name of the mark of what this program has put into a kubeconfig.
const extension = "clusterregistry.k8s.io/entry"

// mark says where an entry of a kubeconfig is from.
type mark struct {
	// Registry is the address of the registry.
	Registry string `json:"registry"`
	// CA is the fingerprint of the registry's own CA, as the kubeconfig has it; empty
	// where it has none.
	CA string `json:"ca,omitempty"`
	// Scope is how the entry was chosen. A run prunes its own scope only.
	Scope string `json:"scope"`
	// Cluster is the name in the registry.
	Cluster string `json:"cluster"`
}

// markOf returns the mark of the registry that a configuration leads to.
func markOf(config *rest.Config) (mark, error) {
	loaded := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: config.CAFile, CAData: config.CAData}}
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return mark{}, fmt.Errorf("read the registry's CA: %w; correct certificate-authority in the kubeconfig", err)
	}
	out := mark{Registry: config.Host}
	if len(loaded.CAData) > 0 {
		out.CA = fmt.Sprintf("sha256:%x", sha256.Sum256(loaded.CAData))
	}
	return out, nil
}

func (m mark) object() (map[string]runtime.Object, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("mark an entry: %w", err)
	}
	return map[string]runtime.Object{extension: &runtime.Unknown{Raw: raw, ContentType: runtime.ContentTypeJSON}}, nil
}

// marked returns the mark of something in a kubeconfig.
func marked(extensions map[string]runtime.Object) (mark, bool) {
	unknown, is := extensions[extension].(*runtime.Unknown)
	if !is {
		return mark{}, false
	}
	out := mark{}
	err := json.Unmarshal(unknown.Raw, &out)
	return out, err == nil && out.Registry != ""
}

// scopeOf names how clusters are chosen, so that the next run by the same choice knows
// its own.
func scopeOf(names []string, selector string) string {
	switch {
	case len(names) > 0:
		return "names"
	case selector != "":
		return "selector:" + strings.Join(strings.Fields(selector), "")
	}
	return "all"
}
