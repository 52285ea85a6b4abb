package archive

import (
	"strings"
	"testing"

	"github.com/clusterregistry/operator/internal/contract"
)

// TestDisagree compares what a server lists with the keys of a backup.
func TestDisagree(t *testing.T) {
	type counts = map[string]int64
	for _, test := range []struct {
		reason     string
		keys, list counts
		says       string
	}{
		{"the same", counts{"clusters": 3, "clusterroles": 2}, counts{"clusters": 3, "clusterroles": 2}, ""},
		{"resources without objects", counts{"clusters": 3}, counts{"clusters": 3, "clusterroles": 0}, ""},
		{"nothing at all", nil, counts{"clusters": 0}, ""},
		{"locks are not listed", counts{"clusters": 3, contract.LockResource: 2}, counts{"clusters": 3}, ""},
		{"one is not listed", counts{"clusters": 3}, counts{"clusters": 2}, "a server lists 2 of 3 clusters"},
		{"one that the backup lacks", counts{"clusters": 2}, counts{"clusters": 3}, "a server lists 3 of 2 clusters"},
		{"a resource that it does not serve", counts{"clusters": 1, "clustersets": 4}, counts{"clusters": 1}, "a server lists 0 of 4 clustersets"},
	} {
		err := disagree(test.keys, contract.Stored{Objects: test.list})
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
