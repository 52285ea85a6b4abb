package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// run is what the tests of this process have in the cluster.
var run struct {
	sync.Mutex
	// waits is true when Main waits for the namespaces that tests have deleted.
	waits bool
	// left are checks whether the namespaces are gone that were deleted, by their names.
	left map[string]func(context.Context) error
	// before makes the first test remove what killed runs have left.
	before sync.Once
}

// Main is the TestMain of a package whose tests use the cluster. They delete their namespaces
// without waiting, which takes ten seconds and more each; in the end Main waits until all are
// gone, and fails when one stays. The host is probed until then, also between tests.
func Main(m *testing.M) {
	run.waits, run.left = true, map[string]func(context.Context) error{}
	code := m.Run()
	if err := errors.Join(gone(context.Background()), endProbe()); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: after the tests: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// gone waits until all namespaces are gone that tests have deleted.
func gone(ctx context.Context) error {
	run.Lock()
	left := run.left
	run.Unlock()
	var errs []error
	for name, check := range left {
		if err := await(ctx, check); err != nil {
			errs = append(errs, fmt.Errorf("namespace %s is not gone %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// remove deletes the namespace of a test when the test's own context has ended. Without Main
// it waits until it is gone.
func (e *Env) remove(namespace *corev1.Namespace) {
	if err := client.IgnoreNotFound(e.Client.Delete(context.Background(), namespace)); err != nil {
		e.t.Errorf("delete the test's namespace: %v", err)
	}
	check := func(ctx context.Context) error { return namespaceGone(ctx, e.Client, namespace) }
	if run.waits {
		run.Lock()
		defer run.Unlock()
		run.left[namespace.Name] = check
		return
	}
	EventuallyAfter(e.t, "namespace "+namespace.Name+" to be gone", check)
}

// namespaceGone returns what holds the deletion of a namespace up, nil when it is gone.
func namespaceGone(ctx context.Context, c client.Client, namespace *corev1.Namespace) error {
	var left corev1.Namespace
	err := c.Get(ctx, client.ObjectKeyFromObject(namespace), &left)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return &stillThere{left.Status.Conditions}
}
