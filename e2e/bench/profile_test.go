package bench

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// profiled is how long a turn is when the servers' profiles are taken.
const profiled = 5 * time.Second

// profile runs a contestant's turn and writes CPU and heap profiles of its
// servers into a folder.
func (op operation) profile(t *testing.T, c *contestant, size int, folder string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	save := func(p *process, kind, query string) error {
		name := strings.ReplaceAll(strings.Join([]string{fmt.Sprint(size), fmt.Sprint(len(c.connections)), op.name, c.name, p.name, kind}, "-"), " ", "-")
		return p.save(t, "/debug/pprof/"+kind+query, filepath.Join(folder, strings.ReplaceAll(name, ",", "")+".pprof"))
	}
	asked := slices.DeleteFunc(slices.Clone(c.servers), func(p *process) bool { return p.client == nil })
	for _, p := range asked {
		group.Go(func() error { return save(p, "profile", fmt.Sprintf("?seconds=%d", int(profiled.Seconds()))) })
	}
	op.run(t, c, size, profiled)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, p := range asked {
		if err := save(p, "heap", "?gc=1"); err != nil {
			t.Fatal(err)
		}
	}
}

// save writes the answer of a path of the process to a file.
func (p *process) save(t *testing.T, path, file string) error {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of the %s: status %s", path, p.name, response.Status)
	}
	out, err := os.Create(filepath.Clean(file))
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	_, err = io.Copy(out, response.Body)
	return err
}
