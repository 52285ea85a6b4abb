package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterregistry/operator/cli/command"
)

// defaultName is what texts call the plugin.
const defaultName = "kubectl registry"

// called returns how a person calls the plugin by the name of its file: kubectl takes dashes for
// spaces, and underscores for dashes. krew installs it as kubectl-cluster_registry.
func called(path string) string {
	base := command.ProgramName(path)
	for _, prefix := range []string{"kubectl-", "kubectl_complete-"} {
		if name, is := strings.CutPrefix(base, prefix); is && name != "" {
			return "kubectl " + strings.NewReplacer("-", " ", "_", "-").Replace(name)
		}
	}
	return defaultName
}

// renamed returns a text that calls the plugin by a name. The paths of commands in it already do.
func renamed(text, name string) string {
	text = strings.ReplaceAll(text, name+" ", defaultName+" ")
	return strings.ReplaceAll(text, defaultName+" ", name+" ")
}

// rename has the help of a command, and of those below it, call the plugin by a name.
func rename(cmd *cobra.Command, name string) {
	if cmd.Annotations[cobra.CommandDisplayNameAnnotation] != "" {
		cmd.Annotations[cobra.CommandDisplayNameAnnotation] = name
	}
	for _, text := range []*string{&cmd.Short, &cmd.Long, &cmd.Example} {
		*text = strings.ReplaceAll(*text, defaultName+" ", name+" ")
	}
	for _, below := range cmd.Commands() {
		rename(below, name)
	}
}
