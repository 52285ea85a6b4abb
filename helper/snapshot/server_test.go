package snapshot

import (
	"strings"
	"testing"
)

// TestMessages is about what of etcd's log a person is shown.
func TestMessages(t *testing.T) {
	for log, want := range map[string]string{
		"": "",
		`{"level":"fatal","msg":"discovery failed","error":"walpb: crc mismatch","stacktrace":"main.main\n\truntime/proc.go:290"}`: "discovery failed: walpb: crc mismatch;",
		"{\"level\":\"warn\",\"msg\":\"slow\"}\nabc\n":                            "slow; abc",
		"panic: no bucket\n\ngoroutine 1 [running]:\nmain.main()\n\t/main.go:1\n": "panic: no bucket",
		"goroutine 1 [running]:\nmain.main()\n{\"msg\":\"after\"}\n":              "after;",
	} {
		if got := lastLines([]byte(messages([]byte(log)))); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}

// TestTail keeps the end.
func TestTail(t *testing.T) {
	log := &tail{}
	for range 10000 {
		if n, err := log.Write([]byte("line of a log\n")); n != 14 || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := log.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if kept := log.bytes(); len(kept) > 64<<10 || !strings.HasSuffix(string(kept), "log\nend") {
		t.Errorf("%d bytes are kept", len(kept))
	}
}
