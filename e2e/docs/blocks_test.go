package docs

import (
	"slices"
	"strings"
	"testing"
)

// block is a fenced block of commands in a document.
type block struct {
	// line is that of its first command.
	line int
	text string
}

// blocks returns the blocks of a document that are marked "sh", and those that
// are marked "console".
func blocks(document string) (run, left []block) {
	var current *[]block
	var open block
	for i, line := range strings.Split(document, "\n") {
		fence, is := strings.CutPrefix(line, "```")
		switch {
		case is && current == nil && fence == "sh":
			current, open = &run, block{line: i + 2}
		case is && current == nil && fence == "console":
			current, open = &left, block{line: i + 2}
		case is && current != nil:
			*current = append(*current, open)
			current = nil
		case current != nil:
			open.text += line + "\n"
		}
	}
	return run, left
}

func TestBlocks(t *testing.T) {
	run, left := blocks("a\n```sh\none\ntwo\n```\n\n```yaml\nnone: this\n```\n```console\nnot\n```\n```sh\nthree\n```\n")
	if want := []block{{3, "one\ntwo\n"}, {14, "three\n"}}; !slices.Equal(run, want) {
		t.Errorf("run are %v, want %v", run, want)
	}
	if want := []block{{11, "not\n"}}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}
