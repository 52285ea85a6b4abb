package diagnose

import (
	"strings"
	"testing"
)

func TestJoin(t *testing.T) {
	for want, problems := range map[string][]string{
		"":                     nil,
		"a":                    {"a"},
		"a; b; c":              {"a", "b", "c"},
		"a; b; c; and 1 more":  {"a", "b", "c", "d"},
		"a; b; c; and 12 more": strings.Split("abcdefghijklmno", ""),
	} {
		if got := Join(problems); got != want {
			t.Errorf("%v: %q, want %q", problems, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{"no": "no.", "no.": "no.", "no. ": "no.", "no...": "no.", "v1.2 is not": "v1.2 is not."} {
		if got := sentence(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestLastLines(t *testing.T) {
	for _, test := range []struct{ reason, message, want string }{
		{"nothing was said", "", ""},
		{"one line", " panic \n", "panic"},
		{"several lines", "first\nlast\n", "first | last"},
		{"as much as fits", strings.Repeat("x", 400), strings.Repeat("x", 400)},
		{"the cause is at the end", strings.Repeat("x", 1000) + "the end", "..." + strings.Repeat("x", 393) + "the end"},
	} {
		if got := lastLines(test.message); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}
