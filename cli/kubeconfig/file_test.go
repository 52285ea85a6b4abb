package kubeconfig

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// typist is a person who does something before they answer.
type typist struct {
	before func()
	answer io.Reader
}

func (t *typist) Read(p []byte) (int, error) {
	if t.before != nil {
		t.before()
		t.before = nil
	}
	return t.answer.Read(p)
}

// TestFileErrors has what can be wrong with the file that is merged into, from its name
// on, and expects the reason, and that nothing is left behind.
func TestFileErrors(t *testing.T) {
	long := func(letters int) string { return strings.Repeat("x", letters) }
	for _, test := range []struct {
		reason string
		// path is that of the file in the directory DIR.
		path string
		// second is the content of another file of $KUBECONFIG.
		second string
		text   string
		code   int
	}{
		{"a directory", ".", "", "read the kubeconfig: read DIR: is a directory", 1},
		{"below a file", "file/config", "", "read the kubeconfig: open DIR/file/config: not a directory", 1},
		{"a name that is too long to lock", long(252), "", "lock the kubeconfig: open DIR/" + long(252) + ".lock: file name too long", 1},
		{"a name that is too long to replace", long(249), "", "write the kubeconfig: open DIR/." + long(249) + "-", 1},
		{"beside a broken one", "config", "{", "the file DIR/second is not a valid kubeconfig: ", 1},
	} {
		dir := t.TempDir()
		path, second := filepath.Join(dir, test.path), filepath.Join(dir, "second")
		for path, content := range map[string]string{second: test.second, filepath.Join(dir, "file"): ""} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("KUBECONFIG", path+string(filepath.ListSeparator)+second)
		env := commandtest.New(t, cluster("east", "https://e.example")).Typing("y\n")
		text, code := env.Run(t, newCommand(env), "east", "--merge="+path)
		if code != test.code || !strings.HasPrefix(text, strings.ReplaceAll(test.text, "DIR", dir)) {
			t.Errorf("%s: %d, %s", test.reason, code, text)
		}
		if test.second != "" && !strings.HasSuffix(text, "; nothing was changed; it is one of $KUBECONFIG, and its names are not to be hidden by others") {
			t.Errorf("%s: %s", test.reason, text)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 2 {
			t.Errorf("%s: it leaves %v, %v", test.reason, left, err)
		}
	}
}

// TestSaveErrors expects that a file that can't be replaced stays, and nothing else.
func TestSaveErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := save(path, clientcmdapi.NewConfig()); err == nil || !strings.HasPrefix(err.Error(), "write the kubeconfig: rename "+dir) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	if _, err := lock(t.Context(), filepath.Join(dir, "config", "below", "x")); err != nil {
		t.Errorf("a directory is not made: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lock(t.Context(), filepath.Join(dir, "file", "config")); err == nil || !strings.HasPrefix(err.Error(), "make the directory of the kubeconfig: mkdir "+dir+"/file: ") {
		t.Error(err)
	}
}

// TestChangedWhileAsked expects that what a person agrees to is not done to another file
// than they were shown.
func TestChangedWhileAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	env := commandtest.New(t, cluster("east", "https://e.example")).Typing("")
	env.In = &typist{answer: strings.NewReader("y\n"), before: func() {
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(foreign, "west", "east")), 0o600); err != nil {
			t.Error(err)
		}
	}}
	text, code := env.Run(t, newCommand(env), "east", "--merge="+path)
	if code != 3 || text != "the file "+path+" was changed in the meantime: nothing was written; run this again" {
		t.Errorf("%d, %s", code, text)
	}
	if content, err := os.ReadFile(path); err != nil || strings.Contains(string(content), "https://e.example") {
		t.Errorf("it is written: %s, %v", content, err)
	}
}

// TestInterruptedAtTheEnd expects that Ctrl-C keeps a file as it is up to the last moment.
func TestInterruptedAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	env := commandtest.New(t, cluster("east", "https://e.example"))
	text, _ := env.Run(t, newCommand(env), "east", "--merge="+path)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	b := &builder{env: env.Env, names: []string{"east"}, merge: path, dryRun: "none", accept: shownDigest.FindString(text), registry: func() (mark, error) { return mark{Registry: "https://hub.example"}, nil }}
	if err := b.run(ctx); command.ExitCode(err) != command.ExitRefused || err.Error() != "interrupted: nothing was changed" {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestNoRightToList expects which right is missing.
func TestNoRightToList(t *testing.T) {
	env := commandtest.New(t)
	env.Clusters.PrependReactor("list", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
	})
	if text, code := env.Run(t, newCommand(env), "--all"); code != 1 || text != "list the clusters: clusters.clusterregistry.k8s.io is forbidden: no; docs/reference/plugin.md lists the rights that each command needs" {
		t.Errorf("%d, %s", code, text)
	}
}

// TestWrongDigest expects both digests, and that a digest of something else accepts
// nothing.
func TestWrongDigest(t *testing.T) {
	env := commandtest.New(t, cluster("east", "https://e.example"))
	text, code := env.Run(t, newCommand(env), "east", "--accept=sha256:0")
	if digest := shownDigest.FindString(text); code != 3 || text != "what is to be confirmed has the digest "+digest+", and --accept has sha256:0: nothing was changed; check what is shown above, then use that digest" {
		t.Errorf("%d, %s", code, text)
	}
}

// TestRegistrysConfig has what can be wrong with the registry's own kubeconfig.
func TestRegistrysConfig(t *testing.T) {
	env := commandtest.New(t, cluster("east", "https://e.example"))
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	env.Flags.KubeConfig = &nowhere
	if text, code := env.Run(t, New(env.Env), "east"); code != 1 || !strings.HasPrefix(text, "find the registry's kubeconfig: ") || !strings.HasSuffix(text, "; name a file with --kubeconfig and a context with --context") {
		t.Errorf("no kubeconfig: %d, %s", code, text)
	}
	if _, err := markOf(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: nowhere}}); err == nil || err.Error() != "read the registry's CA: open "+nowhere+": no such file or directory; correct certificate-authority in the kubeconfig" {
		t.Errorf("no CA: %v", err)
	}
}
