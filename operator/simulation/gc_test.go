package simulation

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain has the memory of lives be collected less often than is the default, which costs more
// than anything else does but reconciling: they make much, and keep little.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}
