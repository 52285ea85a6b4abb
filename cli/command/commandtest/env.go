// Package commandtest runs commands of kubectl-registry in tests: with a registry and
// a host cluster that are made up, and without a terminal.
package commandtest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/client/clientset/versioned/fake"
)

// Env is an environment for tests.
type Env struct {
	*command.Env
	// Stdin is what is typed, Stdout and Stderr what is printed.
	Stdin, Stdout, Stderr *bytes.Buffer
	// Clusters is the registry.
	Clusters *fake.Clientset
	// Objects is the host cluster.
	Objects *dynamicfake.FakeDynamicClient
}

// Now is the time in tests.
var Now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// New returns an environment with clusters in the registry.
func New(t *testing.T, clusters ...runtime.Object) *Env {
	t.Helper()
	// The fake's successor needs schemas of the types, which client-gen was not given.
	e := &Env{Env: command.New(), Stdin: &bytes.Buffer{}, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Clusters: fake.NewSimpleClientset(clusters...)}
	e.In, e.Out, e.ErrOut = e.Stdin, e.Stdout, e.Stderr
	e.Flags = genericclioptions.NewConfigFlags(true)
	context := "hub"
	e.Flags.Context = &context
	e.Terminal = func() bool { return false }
	e.Now = func() time.Time { return Now }
	e.Registry = func() (versioned.Interface, error) { return e.Clusters, nil }
	e.Host = func() (dynamic.Interface, error) { return e.Objects, nil }
	return e.WithObjects(t)
}

// WithObjects gives the environment a host cluster with objects in it.
func (e *Env) WithObjects(t *testing.T, objects ...runtime.Object) *Env {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := operatorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	e.Objects = dynamicfake.NewSimpleDynamicClient(scheme, objects...)
	return e
}

// Typing makes the environment that of a person who types a text.
func (e *Env) Typing(text string) *Env {
	e.Terminal = func() bool { return true }
	e.Stdin.WriteString(text)
	return e
}

// Run runs a command with arguments, and returns its error and exit code.
func (e *Env) Run(t *testing.T, cmd *cobra.Command, args ...string) (string, int) {
	t.Helper()
	root := &cobra.Command{Use: "kubectl-registry", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cmd)
	root.SetArgs(append(strings.Fields(cmd.Name()), args...))
	root.SetContext(t.Context())
	err := root.Execute()
	if err == nil {
		return "", 0
	}
	return err.Error(), command.ExitCode(err)
}
