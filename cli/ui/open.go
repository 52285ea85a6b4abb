package ui

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// openers are the programs that open a file in the browser, by operating system.
var openers = map[string][]string{
	"darwin":  {"open"},
	"windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

// browse opens a URL in the browser, and returns what removes its traces. Arguments of a
// process can be read by other users of the computer, so the browser gets the name of a file
// that only the caller can read, which leads to the URL.
func browse(ctx context.Context, url string) (func(), error) {
	dir, err := os.MkdirTemp("", "kubectl-registry-ui-")
	if err != nil {
		return func() {}, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	content := fmt.Sprintf("<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=%s\"><title>kubectl registry ui</title>\n", html.EscapeString(url))
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return remove, err
	}
	opener := openers[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	cmd := exec.CommandContext(ctx, opener[0], append(opener[1:], file)...)
	if err := cmd.Start(); err != nil {
		return remove, err
	}
	go func() { _ = cmd.Wait() }() // some wait for the browser to end
	return remove, nil
}
