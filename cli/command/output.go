package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// Output is how data is printed: for people when it is empty, as json or yaml, or what a
// template of kubectl's JSONPath selects.
type Output string

// selecting begins the form with a template.
const selecting = "jsonpath="

// AddFlag adds the flag -o, with forms that only this command has.
func (o *Output) AddFlag(cmd *cobra.Command, more ...string) {
	forms := append(slices.Clone(more), "json", "yaml")
	cmd.Flags().StringVarP((*string)(o), "output", "o", "", "print as `"+strings.Join(forms, "|")+"|jsonpath=TEMPLATE`")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(append(forms, selecting), cobra.ShellCompDirectiveNoFileComp))
}

// Validate returns an error about the command line for any other form.
func (o Output) Validate(more ...string) error {
	if template, is := strings.CutPrefix(string(o), selecting); is {
		if err := checkTemplate(template); err != nil {
			return Usagef("--output=%s: %w", Plain(string(o)), err)
		}
		return nil
	}
	return oneOf("output", string(o), slices.Concat([]string{""}, more, []string{"json", "yaml", "jsonpath=TEMPLATE"})...)
}

// Print prints an object as json or yaml, in which no character reaches a terminal
// that Plain would leave out: it is escaped. Of what a template selects it is left out.
func (o Output) Print(w io.Writer, object any) error {
	content, err := o.marshal(object)
	if err != nil {
		return fmt.Errorf("print as %s: %w", o, err)
	}
	_, err = w.Write(content)
	return err
}

func (o Output) marshal(object any) ([]byte, error) {
	content, err := json.MarshalIndent(object, "", "    ")
	if err != nil {
		return nil, err
	}
	if template, is := strings.CutPrefix(string(o), selecting); is {
		return selected(template, content)
	}
	// YAML has escapes in quotes only, and its library fails on some characters. JSON
	// has quotes everywhere, and is YAML.
	if o == "json" || bytes.ContainsFunc(content, unsafe) {
		return append(o.escape(content), '\n'), nil
	}
	return yaml.Marshal(object)
}

// escape escapes what is not safe in the strings of a JSON document; outside of them
// there is none but line feeds.
func (o Output) escape(content []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(content) {
		switch {
		case !unsafe(r):
			out.WriteRune(r)
		case r <= math.MaxUint16:
			fmt.Fprintf(&out, `\u%04x`, r)
		case o == "json":
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default: // YAML doesn't join two halves
			fmt.Fprintf(&out, `\U%08x`, r)
		}
	}
	return out.Bytes()
}

// unsafe reports whether a character does anything to a terminal but begin a line.
func unsafe(r rune) bool { return r != '\n' && Plain(string(r)) != string(r) }

// Bare returns a cluster as it is printed: with its kind, without what servers keep
// of who wrote which field.
func Bare(cluster *v1beta1.Cluster) *v1beta1.Cluster {
	out := cluster.DeepCopy()
	out.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"}
	out.ManagedFields = nil
	return out
}

// DryRun says whether and where writes are only tried.
type DryRun string

// AddFlag adds the flag --dry-run.
func (d *DryRun) AddFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "dry-run", "none", "`none|client|server`: client prints what would be written, server lets the registry check it; neither changes anything")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
}

// Validate returns an error about the command line for any other value.
func (d DryRun) Validate() error {
	return oneOf("dry-run", string(d), "none", "client", "server")
}

// AddLocalFlag adds the flag --dry-run of a command that writes a file of the caller, and that
// no server can check therefore. It gets what the command does with the value client.
func (d *DryRun) AddLocalFlag(cmd *cobra.Command, client string) {
	cmd.Flags().StringVar((*string)(d), "dry-run", "none", "`none|client`: client "+client)
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client"}, cobra.ShellCompDirectiveNoFileComp))
}

// ValidateLocal is Validate for such a command.
func (d DryRun) ValidateLocal() error { return oneOf("dry-run", string(d), "none", "client") }

// Client reports whether nothing is to be sent.
func (d DryRun) Client() bool { return d == "client" }

// Options are those of the API's writes.
func (d DryRun) Options() []string {
	if d == "server" {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// Suffix is for the line that says what was done.
func (d DryRun) Suffix() string {
	switch d {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}

// Plain returns a text that is safe on a terminal: one line, without control
// characters, escape sequences and characters that reorder or hide text. What the
// registry holds was written by others.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		// Cc are control characters, ESC and the C1 set among them; Cf are format
		// characters, among them those that change the direction of text.
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
}

// Quote returns a text as one word of a command that is shown to be pasted into a POSIX
// shell. What a cluster, a registry or a file says is not to be run.
func Quote(text string) string {
	text = Plain(text)
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
