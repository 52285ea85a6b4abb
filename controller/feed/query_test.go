package feed

import (
	"net/http"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// TestQueries expects a request that asks for some clusters never to be answered with all.
func TestQueries(t *testing.T) {
	b := newBench(t)
	b.put(member("east"), member("west", func(c *v1beta1.Cluster) { c.Labels["tier"] = "silver" }))
	for query, want := range map[string]string{
		"":                            "east west",
		"labelSelector=tier%3Dgold":   "east",
		"labelSelector=tier=gold":     "east",
		"labelSelector=tier!%3Dgold":  "west",
		"labelSelector=tier+in+(a,b)": "",
		"labelSelector=secret":        "east west",
	} {
		if got := b.names(b.ask("/v1/clusters.json?" + query)); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for query, says := range map[string]string{
		"labelSelector=tier%3Dgold;x=y":                    "the query can't be read",
		";labelSelector=tier%3Dgold":                       "the query can't be read",
		"labelSelector=tier%3Dgold&;":                      "the query can't be read",
		"labelSelector=%zz":                                "the query can't be read",
		"labelSelector=tier%3D%3D%3Dgold":                  "is not a valid label selector",
		"labelSelector=tier%3Dgold%3B":                     "is not a valid label selector",
		"labelSelector=%2C":                                "is not a valid label selector",
		"labelSelector=%20":                                "selects by nothing",
		"labelSelector=":                                   "is empty",
		"labelSelector":                                    "is empty",
		"labelSelector=tier%3Dgold&labelSelector=x":        "is there 2 times",
		"labelselector=tier%3Dgold":                        "there is no parameter",
		"selector=tier%3Dgold":                             "there is no parameter",
		"=":                                                "there is no parameter",
		"labelSelector=" + strings.Repeat("x", 2100):       "has more than 2048 characters",
		"labelSelector=" + strings.Repeat("a,", 40) + "b":  "has more than 32 requirements",
		"labelSelector=tier%3Dgold&limit=1":                "there is no parameter",
		"labelSelector=tier%3Dgold&fieldSelector=spec%3Dx": "there is no parameter",
	} {
		for path := range forms {
			if got := b.ask(path + "?" + query); got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), says) {
				t.Errorf("%s?%s: %d, %s", path, query, got.Code, got.Body)
			}
		}
	}
}
