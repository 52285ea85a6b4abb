package health

import (
	"context"
	"net"
	"strings"
	"testing"
)

func TestMeet(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if met, err := Meet(t.Context(), address); met != Answers || err != nil {
		t.Errorf("someone listens: %v, %v", met, err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if met, err := Meet(t.Context(), address); met != Refuses || err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("no one listens: %v, %v", met, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if met, err := Meet(ended, address); met != Silent || err == nil {
		t.Errorf("nothing comes back: %v, %v", met, err)
	}
}
