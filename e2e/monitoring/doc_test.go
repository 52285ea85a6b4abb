// Package monitoring has the story of what a real operator and real servers tell
// of themselves: all that docs/reference/metrics.md promises, which is all that alerts and
// the dashboard ask for, and nothing of a registry that is gone.
package monitoring

import (
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMain waits in the end for the namespaces of all tests to be gone.
func TestMain(m *testing.M) { framework.Main(m) }
