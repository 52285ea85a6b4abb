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

// pageAfter returns the page at which a walk is, of clusters with their needs.
func pageAfter(at Walk, names []string, size int, needOf func(name string) need) Page {
	rest := names[slices.IndexFunc(append(slices.Clone(names), "z"), func(name string) bool { return name > at.after }):]
	out := Page{Stored: etcd.Stored{Objects: min(size, len(rest)), Last: at.after}}
	for i, name := range rest[:out.Objects] {
		out.Last = name
		if need := needOf(name); need != needNothing {
			out.outdated = append(out.outdated, outdated{name, need, i + 1})
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
			page := pageAfter(at, names, size, func(name string) need {
				if outdated[name] {
					return needVersion
				}
				return needNothing
			})
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
	for reason, test := range map[string]struct {
		need need
		err  error
	}{
		"another version, and a webhook fails":    {needVersion, errors.New("a webhook fails")},
		"another version, and a policy refuses":   {needVersion, policyRefusal("b")},
		"a renewal, and a webhook fails":          {needRenewal, errors.New("a webhook fails")},
		"a renewal, and no server answers":        {needRenewal, apierrors.NewServiceUnavailable("no")},
		"a renewal, and someone else writes, too": {needRenewal, apierrors.NewConflict(clusters, "b", errors.New("changed"))},
	} {
		page := Page{etcd.Stored{Objects: 5, Last: "e", Left: 9}, []outdated{{"a", test.need, 1}, {"b", test.need, 3}, {"c", test.need, 4}}}
		next, done, err := from.Rewrite(page, func(name string) error {
			if name == "b" {
				return test.err
			}
			return nil
		}, func() bool { return false })
		if want := (Walk{after: "a", seen: 5, found: test.need == needVersion}); done != 1 || !errors.Is(err, test.err) || next != want {
			t.Errorf("%s: %d done, %v; it goes on with %+v", reason, done, err, next)
		}
	}
}

// TestRenewals is about clusters that only v1alpha1 shows as before: a walk renews
// each once, whether or not that lasts or is even possible, and is over.
func TestRenewals(t *testing.T) {
	const size, all = 5, 12
	for _, test := range []struct {
		reason string
		// one answers each update, and perPass is how many there are until the time is
		// over.
		one     func(name string) error
		perPass int
		// other is a cluster that is stored in another version.
		other   string
		refused Refusals
		passes  int
	}{
		{"none lasts", func(string) error { return nil }, size, "", Refusals{}, 3},
		{"none lasts, and a page takes several passes", func(string) error { return nil }, 2, "", Refusals{}, 6},
		{"none lasts, and one is also stored in another version: a second walk finds no more", func(string) error { return nil }, 2, "c03", Refusals{}, 9},
		{"all are refused", policyRefusal, 2, "", Refusals{all, policyRefusal("c00").Error()}, 6},
		{"some are, and a second walk does not try them again", func(name string) error {
			if name == "c05" || name == "c07" {
				return fmt.Errorf("rewrite cluster %s: %w", name, policyRefusal(name))
			}
			return nil
		}, size, "c11", Refusals{2, "rewrite cluster c05: " + policyRefusal("c05").Error()}, 6},
	} {
		var names []string
		for i := range all {
			names = append(names, fmt.Sprintf("c%02d", i))
		}
		at, passes, asked := Walk{}, 0, map[string]int{}
		for ; !at.complete && passes < 100; passes++ {
			page := pageAfter(at, names, size, func(name string) need {
				switch {
				case name == test.other && asked[name] == 0:
					return needVersion
				case at.again:
					return needNothing
				}
				return needRenewal
			})
			done := 0
			next, _, err := at.Rewrite(page, func(name string) error { done++; asked[name]++; return test.one(name) }, func() bool { return done >= test.perPass })
			if err != nil {
				t.Fatalf("%s: %v", test.reason, err)
			}
			at = next
		}
		if passes != test.passes || at.refused != test.refused {
			t.Errorf("%s: %d passes, want %d; refused %+v", test.reason, passes, test.passes, at.refused)
		}
		for _, name := range names {
			if asked[name] != 1 {
				t.Errorf("%s: %s is updated %d times", test.reason, name, asked[name])
			}
		}
	}
}
