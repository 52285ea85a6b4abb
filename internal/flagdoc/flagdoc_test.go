package flagdoc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
)

func flags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.String("name", "", "The `NAME` of it.")
	fs.StringSlice("list", nil, "Some, a|b or <c>.\nMany\nlines.")
	fs.Bool("quick", true, "Do it quickly.")
	fs.Int("old", 1, "An old one.")
	_ = fs.MarkDeprecated("old", "it is old")
	return fs
}

func TestTable(t *testing.T) {
	const want = "| Flag | Default | What it is |\n|---|---|---|\n" +
		"| `--list strings` |  | Some, a\\|b or &lt;c>. (see `--help`) |\n" +
		"| `--name NAME` |  | The NAME of it. |\n" +
		"| `--quick` | `true` | Do it quickly. |\n"
	if got, err := table(flags()); err != nil || got != want {
		t.Errorf("got %v\n%swant\n%s", err, got, want)
	}
	silent := pflag.NewFlagSet("", pflag.ContinueOnError)
	silent.Bool("silent", false, "")
	if _, err := table(silent); err == nil {
		t.Error("a flag without a usage passes")
	}
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
	want, err := table(flags())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != "before\n<!-- begin flags of it -->\n"+want+"<!-- end flags of it -->\nafter\n" {
		t.Errorf("the page is %s, %v", got, err)
	}
}
