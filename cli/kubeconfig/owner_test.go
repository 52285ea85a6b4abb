package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// TestNamesOfOthers expects that no entry takes the place of something that a person
// has in any of the files that kubectl reads, or completes what is broken there.
func TestNamesOfOthers(t *testing.T) {
	const head = "apiVersion: v1\nkind: Config\n"
	const prod = head + "clusters:\n- name: PROD\n  cluster: {server: \"https://mine.example\"}\nusers:\n- name: me\n  user: {token: geheim}\ncontexts:\n- name: work\n  context: {cluster: PROD, user: me}\n"
	exec := execOf("gke-gcloud-auth-plugin")
	for _, test := range []struct {
		reason, first, second string
		args                  []string
		fault                 string
	}{
		{"a cluster in a later file", "", strings.ReplaceAll(prod, "PROD", "east"), nil, `another file of KUBECONFIG has a cluster "east" of another origin, which stays`},
		{"a user in a later file", "", strings.ReplaceAll(prod, "me\n", "east\n"), nil, `another file of KUBECONFIG has a user "east" of another origin`},
		{"a context in a later file", "", strings.ReplaceAll(prod, "work", "east"), nil, `another file of KUBECONFIG has a context "east" of another origin`},
		{"the same with a prefix", "", strings.ReplaceAll(prod, "PROD", "east"), []string{"--prefix=fleet-"}, ""},
		{"other names", "", prod, nil, ""},
		{"a current context that is gone", head + "current-context: east\n", "", nil, `"east" is your current context, which is not there`},
		{"a current context that is gone, in a later file", "", head + "current-context: east\n", nil, `"east" is your current context, which is not there`},
		{"a context without its cluster", head + "contexts:\n- name: work\n  context: {cluster: east, user: me}\n", "", nil, `your context "work" names a cluster "east", which is not there`},
		{"a context without its user", "", head + "contexts:\n- name: work\n  context: {cluster: mine, user: east}\n", nil, `your context "work" names a user "east", which is not there`},
	} {
		dir := t.TempDir()
		first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
		for path, content := range map[string]string{first: test.first, second: test.second} {
			if content == "" {
				content = head
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("KUBECONFIG", first+string(filepath.ListSeparator)+second)
		for _, merge := range []string{"--merge", "--merge=" + first} {
			env := commandtest.New(t, cluster("east", "https://e.example", exec))
			text, code := env.Run(t, newCommand(env), append([]string{"--all", "--dry-run=client", merge}, test.args...)...)
			switch shown := env.Stderr.String(); {
			case test.fault == "" && (code != 0 || strings.Contains(shown, "refused")):
				t.Errorf("%s, %s: %d, %s\n%s", test.reason, merge, code, text, shown)
			case test.fault != "" && (code != 4 || !strings.Contains(shown, "! east refused: "+test.fault)):
				t.Errorf("%s, %s: %d, %s\n%s", test.reason, merge, code, text, shown)
			}
		}
		// A file of its own is read alone.
		env := commandtest.New(t, cluster("east", "https://e.example", exec))
		if text, code := env.Run(t, newCommand(env), "--all", "--dry-run=client", "--merge="+filepath.Join(dir, "own")); code != 0 {
			t.Errorf("%s, a file of its own: %d, %s\n%s", test.reason, code, text, env.Stderr)
		}
	}
}

// TestNamesOfClusters expects that a cluster of the registry doesn't take the name
// that another one has got by a prefix, and that a person's own context with a cluster
// of the registry is no obstacle.
func TestNamesOfClusters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	west := cluster("west", "https://w.example")
	env := commandtest.New(t, west).Typing("y\n")
	if text, code := env.Run(t, newCommand(env), "west", "--prefix=fleet-", "--merge="+path); code != 0 {
		t.Fatal(text)
	}
	env = commandtest.New(t, cluster("fleet-west", "https://evil.example")).Typing("y\n")
	if text, code := env.Run(t, newCommand(env), "fleet-west", "--merge="+path); code != 4 || !strings.Contains(env.Stderr.String(), `has a cluster "fleet-west" of the registry's cluster "west", which stays`) {
		t.Errorf("%d, %s\n%s", code, text, env.Stderr)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(string(content), "contexts:\n", "contexts:\n- context: {cluster: fleet-west, user: me}\n  name: work\n", 1)
	if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	west.Spec.Endpoints[0].URL = "https://new.example"
	env = commandtest.New(t, west).Typing("y\n")
	if text, code := env.Run(t, newCommand(env), "west", "--prefix=fleet-", "--merge="+path); code != 0 {
		t.Errorf("%d, %s\n%s", code, text, env.Stderr)
	}
}
