package migration

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/operator/etcd"
)

var clusters = schema.GroupResource{Group: v1beta1.GroupName, Resource: "clusters"}

// policyRefusal is what a policy of the host says of an update.
func policyRefusal(name string) error {
	return apierrors.NewForbidden(clusters, name, errors.New("it has no owner"))
}

// pageAfter returns the page at which a walk is, of clusters of which some are outdated.
func pageAfter(at Walk, names []string, size int, isOutdated func(name string) bool) Page {
	rest := names[slices.IndexFunc(append(slices.Clone(names), "z"), func(name string) bool { return name > at.after }):]
	out := Page{Stored: etcd.Stored{Objects: min(size, len(rest)), Last: at.after}}
	for i, name := range rest[:out.Objects] {
		out.Last = name
		if isOutdated(name) {
			out.outdated = append(out.outdated, outdated{name, i + 1})
		}
	}
	out.Left = len(rest) - out.Objects
	return out
}

// TestRewriteWalk goes through the clusters of a registry page by page. No pass
// reads or rewrites more than a page, and all are rewritten in the end, whatever
// comes in between.
func TestRewriteWalk(t *testing.T) {
	const size = 5
	for _, test := range []struct {
		reason string
		// clusters are those that exist, and outdated those to be rewritten.
		clusters, outdated int
		// perPass is how many are rewritten until the time is over.
		perPass int
		// between happens after each pass.
		between func(pass int, outdated map[string]bool, w *Walk)
		// passes is how many it takes, and read how many clusters are read in all.
		passes, read int
	}{
		{"there are none", 0, 0, size, nil, 1, 0},
		{"all are as they should be", 12, 0, size, nil, 3, 12},
		{"all are outdated: a second walk finds nothing", 12, 12, size, nil, 6, 24},
		{"requests are slow: the rest of a page comes again", 5, 5, 1, nil, 6, 20},
		{"the operator is restarted: it reads again what is done, and no more", 10, 10, size, func(pass int, _ map[string]bool, w *Walk) {
			if pass == 1 {
				*w = Walk{}
			}
		}, 5, 25},
		{"an old server has written once more behind its back", 10, 10, size, func(pass int, outdated map[string]bool, _ *Walk) {
			if pass == 2 {
				outdated["c00"] = true
			}
		}, 6, 30},
	} {
		outdated := map[string]bool{}
		var names []string
		for i := range test.clusters {
			names = append(names, fmt.Sprintf("c%02d", i))
			outdated[names[i]] = i < test.outdated
		}
		var at Walk
		passes, read := 0, 0
		for complete := false; !complete && passes < 100; {
			page := pageAfter(at, names, size, func(name string) bool { return outdated[name] })
			done := 0
			next, rewritten, err := at.Rewrite(page, func(name string) error { done++; outdated[name] = false; return nil }, func() bool { return done >= test.perPass })
			if err != nil || done != rewritten || done > size {
				t.Fatalf("%s: %d rewritten in a pass, it says %d, %v", test.reason, done, rewritten, err)
			}
			at, complete = next, next.complete
			passes, read = passes+1, read+page.Objects
			if test.between != nil {
				test.between(passes, outdated, &at)
			}
		}
		if passes != test.passes || read != test.read {
			t.Errorf("%s: %d passes that read %d clusters, want %d and %d", test.reason, passes, read, test.passes, test.read)
		}
		for name, left := range outdated {
			if left {
				t.Errorf("%s: %s is not rewritten", test.reason, name)
			}
		}
	}
}

// TestRewriteFails stays at the cluster that can't be rewritten, and goes on there.
func TestRewriteFails(t *testing.T) {
	from := Walk{after: "Z", seen: 4}
	for reason, refusal := range map[string]error{
		"a webhook fails":            errors.New("a webhook fails"),
		"a policy refuses":           policyRefusal("b"),
		"no server answers":          apierrors.NewServiceUnavailable("no"),
		"someone else writes it too": apierrors.NewConflict(clusters, "b", errors.New("changed")),
	} {
		page := Page{etcd.Stored{Objects: 5, Last: "e", Left: 9}, []outdated{{"a", 1}, {"b", 3}, {"c", 4}}}
		next, done, err := from.Rewrite(page, func(name string) error {
			if name == "b" {
				return refusal
			}
			return nil
		}, func() bool { return false })
		if want := (Walk{after: "a", seen: 5, found: true}); done != 1 || !errors.Is(err, refusal) || next != want {
			t.Errorf("%s: %d done, %v; it continues with %+v", reason, done, err, next)
		}
	}
}
