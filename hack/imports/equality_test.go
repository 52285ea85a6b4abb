package imports

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEquality keeps what holds CA bundles from being compared by apimachinery's DeepEqual,
// which looks at each byte by reflection.
func TestEquality(t *testing.T) {
	const theirs, ours = `"k8s.io/apimachinery/pkg/api/equality"`, "apis/clusterregistry/equality/equality.go"
	found := false
	for _, file := range files(t) {
		if strings.HasSuffix(file, "_test.go") || !strings.HasPrefix(file, "apis/clusterregistry/") && !strings.HasPrefix(file, "apiserver/") &&
			!strings.HasPrefix(file, "cli/") && !strings.HasPrefix(file, "controller/") && !strings.HasPrefix(file, "operator/clusterregistry/") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		imports := strings.Contains(string(content), theirs)
		if found = found || imports && file == ours; imports && file != ours {
			t.Errorf("%s imports %s: use %s", file, theirs, filepath.Dir(ours))
		}
	}
	if !found {
		t.Errorf("%s does not import it, so that this test looks for the wrong thing", ours)
	}
}
