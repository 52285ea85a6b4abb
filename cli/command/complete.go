package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// CompletionTimeout bounds how long a shell waits.
const CompletionTimeout = 3 * time.Second

// Completion completes the arguments of a command.
type Completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// CompleteClusters completes the names of clusters in the registry, at most so many
// of them; 0 is any number.
func (e *Env) CompleteClusters(most int) Completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		registry, err := e.Registry()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
		defer cancel()
		list, err := registry.ClusterregistryV1beta1().Clusters().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, cluster := range list.Items {
			if strings.HasPrefix(cluster.Name, begun) {
				names = append(names, cluster.Name+"\t"+Plain(cluster.Spec.DisplayName))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteContexts completes the names of contexts in the first of some files that is
// named, or in the default ones when none is.
func CompleteContexts(files ...*string) Completion {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		for _, file := range files {
			if file != nil && rules.ExplicitPath == "" {
				rules.ExplicitPath = *file
			}
		}
		config, err := rules.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for name := range config.Contexts {
			if strings.HasPrefix(name, begun) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
