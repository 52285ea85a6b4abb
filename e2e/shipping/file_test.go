package shipping

import (
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestFile applies the operator as one file where "make install" has brought it:
// it is the same, so nothing changes.
func TestFile(t *testing.T) {
	d := newDesk(t, framework.New(t).WithOperator())
	defer d.restore()
	if out, err := d.try("kubectl diff --server-side -f install.yaml"); err != nil || out != "" {
		t.Errorf("the file differs from what is installed: %v\n%s", err, out)
	}
	const generations = `kubectl get -f install.yaml -o 'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation}{"\n"}{end}'`
	before := d.run(generations)
	d.run("kubectl apply --server-side -f install.yaml")
	if after := d.run(generations); after != before {
		t.Errorf("the file has changed what was installed; before:\n%safter:\n%s", before, after)
	}
}
