package release

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/clusterregistry/operator/operator/version"
)

// recorded is what Record writes for the images of a release.
var recorded = regexp.MustCompile(`(?m)^  images:\n(?:    .*\n)+`)

// Record returns a table of releases in which those that are not released, and run
// just images that digests has by name and tag, have these digests; and which they
// are. All else stays as it is, comments and spaces included.
func Record(content []byte, digests map[string]string) (out []byte, changed []string, err error) {
	releases, err := version.Parse(content)
	if err != nil {
		return nil, nil, err
	}
	text := string(content)
	for _, r := range releases {
		block, complete := imagesBlock(r, digests)
		if r.Released || !complete {
			continue
		}
		start := strings.Index(text, "\n- version: "+r.Version+"\n") + 1
		released := strings.Index(text[max(start, 0):], "\n  released: ")
		if start == 0 || released < 0 {
			return nil, nil, fmt.Errorf("%s: no line \"- version: %s\", followed by one with \"released\", to record digests after", table, r.Version)
		}
		end := len(text)
		if next := strings.Index(text[start:], "\n- version: "); next >= 0 {
			end = start + next + 1
		}
		entry := recorded.ReplaceAllLiteralString(text[start:end], "")
		released += strings.Index(entry[released+1:], "\n") + 2
		text = text[:start] + entry[:released] + block + entry[released:] + text[end:]
		changed = append(changed, r.Version)
	}
	if _, err := version.Parse([]byte(text)); err != nil {
		return nil, nil, fmt.Errorf("with the digests: %w", err)
	}
	return []byte(text), changed, nil
}

// imagesBlock returns the digests of the images that a release runs as the table has
// them, and whether all are known.
func imagesBlock(r version.Release, digests map[string]string) (block string, complete bool) {
	block = "  images:\n"
	for _, image := range r.Runs() {
		digest := digests[image.Name+":"+image.Tag]
		if digest == "" {
			return "", false
		}
		block += "    " + image.Name + ": " + digest + "\n"
	}
	return block, true
}
