package command

import (
	"context"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestConfirm expects a yes of those who say so, and of no one who has pressed Ctrl-C.
func TestConfirm(t *testing.T) {
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	silent, typing := io.Pipe()
	t.Cleanup(func() { _ = typing.Close() })
	for reason, test := range map[string]struct {
		ctx  context.Context
		in   io.Reader
		want string
	}{
		"yes":                         {t.Context(), strings.NewReader("Yes\n"), ""},
		"y, and the end of the input": {t.Context(), strings.NewReader("y"), ""},
		"no":                          {t.Context(), strings.NewReader("n\n"), "not confirmed: nothing was changed"},
		"a line without an answer":    {t.Context(), strings.NewReader("\n"), "not confirmed: nothing was changed"},
		"the end of the input":        {t.Context(), strings.NewReader(""), "no answer: nothing was changed"},
		"Ctrl-C":                      {interrupted, silent, "interrupted: nothing was changed"},
		"Ctrl-C, then y":              {interrupted, strings.NewReader("y\n"), "interrupted: nothing was changed"},
	} {
		env := &Env{IOStreams: genericiooptions.IOStreams{In: test.in, ErrOut: io.Discard}, Terminal: func() bool { return true }}
		err := env.Confirm(test.ctx, "Really?", "--yes")
		switch {
		case err == nil && test.want != "":
			t.Errorf("%s: it is a yes", reason)
		case err != nil && (err.Error() != test.want || ExitCode(err) != ExitRefused):
			t.Errorf("%s: %v", reason, err)
		}
	}
}
