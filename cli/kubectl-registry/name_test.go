package main

import (
	"flag"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/cli/command/commandtest"
)

func TestCalled(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/local/bin/kubectl-registry":          "kubectl registry",
		"/root/.krew/bin/kubectl-cluster_registry": "kubectl cluster-registry",
		"kubectl-registry.exe":                     "kubectl registry",
		"kubectl_complete-cluster_registry":        "kubectl cluster-registry",
		"/tmp/go-build1/kubectl-registry.test":     "kubectl registry.test",
		"registry":                                 "kubectl registry",
	} {
		if got := called(path); got != want {
			t.Errorf("%s is called as %q", path, got)
		}
	}
}

// TestRename has each help tell people to type what they have.
func TestRename(t *testing.T) {
	for _, args := range []string{"--help", "join --help", "backup create --help"} {
		env := commandtest.New(t)
		cmd := root(env.Env)
		rename(cmd, "kubectl cluster-registry")
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if help := env.Stdout.String(); strings.Contains(help, "kubectl registry ") || !strings.Contains(help, "kubectl cluster-registry ") {
			t.Errorf("%s: %s", args, help)
		}
	}
}

// TestRenamed has each error name what people have, once.
func TestRenamed(t *testing.T) {
	for _, name := range []string{"kubectl registry", "kubectl cluster-registry", "kubectl registry dev"} {
		cmd := root(commandtest.New(t).Env)
		rename(cmd, name)
		cmd.SetArgs([]string{"join", "--nothing"})
		text := message(cmd.Execute()) + `, or "kubectl registry status"`
		if got, want := renamed(text, name), `error: unknown flag: --nothing; see "`+name+` join --help", or "`+name+` status"`; got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestVerbosity has -v set what client-go logs, and --version keep its meaning.
func TestVerbosity(t *testing.T) {
	t.Cleanup(func() {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		klog.InitFlags(flags)
		_ = flags.Set("v", "0")
	})
	for _, args := range []string{"--version", "version --client", "version --client -v=7"} {
		env := commandtest.New(t)
		cmd := root(env.Env)
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if logs := klog.V(7).Enabled(); logs != strings.Contains(args, "-v=7") {
			t.Errorf("%s logs requests: %v", args, logs)
		}
		if env.Stdout.Len() == 0 {
			t.Errorf("%s prints nothing", args)
		}
	}
}
