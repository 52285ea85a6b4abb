package health

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/internal/lookup"
	"github.com/clusterregistry/operator/internal/lookup/lookuptest"
)

func TestMeet(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if met, err := Dial(nil).Meet(t.Context(), address); met != Answers || err != nil {
		t.Errorf("someone listens: %v, %v", met, err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if met, err := Dial(nil).Meet(t.Context(), address); met != Refuses || err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("no one listens: %v, %v", met, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if met, err := Dial(nil).Meet(ended, address); met != Silent || err == nil {
		t.Errorf("nothing comes back: %v, %v", met, err)
	}
}

// TestMeetNames has DNS fail, be silent for longer than an address may take, and answer again.
func TestMeetNames(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	names := lookuptest.New("127.0.0.1")
	names.Everywhere(t)
	address := net.JoinHostPort("registry.example.", port)
	for _, does := range []lookuptest.Does{lookuptest.Fail, lookuptest.Ignore} {
		names.Turn(does)
		if met, err := Dial(nil).Meet(t.Context(), address); met != Silent || !lookup.Failed(err) {
			t.Errorf("DNS is away (%d): %v, %v", does, met, err)
		}
	}
	names.Turn(lookuptest.Answer)
	if met, err := Dial(nil).Meet(t.Context(), address); met != Answers || err != nil {
		t.Errorf("DNS is back: %v, %v", met, err)
	}
}
