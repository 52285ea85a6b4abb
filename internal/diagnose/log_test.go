package diagnose

import "testing"

// TestLogged is about what etcd ends with: kubelet keeps the last 2048 bytes.
func TestLogged(t *testing.T) {
	const (
		info  = `{"level":"info","ts":"2026-01-01T00:00:00Z","caller":"etcdserver/bootstrap.go:90","msg":"Bootstrapping WAL from snapshot"}`
		bolt  = `{"level":"error","ts":"2026-01-01T00:00:00Z","logger":"bbolt","msg":"Committing transaction failed: write /data/db: no space left on device","stacktrace":"go.etcd.io/bbolt.(*Tx).Commit\n\tgo.etcd.io/bbolt@v1.4.3/tx.go:247"}`
		fatal = `{"level":"fatal","ts":"2026-01-01T00:00:00Z","msg":"failed to commit tx","error":"write /data/db: no space left on device","stacktrace":"go.etcd.io/etcd/server/v3/storage/backend.(*batchTx).commit\n\tgo.etcd.io"}`
	)
	for _, test := range []struct{ reason, text, want string }{
		{"nothing", "", ""},
		{"text", "panic: no\n\ngoroutine 1", "panic: no\n\ngoroutine 1"},
		{"a failure, without its trace", fatal, "failed to commit tx: write /data/db: no space left on device"},
		{"failures count more than what was said before", info + "\n" + bolt + "\n" + info + "\n" + fatal + "\n",
			"Committing transaction failed: write /data/db: no space left on device\nfailed to commit tx: write /data/db: no space left on device"},
		{"what was said last, where nothing failed", info + "\n" + info, "Bootstrapping WAL from snapshot\nBootstrapping WAL from snapshot"},
		{"the first line is cut off", `backend.go:443"}` + "\n" + fatal, "failed to commit tx: write /data/db: no space left on device"},
		{"the only line is cut off", `backend.go:443"}`, `backend.go:443"}`},
		{"a panic follows", info + "\n" + "panic: no\n\ngoroutine 1", "panic: no\n\ngoroutine 1"},
		{"the guard has spoken first", "the member has data\n" + info + "\n" + fatal, "the member has data\nfailed to commit tx: write /data/db: no space left on device"},
		{"JSON of another kind", `{"revision": 7}`, `{"revision": 7}`},
		{"an error that is an object", `{"level":"fatal","msg":"no","error":{"code":1}}`, "no: map[code:1]"},
	} {
		if got := logged(test.text); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}
