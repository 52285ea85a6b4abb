package imports

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/operator/version"
)

// clouds are modules of which only clusterregistry-backup may link any: the SDKs of clouds, and what
// makes one API of them. They are larger than all the rest, and reach for credentials that
// a node or a ServiceAccount has. The helper least of all: every etcd pod copies it.
var clouds = []string{"gocloud.dev", "cloud.google.com/", "google.golang.org/api", "github.com/aws/", "github.com/Azure/azure-sdk-for-go/", "github.com/AzureAD/"}

// TestOnlyBackupsLinkClouds asks the go command what each program consists of.
func TestOnlyBackupsLinkClouds(t *testing.T) {
	for _, program := range product.Programs {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", program.Package)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", program.Name, err)
		}
		found := ""
		for line := range strings.Lines(string(out)) {
			for _, cloud := range clouds {
				if strings.HasPrefix(line, cloud) {
					found = strings.TrimSpace(line)
				}
			}
		}
		if links := found != ""; links != (program.Name == version.BackupImage) {
			t.Errorf("%s links a cloud's SDK: %v (%s)", program.Name, links, found)
		}
	}
}
