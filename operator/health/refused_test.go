package health

import (
	"net"
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := Refused(t.Context(), address); err != nil {
		t.Errorf("somebody listens: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Refused(t.Context(), address); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("nobody listens: %v", err)
	}
}
