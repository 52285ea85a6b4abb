package clusterregistry

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/clusterregistry/operator/operator/etcd"
)

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
		between func(pass int, outdated map[string]bool, w *walk)
		// passes is how many it takes, and read how many clusters are read in all.
		passes, read int
	}{
		{"there are none", 0, 0, size, nil, 1, 0},
		{"all are as they should be", 12, 0, size, nil, 3, 12},
		{"all are outdated: a second walk finds nothing", 12, 12, size, nil, 6, 24},
		{"requests are slow: a page comes again with less to do", 5, 5, 1, nil, 6, 30},
		{"the operator is restarted: it reads again what is done, and no more", 10, 10, size, func(pass int, _ map[string]bool, w *walk) {
			if pass == 1 {
				*w = walk{}
			}
		}, 5, 25},
		{"an old server has written once more behind its back", 10, 10, size, func(pass int, outdated map[string]bool, _ *walk) {
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
		var at walk
		passes, read := 0, 0
		for complete := false; !complete && passes < 100; {
			rest := names[slices.IndexFunc(append(slices.Clone(names), "z"), func(name string) bool { return name > at.after }):]
			page := etcd.Stored{Objects: min(size, len(rest)), Last: at.after}
			for _, name := range rest[:page.Objects] {
				page.Last = name
				if outdated[name] {
					page.Outdated = append(page.Outdated, name)
				}
			}
			page.Left = len(rest) - page.Objects
			done := 0
			rewritten, err := at.rewrite(page, func(name string) error { done++; outdated[name] = false; return nil }, func() bool { return done >= test.perPass })
			if err != nil || done != rewritten || done > size {
				t.Fatalf("%s: %d rewritten in a pass, it says %d, %v", test.reason, done, rewritten, err)
			}
			at, complete = at.next(page, rewritten)
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

// TestRewriteFails stays at the page with the cluster that can't be rewritten.
func TestRewriteFails(t *testing.T) {
	page := etcd.Stored{Objects: 3, Outdated: []string{"a", "b", "c"}, Last: "c", Left: 9}
	rewritten, err := walk{after: "Z"}.rewrite(page, func(name string) error {
		if name == "b" {
			return errors.New("a webhook refuses it")
		}
		return nil
	}, func() bool { return false })
	if rewritten != 1 || err == nil {
		t.Fatalf("%d rewritten, %v", rewritten, err)
	}
	if next, complete := (walk{after: "Z"}).next(page, rewritten); complete || next.after != "Z" {
		t.Errorf("it goes on with %+v", next)
	}
}

// TestRewriteRenewsOnce lets clients undo what a rewrite is also good for: the first
// walk does it, and the second is over.
func TestRewriteRenewsOnce(t *testing.T) {
	page := etcd.Stored{Objects: 1, Outdated: []string{"a"}, Last: "a"}
	next, complete := walk{}.next(page, 1)
	if complete || !next.again || next.after != "" {
		t.Fatalf("after the first walk: %+v, complete %t", next, complete)
	}
	if next, complete = next.next(etcd.Stored{Objects: 1, Last: "a", Left: 1}, 0); complete || !next.again {
		t.Errorf("in the second walk: %+v, complete %t", next, complete)
	}
	if _, complete = next.next(etcd.Stored{Objects: 1, Last: "b"}, 0); !complete {
		t.Error("the second walk found nothing, and is not the last")
	}
}
