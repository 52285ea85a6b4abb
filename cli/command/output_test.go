package command

import "testing"

// TestPlain feeds what a hostile entry could do to a terminal.
func TestPlain(t *testing.T) {
	for reason, test := range map[string]struct{ text, want string }{
		"ordinary":                    {"east 東 é", "east 東 é"},
		"a color":                     {"\x1b[31mred\x1b[0m", "[31mred[0m"},
		"a title, ended by a bell":    {"\x1b]0;evil\a", "]0;evil"},
		"CSI of the C1 set":           {"a\u009b31mb", "a31mb"},
		"backspaces that hide a word": {"rm\b\bls", "rmls"},
		"a carriage return":           {"safe\rrm -rf", "safe rm -rf"},
		"lines":                       {"a\nb\u2028c", "a bc"},
		"text from right to left":     {"a\u202egpj.exe", "agpj.exe"},
		"invisible characters":        {"ea\u200bst\ufeff", "east"},
		"bytes that are not UTF-8":    {"a\xffb", "ab"},
	} {
		if got := Plain(test.text); got != test.want {
			t.Errorf("%s: %q becomes %q", reason, test.text, got)
		}
	}
}
