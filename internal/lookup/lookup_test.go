package lookup

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/clusterregistry/operator/internal/lookup/lookuptest"
)

// TestExplain has connections fail in DNS and after it, and end before it has answered.
func TestExplain(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil { // it refuses connections
		t.Fatal(err)
	}
	for reason, test := range map[string]struct {
		host    string
		does    lookuptest.Does
		because error
		is      bool
	}{
		"DNS is silent": {"a.example.", lookuptest.Ignore, errors.New("its time is up"), true},
		"DNS is silent, and no one needs it any more": {"b.example.", lookuptest.Ignore, context.Canceled, false},
		"DNS fails":                 {"c.example.", lookuptest.Fail, nil, true},
		"the connection is refused": {"d.example.", lookuptest.Answer, nil, false},
		"an address refuses":        {"127.0.0.1", lookuptest.Ignore, nil, false},
	} {
		names := lookuptest.New("127.0.0.1")
		names.Turn(test.does)
		l := &Lookup{}
		ctx, end := context.WithTimeout(l.Trace(t.Context()), time.Second)
		_, err := (&net.Dialer{Resolver: names.Resolver(t)}).DialContext(ctx, "tcp", net.JoinHostPort(test.host, port))
		end()
		if test.because != nil {
			err = test.because // as whoever waits has it
		}
		if got := l.Explain(err, test.host); Failed(got) != test.is || !errors.Is(got, err) {
			t.Errorf("%s: %v", reason, got)
		}
	}
	if err := (&Lookup{}).Explain(nil, "a.example."); err != nil {
		t.Errorf("what succeeds fails: %v", err)
	}
}
