package kubeconfig

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/cli/command"
)

// owner returns whose the name of an entry is: free when the kubeconfig does not have
// it, and else ours; or why it can't be used, as when it is someone else's there or in
// a file beside it. kubectl reads such files as one, and of two things with a name it
// takes the first.
func owner(config *clientcmdapi.Config, beside []*clientcmdapi.Config, wanted entry, own mark) (free bool, fault string) {
	has := kinds(config, wanted.Name)
	for _, found := range has {
		if fault := taken("the kubeconfig", found, wanted.Name, own); fault != "" {
			return false, fault
		}
	}
	for _, other := range beside {
		for _, found := range kinds(other, wanted.Name) {
			if fault := taken("another file of KUBECONFIG", found, wanted.Name, own); fault != "" {
				return false, fault
			}
		}
	}
	for _, file := range append([]*clientcmdapi.Config{config}, beside...) {
		if fault := dangling(file, config, wanted); fault != "" {
			return false, fault
		}
	}
	return len(has) == 0, ""
}

// found is something that a kubeconfig has under a name.
type found struct {
	kind       string
	extensions map[string]runtime.Object
}

// kinds returns all that a kubeconfig has under a name.
func kinds(config *clientcmdapi.Config, name string) []found {
	var out []found
	if cluster := config.Clusters[name]; cluster != nil {
		out = append(out, found{"cluster", cluster.Extensions})
	}
	if user := config.AuthInfos[name]; user != nil {
		out = append(out, found{"user", user.Extensions})
	}
	if context := config.Contexts[name]; context != nil {
		out = append(out, found{"context", context.Extensions})
	}
	return out
}

// taken returns why something that is there may not be written over, or "".
func taken(where string, thing found, name string, own mark) string {
	const remedy = "which stays: give the names of the registry's clusters a --prefix"
	switch is, ours := marked(thing.extensions); {
	case !ours:
		return fmt.Sprintf("%s has a %s %q of another origin, %s", where, thing.kind, name, remedy)
	case is.Registry != own.Registry:
		return fmt.Sprintf("%s has a %s %q of the registry %s, %s", where, thing.kind, name, command.Plain(is.Registry), remedy)
	case is.Cluster != own.Cluster:
		return fmt.Sprintf("%s has a %s %q of the registry's cluster %q, which stays: choose another --prefix", where, thing.kind, name, command.Plain(is.Cluster))
	}
	return ""
}

// dangling returns what of a file's own would begin to lead to an entry, because it
// has the entry's name and what has that name is not there, or "".
func dangling(file, config *clientcmdapi.Config, wanted entry) string {
	const remedy = "and would lead to this cluster: correct it with \"kubectl config\", or give the names of the registry's clusters a --prefix"
	if file.CurrentContext == wanted.Name && config.Contexts[wanted.Name] == nil {
		return fmt.Sprintf("%q is your current context, which is not there, %s", wanted.Name, remedy)
	}
	for _, name := range slices.Sorted(maps.Keys(file.Contexts)) {
		switch context := file.Contexts[name]; {
		case name == wanted.Name:
		case context.Cluster == wanted.Name && config.Clusters[wanted.Name] == nil:
			return fmt.Sprintf("your context %q names a cluster %q, which is not there, %s", command.Plain(name), wanted.Name, remedy)
		case context.AuthInfo == wanted.Name && wanted.Command != "" && config.AuthInfos[wanted.Name] == nil:
			return fmt.Sprintf("your context %q names a user %q, which is not there, %s", command.Plain(name), wanted.Name, remedy)
		}
	}
	return ""
}
