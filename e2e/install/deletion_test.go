package install

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/e2e/framework"
)

// checkLeft waits until of all that a test's registries consisted of, just these
// objects are left, of any kind and in any namespace. What owners take with them
// goes a moment later.
func checkLeft(t *testing.T, e *framework.Env, want ...string) {
	t.Helper()
	slices.Sort(want)
	e.Eventually("all but what is retained to be gone", func(ctx context.Context) error {
		objects, err := e.Objects(ctx)
		if err != nil {
			return err
		}
		// The records of how the CAs' certificates were issued go with these.
		objects = slices.DeleteFunc(objects, func(o metav1.PartialObjectMetadata) bool { return len(want) > 0 && o.Kind == "CertificateRequest" })
		var left []string
		for _, o := range objects {
			left = append(left, framework.Name(o))
		}
		if !slices.Equal(left, want) {
			return fmt.Errorf("left is %q, not %q", left, want)
		}
		return nil
	})
}
