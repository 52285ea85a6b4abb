package ui

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// TestListen has the page be reachable from this computer alone.
func TestListen(t *testing.T) {
	listener, err := listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address := netip.MustParseAddrPort(listener.Addr().String())
	if !address.Addr().IsLoopback() {
		t.Errorf("it listens at %s", address)
	}
	if _, err := listen(t.Context(), address.Port()); err == nil || !strings.Contains(err.Error(), "choose another port with --port") {
		t.Errorf("a port that is taken: %v", err)
	}
	if New(commandtest.New(t).Env).Flags().Lookup("address") != nil {
		t.Error("there is a flag for an address")
	}
}

// TestRun serves the page, opens it in a browser, and ends as by Ctrl-C, with the stream open.
func TestRun(t *testing.T) {
	env := commandtest.New(t, cluster("east", "True"))
	env.Objects = commandtest.HostCluster(commandtest.Objects(t, hostObjects)...)
	printed, terminal := io.Pipe()
	env.IOStreams = genericiooptions.IOStreams{Out: terminal, ErrOut: io.Discard}
	ctx, interrupt := context.WithCancel(t.Context())
	opened, removed := "", false
	p := &site{env: env.Env, open: true, browse: func(_ context.Context, url string) (func(), error) {
		opened = url
		return func() { removed = true }, nil
	}}
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	line := make([]byte, 256)
	n, err := printed.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, printed) }()
	found := regexp.MustCompile(`^http://(127\.0\.0\.1:\d+)/#key=([A-Z0-9]+)\n$`).FindStringSubmatch(string(line[:n]))
	if found == nil {
		t.Fatalf("it prints %q", line[:n])
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+found[1]+"/api/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+found[2])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	seen := readUntil(t, response.Body, func(text string) bool {
		return strings.Contains(text, `"name":"east"`) && strings.Contains(text, `"name":"fleet"`) && strings.Contains(text, `"name":"nightly"`)
	})
	if !strings.HasPrefix(seen, "event: about\ndata: {\"context\":\"hub\"}\n\n") {
		t.Errorf("the stream begins with %.80q", seen)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if opened != strings.TrimSpace(string(line[:n])) || !removed {
		t.Errorf("the browser was opened at %q; removed: %v", opened, removed)
	}
	if connection, err := net.Dial("tcp", found[1]); err == nil { //nolint:noctx // it is refused at once
		_ = connection.Close()
		t.Error("it is served still")
	}
}

// readUntil reads a stream until what was read satisfies a condition.
func readUntil(t *testing.T, stream io.Reader, enough func(string) bool) string {
	t.Helper()
	var seen strings.Builder
	buffer := make([]byte, 64<<10)
	for !enough(seen.String()) {
		n, err := stream.Read(buffer)
		if err != nil {
			t.Fatalf("%v after %s", err, seen.String())
		}
		seen.Write(buffer[:n])
	}
	return seen.String()
}

// TestBrowse has a browser be started with the name of a file that no one else can read, and
// not with the URL, which everyone on the computer could.
func TestBrowse(t *testing.T) {
	dir := t.TempDir()
	record := filepath.Join(dir, "seen")
	program := "#!/bin/sh\nstat -c %a \"$1\" >" + record + ".new\necho \"$@\" >>" + record + ".new\ncat \"$1\" >>" + record + ".new\nmv " + record + ".new " + record + "\n"
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(program), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	const url = "http://127.0.0.1:1/#key=SECRET"
	remove, err := browse(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	var content []byte
	for content == nil && t.Context().Err() == nil {
		content, _ = os.ReadFile(record)
	}
	lines := strings.SplitN(string(content), "\n", 3)
	if len(lines) != 3 || lines[0] != "600" || strings.Contains(lines[1], "SECRET") || !strings.Contains(lines[2], url) {
		t.Errorf("the browser gets %q", content)
	}
	remove()
	if _, err := os.Stat(lines[1]); !os.IsNotExist(err) {
		t.Errorf("%s stays: %v", lines[1], err)
	}
}

// asJSON returns what the page gets of a view.
func asJSON(t *testing.T, view any) string {
	t.Helper()
	content, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
