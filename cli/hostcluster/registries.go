// Package hostcluster reads and changes the ClusterRegistries of a host cluster.
package hostcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
)

// Resource is that of ClusterRegistries.
var Resource = v1alpha1.SchemeGroupVersion.WithResource("clusterregistries")

// Kind is that of ClusterRegistries.
var Kind = v1alpha1.SchemeGroupVersion.WithKind("ClusterRegistry")

// List returns the ClusterRegistries of a namespace, or of all when it is empty, by
// namespace and name, and the resource version of the list. The error is the server's
// own.
func List(ctx context.Context, host dynamic.Interface, namespace string) ([]v1alpha1.ClusterRegistry, string, error) {
	list, err := host.Resource(Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	out := make([]v1alpha1.ClusterRegistry, len(list.Items))
	for i := range list.Items {
		if err := Decode(&list.Items[i], &out[i]); err != nil {
			return nil, "", err
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.ClusterRegistry) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out, list.GetResourceVersion(), nil
}

// Unlisted says why List has nothing to show although nothing has failed, empty for any other error:
// there are no ClusterRegistries where it asked, or the caller may not list those of the namespace.
func Unlisted(err error, namespace string) string {
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return "this context has no ClusterRegistries: it is that of an independent registry, or the operator is not installed"
	case apierrors.IsForbidden(err) && namespace != "":
		return "you may not list ClusterRegistries in the namespace " + command.Plain(namespace)
	case apierrors.IsForbidden(err):
		return "you may not list ClusterRegistries here: name a namespace with -n, or see docs/reference/plugin.md for the rights"
	}
	return ""
}

// Decode makes an object a ClusterRegistry.
func Decode(from *unstructured.Unstructured, to *v1alpha1.ClusterRegistry) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to); err != nil {
		return fmt.Errorf("read ClusterRegistry %s/%s: %w; this plugin may be too old for the operator", from.GetNamespace(), from.GetName(), err)
	}
	return nil
}

// Find returns the ClusterRegistry that a person means by a name, which may be empty
// where there is only one. Without --namespace all namespaces are searched.
func Find(ctx context.Context, env *command.Env, name string) (*v1alpha1.ClusterRegistry, error) {
	host, err := env.Host()
	if err != nil {
		return nil, err
	}
	all, _, err := List(ctx, host, env.Namespace())
	if err != nil {
		return nil, env.Explain("list the ClusterRegistries", command.OfHost, err)
	}
	return Pick(env, all, name)
}

// Pick is Find among ClusterRegistries that are known.
func Pick(env *command.Env, all []v1alpha1.ClusterRegistry, name string) (*v1alpha1.ClusterRegistry, error) {
	var found []*v1alpha1.ClusterRegistry
	var known []string
	for i := range all {
		known = append(known, all[i].Namespace+"/"+all[i].Name)
		if name == "" || all[i].Name == name {
			found = append(found, &all[i])
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(all) == 0:
		return nil, command.Usagef("the host cluster (context %s) has no ClusterRegistry that you may see: name another one with --context, or create one", command.Plain(env.Context()))
	case len(found) == 0:
		return nil, command.Usagef("there is no ClusterRegistry %q: there are %s", command.Plain(name), strings.Join(known, ", "))
	}
	return nil, command.Usagef("there are %s: name one of them, with -n for its namespace", strings.Join(known, ", "))
}

// Complete completes the name of a ClusterRegistry.
func Complete(env *command.Env) command.Completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		host, err := env.Host()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), command.CompletionTimeout)
		defer cancel()
		all, _, err := List(ctx, host, env.Namespace())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, registry := range all {
			if strings.HasPrefix(registry.Name, begun) {
				names = append(names, registry.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
