package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

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

// TestPrint expects that what programs read is safe to look at, too, and loses nothing.
func TestPrint(t *testing.T) {
	for _, text := range []string{"east 東 é\n<b>", "red\x1b[31m", "CSI\u009b31m", "delete\x7f", "\u202egpj.exe", "zero\u200bwidth", "tag\U000e0041", "private \U000f0000"} {
		for _, output := range []Output{"json", "yaml"} {
			out := &bytes.Buffer{}
			if err := output.Print(out, map[string]string{"text": text}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimSuffix(line, "\n"); line != Plain(line) {
					t.Errorf("%q as %s is %q", text, output, out)
				}
			}
			var got map[string]string
			read := func(content []byte, to any) error { return yaml.Unmarshal(content, to) }
			if output == "json" {
				read = json.Unmarshal
			}
			if err := read(out.Bytes(), &got); err != nil || got["text"] != text {
				t.Errorf("%q as %s is read as %q, %v", text, output, got, err)
			}
		}
	}
}

// TestSelect prints what a template selects, safe to look at.
func TestSelect(t *testing.T) {
	object := map[string]any{"items": []any{map[string]any{"name": "east", "note": "red\x1b[31m\u202e", "count": 2}, map[string]any{"name": "west", "count": 1}}, "bytes": 123456789, "text": "a\nb\tc"}
	for template, want := range map[string]string{
		"{.items[*].name}": "east west",
		"{range .items[*]}{.name}{\"\\t\"}{.note}{\"\\n\"}{end}": "east\tred[31m\nwest\t\n",
		"{.nothing}":                  "",
		"{.bytes} {.revision}":        "123456789 ",
		"{.items[?(@.count>1)].name}": "east",
		"{.text}{\"\\n\"}":            "a b c\n",
		"{.items[1]}":                 `{"count":1,"name":"west"}`,
	} {
		out := &bytes.Buffer{}
		output := Output("jsonpath=" + template)
		if err := errors.Join(output.Validate(), output.Print(out, object)); err != nil || out.String() != want {
			t.Errorf("%s selects %q, %v", template, out, err)
		}
	}
	for output, want := range map[Output]string{
		"jsonpath={.items":                   "--output=jsonpath={.items: ",
		"jsonpath={metadata.name}":           `--output=jsonpath={metadata.name}: "metadata" is no keyword: the name of a field begins with a dot`,
		"jsonpath={rang .items[*]}":          `--output=jsonpath={rang .items[*]}: "rang" is no keyword`,
		"jsonpath={.items[?(@.name==east)]}": `--output=jsonpath={.items[?(@.name==east)]}: "east" is no keyword`,
		"jsonpath={.name}{end}":              "--output=jsonpath={.name}{end}: {end} without a {range}",
		"jsonpath={range .items[*]}{.name}":  "--output=jsonpath={range .items[*]}{.name}: {range} without an {end}",
		"wide":                               "--output=wide: use name or json or yaml or jsonpath=TEMPLATE",
	} {
		if err := output.Validate("name"); ExitCode(err) != ExitUsage || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", output, err)
		}
	}
}

// TestQuote expects one word of a shell that has what is shown of the text.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"east":                "east",
		"admin@east":          "admin@east",
		"":                    "''",
		"a b":                 "'a b'",
		"$(reboot)":           "'$(reboot)'",
		"x'; curl e | sh; '":  `'x'\''; curl e | sh; '\'''`,
		"x\x1b[31m\n;reboot":  "'x[31m ;reboot'",
		"-p":                  "-p",
		`{"spec":{"id":"x"}}`: `'{"spec":{"id":"x"}}'`,
	} {
		if got := Quote(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
