package kubeconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// TestWhereCredentialsGo expects that a person is told whose credentials an entry
// sends to its server: those of its program, or of the user that they have set.
func TestWhereCredentialsGo(t *testing.T) {
	config := clientcmdapi.NewConfig()
	origin := mark{Registry: "https://hub.example", Scope: "all"}
	plain := entry{Name: "east", cluster: "east", Server: "https://e.example"}
	if err := makePlan(config, nil, []entry{plain}, nil, origin, true).apply(config, origin); err != nil {
		t.Fatal(err)
	}
	config.Contexts["east"].AuthInfo = "me"
	moved, program := plain, plain
	moved.Server = "https://evil.example"
	program.APIVersion, program.Command = execV1, "corp-login"
	shown := func(name string, args ...string) entry {
		out := plain
		out.Name, out.cluster, out.Command, out.Args = "north", "north", name, args
		return out
	}
	for want, wanted := range map[string]entry{
		`signs in as: your user "me", whose credentials go to this server`:                   moved,
		`signs in as: what that program says, and no longer as your user "me"`:               program,
		"sends: the credentials that this program prints, to this server":                    shown("corp-login"),
		"sends: your Google Cloud access token, to this server":                              shown("gke-gcloud-auth-plugin"),
		"sends: a token with which it can act as your AWS identity in the EKS cluster of":    shown("aws", "eks", "get-token", "--cluster-name=x"),
		"sends: your token for Azure Kubernetes Service, which all its clusters accept, to ": shown("kubelogin", "get-token", "--server-id="+aksServer),
		"sends: your ID token for that issuer and client, to this server":                    shown("kubectl", "oidc-login", "get-token", "--oidc-client-id=x", "--oidc-issuer-url=https://login.example"),
	} {
		out := &bytes.Buffer{}
		plan := makePlan(config, nil, []entry{wanted}, nil, origin, true)
		if plan.show(out); !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
		with, err := plan.digest(origin)
		if err != nil {
			t.Fatal(err)
		}
		plan.changes[0].user = "admin"
		if without, err := plan.digest(origin); err != nil || without == with {
			t.Errorf("%q: another user has the same digest, %v", want, err)
		}
	}
}

// TestShownLast expects that what changes is not lost among what is new.
func TestShownLast(t *testing.T) {
	changed := change{before: &entry{Name: "a", Server: "https://a.example"}, after: entry{Name: "a", Server: "https://\u0430.example"}}
	p := plan{changes: []change{changed, {after: entry{Name: "b"}}, {after: entry{Name: "c"}}}, pruned: []string{"d"}, refused: []refusal{{"e", "why"}}}
	out := &bytes.Buffer{}
	p.show(out)
	_, last, found := strings.Cut(out.String(), "~ a (CHANGED)\n    server: https://a.example -> \"https://\\u0430.example\"\n")
	if !found || strings.ContainsAny(last, "+!") || strings.Count(out.String(), "CHANGED") != 1 {
		t.Errorf("it shows\n%s", out)
	}
	if got := p.question(); got != "Use these servers, CAs, proxies and programs (1 CHANGED, 2 new, 1 removed)?" {
		t.Error(got)
	}
}

// TestAuthorities expects that bundles with the same first certificate differ.
func TestAuthorities(t *testing.T) {
	one := certificate(t)
	if authorities(one) == authorities(append(one, "-----BEGIN TRUSTED CERTIFICATE-----"...)) {
		t.Error("what follows the first certificate does not show")
	}
}

// TestPruning expects that most of what a person has goes only when they agree, and
// nothing of a registry that has the same address and another CA.
func TestPruning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	run := func(ca, typed string, wantCode int, names string, args ...string) (*commandtest.Env, string) {
		t.Helper()
		var objects []apiruntime.Object
		for _, name := range strings.Fields(names) {
			objects = append(objects, cluster(name, "https://"+name+".example"))
		}
		env := commandtest.New(t, objects...)
		if typed != "" {
			env.Typing(typed)
		}
		b := &builder{env: env.Env, registry: func() (mark, error) { return mark{Registry: "https://127.0.0.1:6443", CA: ca}, nil }}
		text, code := env.Run(t, b.command(), append([]string{"--all", "--merge=" + path}, args...)...)
		if code != wantCode {
			t.Fatalf("%s: exit code %d, %s\n%s", names, code, text, env.Stderr)
		}
		return env, text
	}
	written := func(want string) {
		t.Helper()
		config, err := load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if is := config.Contexts[name] != nil && config.Clusters[name] != nil; is != strings.Contains(want, name) {
				t.Errorf("want %s: the kubeconfig has %s: %v", want, name, is)
			}
		}
	}
	run("one", "y\n", 0, "a b c d")
	run("one", "", 0, "a b") // half of them
	written("ab")
	// Nothing, as from a registry that was emptied, or where a role hides all.
	env, text := run("one", "", 3, "")
	if written("ab"); !strings.Contains(env.Stderr.String(), "- a (no longer in the registry)\n- b (no longer in the registry)\n") {
		t.Errorf("it shows\n%s", env.Stderr)
	}
	accepted := shownDigest.FindString(text)
	if env, _ := run("one", "n\n", 3, ""); !strings.Contains(env.Stderr.String(), "Remove 2 of the 2 entries that were chosen in this way? [y/N]") {
		t.Errorf("it asks\n%s", env.Stderr)
	}
	run("other", "", 0, "")
	written("ab")
	env, _ = run("other", "", 3, "a")
	if written("ab"); !strings.Contains(env.Stderr.String(), "~ a (CHANGED)") || !strings.Contains(env.Stderr.String(), "from a registry at the same address that had another CA") {
		t.Errorf("it shows\n%s", env.Stderr)
	}
	run("one", "", 3, "a", "--accept="+accepted, "--prefix=x-") // the digest of something else
	run("one", "", 0, "", "--accept="+accepted)
	written("")
}

// TestMarkOf expects that a registry's CA counts, be it in the kubeconfig or in a file.
func TestMarkOf(t *testing.T) {
	ca := certificate(t)
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := markOf(&rest.Config{Host: "https://hub.example", TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	file, err2 := markOf(&rest.Config{Host: "https://hub.example", TLSClientConfig: rest.TLSClientConfig{CAFile: path}})
	if err != nil || err2 != nil || !data.sameRegistry(file) || data.CA == "" || data.sameRegistry(mark{Registry: "https://hub.example"}) {
		t.Errorf("%+v, %+v, %v, %v", data, file, err, err2)
	}
}
