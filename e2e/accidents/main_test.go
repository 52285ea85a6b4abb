package accidents

import (
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMain waits in the end for the namespaces of all tests to be gone.
func TestMain(m *testing.M) { framework.Main(m) }
