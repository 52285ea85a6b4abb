// Package framework is what the end-to-end tests share: a client of the
// checkout's own cluster (never $KUBECONFIG's), a namespace for each test, waits that say why they
// failed, and a dump of all that helps when they did.
//
// A test that needs the cluster fails when there is none; nothing is skipped.
package framework

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Env is one test's view of the cluster.
type Env struct {
	// Client reads and writes objects of any kind.
	Client client.Client
	// Kubernetes is the typed client, for logs and the like.
	Kubernetes kubernetes.Interface
	// Config is how both connect.
	Config *rest.Config
	// Namespace is the test's own; it is deleted when the test ends, see [Main].
	Namespace string

	t *testing.T
	// dumped makes the first that sees the test failed dump, and nobody else.
	dumped *sync.Once
}

func init() {
	logf.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // what fails, a test says itself
}

// New returns the environment of a test. The namespace enforces Pod Security's
// level "restricted", as the best-kept clusters do. Until the test ends the host
// cluster is probed: the test fails when namespaces of the host can't be deleted
// in time, or when an API group does not answer, unless HostMaySuffer
// was called.
func New(t *testing.T) *Env {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", ClusterKubeconfig(t))
	if err != nil {
		t.Fatalf("this test needs a cluster: %v\n\"make cluster\" brings one up", err)
	}
	config.QPS = -1
	e := &Env{t: t, Config: config, dumped: &sync.Once{}}
	c, err := client.NewWithWatch(config, client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatalf("this test needs a cluster: %v\n\"make cluster\" brings one up", err)
	}
	e.Client = held(c, Needs(t))
	if e.Kubernetes, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	run.before.Do(func() {
		if err := removeLeftovers(t.Context(), e.Client); err != nil {
			t.Fatalf("remove what earlier runs have left in the cluster: %v", err)
		}
	})
	// First, so that the removal of all that the test makes is probed as well.
	e.probeHost()
	e.makeNamespace()
	return e
}

// In returns the environment for a subtest: what fails is that one, and what it
// makes goes at its end.
func (e *Env) In(t *testing.T) *Env {
	out := *e
	out.t = t
	return &out
}

// dumpIfFailed is called before anything is removed that tells why.
func (e *Env) dumpIfFailed() {
	if e.t.Failed() {
		e.dumped.Do(e.dump)
	}
}

func (e *Env) makeNamespace() {
	e.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: namespacePrefix(e.t.Name()),
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted", labelProcess: thisProcess()},
	}}
	if err := e.Client.Create(e.t.Context(), ns); err != nil {
		e.t.Fatalf("create the test's namespace: %v", err)
	}
	e.Namespace = ns.Name
	e.t.Cleanup(func() {
		e.dumpIfFailed()
		e.remove(ns)
	})
}

// stillThere says what holds a namespace's deletion up.
type stillThere struct{ conditions []corev1.NamespaceCondition }

func (s *stillThere) Error() string { return "it is still there; " + blockers(s.conditions) }

// blockers are what the conditions of a namespace say of why it stays.
func blockers(conditions []corev1.NamespaceCondition) string {
	var out []string
	for _, c := range conditions {
		if c.Status == corev1.ConditionTrue {
			out = append(out, c.Message)
		}
	}
	return strings.Join(out, "; ")
}

// Create creates objects in the test's namespace, unless they name another or
// are cluster-scoped kinds that the caller removes.
func (e *Env) Create(objects ...client.Object) {
	e.t.Helper()
	for _, object := range objects {
		if object.GetNamespace() == "" {
			object.SetNamespace(e.Namespace)
		}
		if err := e.Client.Create(e.t.Context(), object); err != nil {
			e.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// Update reads an object and changes it, again when somebody else did so meanwhile.
func (e *Env) Update(object client.Object, change func()) {
	e.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := e.Client.Get(e.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return e.Client.Update(e.t.Context(), object)
	})
	if err != nil {
		e.t.Fatalf("update %T %s: %v", object, object.GetName(), err)
	}
}

// Get reads an object of the test's namespace.
func (e *Env) Get(ctx context.Context, name string, into client.Object) error {
	return e.Client.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, into)
}

// namespacePrefix turns a test's name into the start of a namespace's.
func namespacePrefix(test string) string {
	test = strings.TrimPrefix(strings.ToLower(test), "test")
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, test)
	return "e2e-" + clean[:min(len(clean), 30)] + "-"
}

// Full reports whether tests are to try and repeat as much as "make test-full" wants.
func Full() bool { return os.Getenv("E2E_FULL") == "1" }

// Root returns the folder of the repository.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}
