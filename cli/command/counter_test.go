package command

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestCounter says nothing of what is done soon, and how far it is of what takes long.
func TestCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := &bytes.Buffer{}
		env := &Env{IOStreams: genericiooptions.IOStreams{ErrOut: said}}
		done := 0
		stop := env.Counter(t.Context(), "Entering clusters", func() int { return done }, 300)
		time.Sleep(time.Second)
		stop()
		if said.Len() > 0 {
			t.Errorf("after a second it has said %q", said)
		}
		stop = env.Counter(t.Context(), "Entering clusters", func() int { return done }, 300)
		time.Sleep(time.Second / 2) // so that nothing happens in the moment of which it says something
		for range 15 {
			done += 20
			time.Sleep(time.Second)
		}
		stop()
		if got, want := said.String(), "Entering clusters: 40 of 300 ...\nEntering clusters: 140 of 300 ...\nEntering clusters: 240 of 300 ...\n"; got != want {
			t.Errorf("it says %q", got)
		}
	})
}
