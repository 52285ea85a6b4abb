// Package faults holds the stories of what goes wrong around a registry, and of
// what changes under it, while its clients go on.
package faults

import (
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMain waits in the end for the namespaces of all tests to be gone.
func TestMain(m *testing.M) { framework.Main(m) }
