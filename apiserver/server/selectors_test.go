package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// TestLongSelectors selects by as much as a selector may have, and by one more.
func TestLongSelectors(t *testing.T) {
	d := newDesk(t, cluster.GuardedFieldsOff)
	const most = 2048
	for _, test := range []struct{ name, begin, each, end string }{
		{"labelSelector", "a in (b", ",b", ")"},
		{"labelSelector", "!a", ",!a", ""},
		{"fieldSelector", "metadata.name!=a", ",metadata.name!=a", ""},
	} {
		for _, more := range []int{0, 1} {
			query := test.name + "=" + url.QueryEscape(test.begin+strings.Repeat(test.each, most-1+more)+test.end)
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				code, answer, _ := d.send(method, "v1beta1/clusters?limit=1&"+query, plain, "")
				if more == 0 && code != http.StatusOK || more == 1 && (code != http.StatusBadRequest || !strings.Contains(answer, test.name+" has 2049 requirements and values, and may have 2048")) {
					t.Errorf("%s by %d of %s: %d %.300s", method, most+more, test.each, code, answer)
				}
			}
		}
	}
}
