package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/command/commandtest"
	"github.com/clusterregistry/operator/internal/flagdoc"
)

const (
	flagsPage  = "../../docs/reference/flags.md"
	pluginPage = "../../docs/reference/plugin.md"
)

// leaves calls a function with each command that does something.
func leaves(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, below := range cmd.Commands() {
		leaves(below, visit)
	}
	if len(cmd.Commands()) == 0 && cmd.Name() != "help" {
		visit(cmd)
	}
}

func TestFlagsAreDocumented(t *testing.T) {
	cmd := root(command.New())
	commands := map[string]*pflag.FlagSet{}
	leaves(cmd, func(cmd *cobra.Command) {
		commands[strings.TrimPrefix(cmd.CommandPath(), "kubectl registry ")] = cmd.LocalNonPersistentFlags()
	})
	flagdoc.CheckCommands(t, flagsPage, "the commands of kubectl registry", commands)
	page := read(t, flagsPage)
	cmd.PersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(page, "`--"+flag.Name+"`") {
			t.Errorf("%s does not name --%s, which every command has", flagsPage, flag.Name)
		}
	})
}

// TestCommandsAreDocumented expects of each command what a user needs of it: examples
// in its help, and on its page a section with its rights.
func TestCommandsAreDocumented(t *testing.T) {
	content, err := os.ReadFile(pluginPage)
	if err != nil {
		t.Fatal(err)
	}
	leaves(root(command.New()), func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "kubectl registry ")
		if !strings.Contains(cmd.Example, "kubectl registry "+path) && !strings.Contains(cmd.Example, " "+path+" ") {
			t.Errorf("the help of %q has no example", path)
		}
		if cmd.Short == "" || cmd.Long == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("the help of %q is %q, %q", path, cmd.Short, cmd.Long)
		}
		_, section, found := strings.Cut(string(content), "\n## "+path+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || !strings.Contains(section, "**Rights:**") {
			t.Errorf("%s has no section %q with the rights that the command needs", pluginPage, path)
		}
	})
}

// TestGroups has the help list every command that works on a fleet under a title.
func TestGroups(t *testing.T) {
	env := commandtest.New(t)
	cmd := root(env.Env)
	cmd.SetArgs([]string{"--help"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	help, rest, found := strings.Cut(env.Stdout.String(), "\nAdditional Commands:\n")
	if !found || !strings.Contains(help, "\nSee the fleet:\n") {
		t.Fatalf("the help has no groups: %s", help)
	}
	for _, below := range cmd.Commands() {
		alone := slices.Contains([]string{"completion", "help", "version"}, below.Name())
		if line := "  " + below.Name() + " "; below.Hidden || strings.Contains(rest, line) != alone || strings.Contains(help, "\n"+line) == alone {
			t.Errorf("%s is under the wrong title: %s", below.Name(), env.Stdout)
		}
	}
}

// TestNoFlagIsShadowed has a flag of all commands mean the same everywhere.
func TestNoFlagIsShadowed(t *testing.T) {
	cmd := root(command.New())
	leaves(cmd, func(below *cobra.Command) {
		below.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
			if cmd.PersistentFlags().Lookup(flag.Name) != nil {
				t.Errorf("--%s of %q is not that of all commands", flag.Name, below.CommandPath())
			}
		})
	})
}

// TestDemo has the plugin take the command lines that the demo gives it.
func TestDemo(t *testing.T) {
	const story = "../../hack/demo/testdata/plugin.txt"
	for line := range strings.Lines(read(t, story)) {
		args := strings.Fields(strings.TrimPrefix(line, "kubectl registry "))
		cmd, rest, err := root(command.New()).Find(args)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil {
			t.Errorf("%s of %s: %v", strings.TrimSpace(line), story, err)
		}
	}
}

func TestCompletionName(t *testing.T) {
	for name, want := range map[string][]string{
		"/usr/local/bin/kubectl-registry":          {"join", ""},
		"/usr/local/bin/kubectl_complete-registry": {"__complete", "join", ""},
	} {
		if got := arguments([]string{name, "join", ""}); !slices.Equal(got, want) {
			t.Errorf("%s gets %q", name, got)
		}
	}
}

func TestMessage(t *testing.T) {
	if got := message(errors.New("read it: \x1b[31mred\u202e\nerror: none")); got != "error: read it: [31mred error: none" {
		t.Errorf("%q", got)
	}
	for _, err := range []error{nil, command.Shown("ATTENTION")} {
		if got := message(err); got != "" {
			t.Errorf("%v: %q", err, got)
		}
	}
}

func TestUnknownCommand(t *testing.T) {
	for _, test := range []struct{ args, text string }{
		{"jion", `there is no command "jion"; see "kubectl registry --help"`},
		{"join --cluster-ctx=a east", `unknown flag: --cluster-ctx; see "kubectl registry join --help"`},
	} {
		cmd := root(command.New())
		cmd.SetArgs(strings.Fields(test.args))
		if err := cmd.Execute(); command.ExitCode(err) != command.ExitUsage || err.Error() != test.text {
			t.Errorf("%q ends with %v", test.args, err)
		}
	}
}
