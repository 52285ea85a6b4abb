package version

import (
	"slices"
)

// Path returns the releases that a registry is brought to, one after the other, to
// come from one release to another, which is the last: the shortest way, over the
// newest releases where several are as short. It is empty when there is none.
func Path(releases []Release, running, wanted string) []string {
	ways := map[string][]string{running: {}}
	for _, r := range releases { // the oldest first, so that those before are known
		for _, from := range r.UpgradesFrom {
			way, reached := ways[from]
			if known, is := ways[r.Version]; reached && (!is || len(way)+1 <= len(known)) {
				ways[r.Version] = append(slices.Clone(way), r.Version)
			}
		}
	}
	return ways[wanted]
}
