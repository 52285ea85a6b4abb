package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/helper/backup/store"
)

// TestPruned reports what was removed however the rest failed: the objects of those backups are to
// go. Only where nothing was removed has the command failed.
func TestPruned(t *testing.T) {
	away, long := fmt.Errorf("no route: %w", store.ErrUnreachable), errors.New(strings.Repeat("é", 2000))
	for _, test := range []struct {
		reason  string
		removed []string
		err     error
		says    string
		fails   bool
	}{
		{"all were", []string{"a"}, nil, "", false},
		{"there was none", nil, nil, "", false},
		{"others can't be", []string{"a"}, errors.New("a lock"), "a lock", false},
		{"the store is away since then", []string{"a"}, away, "no route", false},
		{"the store is away", nil, away, "", true},
		{"none can be", nil, errors.New("a lock"), "", true},
		{"the reason is long", []string{"a"}, long, strings.Repeat("é", 500), false},
	} {
		report, err := pruned(test.removed, test.err)
		if (err != nil) != test.fails || !errors.Is(err, test.err) && test.fails || !slices.Equal(report.Names, test.removed) || !strings.HasPrefix(report.Failure, test.says) || (report.Failure == "") != (test.says == "") || len(report.Failure) > 1000 {
			t.Errorf("%s: %+v, %v", test.reason, report, err)
		}
	}
}
