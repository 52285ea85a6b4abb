package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/operator/version"
)

func TestComplete(t *testing.T) {
	dir := t.TempDir()
	programs := product.OfRelease(version.Release{Controllers: []string{"health"}})
	for _, p := range programs {
		err := complete(dir, programs)
		if err == nil || !strings.Contains(err.Error(), "has no "+p.Package+", the source of "+p.Name) {
			t.Errorf("without %s: %v", p.Package, err)
		}
		if err := os.MkdirAll(filepath.Join(dir, p.Package), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := complete(dir, programs); err != nil {
		t.Error(err)
	}
}
