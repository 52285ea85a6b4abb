package flagdoc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func flags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.String("name", "", "The `NAME` of it.")
	fs.StringSlice("list", nil, "Some, a|b or <c>.\nMany\nlines.")
	fs.String("mode", "", "One of `a|b`.")
	fs.Bool("quick", true, "Do it quickly.")
	fs.Bool("slow", false, "Do it slowly.")
	fs.Int("old", 1, "An old one.")
	_ = fs.MarkDeprecated("old", "it is old")
	return fs
}

func TestList(t *testing.T) {
	const want = "- `--list strings`: Some, a|b or &lt;c>. (see `--help`)\n" +
		"- `--mode a|b`: One of a|b.\n" +
		"- `--name NAME`: The NAME of it.\n" +
		"- `--quick` (default: `true`): Do it quickly.\n" +
		"- `--slow`: Do it slowly.\n"
	if got := checked(t, func(page string) { Check(t, page, "it", flags()) }); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	silent := flags()
	silent.Bool("silent", false, "")
	if got := undescribed(silent); !slices.Equal(got, []string{"silent"}) {
		t.Errorf("%q have no description", got)
	}
}

// TestCommands expects a line for each form of a flag, with the commands that have it.
func TestCommands(t *testing.T) {
	other := pflag.NewFlagSet("", pflag.ContinueOnError)
	other.Bool("quick", true, "Do it quickly.")
	other.String("name", "it", "Another `NAME`.")
	const want = "- `--list strings` (`go`): Some, a|b or &lt;c>. (see `--help`)\n" +
		"- `--mode a|b` (`go`): One of a|b.\n" +
		"- `--name NAME` (`go`): The NAME of it.\n" +
		"- `--name NAME` (`stop`; default: `it`): Another NAME.\n" +
		"- `--quick` (`go`, `stop`; default: `true`): Do it quickly.\n" +
		"- `--slow` (`go`): Do it slowly.\n"
	if got := checked(t, func(page string) {
		CheckCommands(t, page, "it", map[string]*pflag.FlagSet{"stop": other, "go": flags()})
	}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// checked returns the list that a check writes.
func checked(t *testing.T, check func(page string)) string {
	t.Helper()
	page := filepath.Join(t.TempDir(), "flags.md")
	if err := os.WriteFile(page, []byte("<!-- begin flags of it -->\n<!-- end flags of it -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Update, "1")
	check(page)
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimPrefix(string(content), "<!-- begin flags of it -->\n")
	return strings.TrimSuffix(text, "<!-- end flags of it -->\n")
}

// TestUpdate expects that a page that was updated passes, and keeps all else.
func TestUpdate(t *testing.T) {
	page := filepath.Join(t.TempDir(), "flags.md")
	if err := os.WriteFile(page, []byte("before\n<!-- begin flags of it -->\nold\n<!-- end flags of it -->\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Update, "1")
	Check(t, page, "it", flags())
	t.Setenv(Update, "")
	Check(t, page, "it", flags())
	want := checked(t, func(page string) { Check(t, page, "it", flags()) })
	if got, err := os.ReadFile(page); err != nil || string(got) != "before\n<!-- begin flags of it -->\n"+want+"<!-- end flags of it -->\nafter\n" {
		t.Errorf("the page is %s, %v", got, err)
	}
}
