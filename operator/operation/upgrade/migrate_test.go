package upgrade

import (
	"strings"
	"testing"
)

// TestEndingServer has nothing rewritten while a server of the previous release is terminating, which
// may still write in the version that is given up.
func TestEndingServer(t *testing.T) {
	h := upgrading(t, "v0.1.0", "v0.2.0", "StorageMigration")
	h.ServersBefore = "pod fleet-server-x"
	if v := h.migrate(t.Context()); v.Complete() || v.Err != nil || v.After == 0 || !strings.Contains(v.Message, "pod fleet-server-x of v0.1.0 may still write") {
		t.Errorf("%+v", v)
	}
}
