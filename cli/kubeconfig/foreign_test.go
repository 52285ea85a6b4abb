package kubeconfig

import (
	"strings"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// TestChangedByHand has what another program can do to an entry in the file, and expects
// that it is shown, has to be confirmed, has a digest of its own and is gone afterwards.
func TestChangedByHand(t *testing.T) {
	origin := mark{Registry: "https://hub.example", Scope: "all"}
	for _, test := range []struct {
		reason string
		change func(*clientcmdapi.Config)
		shown  []string
	}{
		{"no verification", func(c *clientcmdapi.Config) { c.Clusters["east"].InsecureSkipTLSVerify = true }, []string{"set by hand: insecure-skip-tls-verify -> nothing"}},
		{"the CA of a file", func(c *clientcmdapi.Config) { c.Clusters["east"].CertificateAuthority = "/tmp/evil.crt" }, []string{"set by hand: certificate-authority -> nothing"}},
		{"another server", func(c *clientcmdapi.Config) { c.Clusters["east"].Server = "https://evil.example" }, []string{"server: https://evil.example -> https://e.example"}},
		{"a token", func(c *clientcmdapi.Config) { c.AuthInfos["east"].Token = "geheim" }, []string{"set by hand: token -> nothing"}},
		{"a token of a file", func(c *clientcmdapi.Config) { c.AuthInfos["east"].TokenFile = "/etc/shadow" }, []string{"set by hand: token -> nothing"}},
		{"a certificate", func(c *clientcmdapi.Config) {
			c.AuthInfos["east"].ClientCertificateData, c.AuthInfos["east"].ClientKey = []byte("x"), "/tmp/key"
		}, []string{"set by hand: client-certificate, client-key -> nothing"}},
		{"a password", func(c *clientcmdapi.Config) {
			c.AuthInfos["east"].Username, c.AuthInfos["east"].Password = "ann", "geheim"
		}, []string{"set by hand: username -> nothing"}},
		{"an auth provider", func(c *clientcmdapi.Config) {
			c.AuthInfos["east"].AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		}, []string{"set by hand: auth-provider -> nothing"}},
		{"another argument", func(c *clientcmdapi.Config) { c.AuthInfos["east"].Exec.Args = []string{"--to=evil"} }, []string{"runs: corp-login --to=evil -> corp-login"}},
		{"a context of another cluster, with a user that is for that one", func(c *clientcmdapi.Config) {
			c.Clusters["mine"], c.AuthInfos["me"] = &clientcmdapi.Cluster{Server: "https://mine.example"}, &clientcmdapi.AuthInfo{Token: "geheim"}
			c.Contexts["east"].Cluster, c.Contexts["east"].AuthInfo = "mine\x1b", "me"
		}, []string{`server: that of the cluster "mine" -> https://e.example`, `no longer as your user "me"`}},
	} {
		config := clientcmdapi.NewConfig()
		wanted := []entry{{Name: "east", cluster: "east", Server: "https://e.example", APIVersion: execV1, Command: "corp-login"}}
		if err := makePlan(config, nil, wanted, nil, origin, true).apply(config, origin); err != nil {
			t.Fatal(err)
		}
		if again := makePlan(config, nil, wanted, nil, origin, true); again.asks() {
			t.Fatalf("without a change it is %+v", again.changes)
		}
		untouched, err := makePlan(config, nil, nil, nil, origin, false).digest(origin)
		if err != nil {
			t.Fatal(err)
		}
		test.change(config)
		plan, shown := makePlan(config, nil, wanted, nil, origin, true), &strings.Builder{}
		plan.show(shown)
		for _, want := range append(test.shown, "~ east (CHANGED)") {
			if !plan.asks() || !strings.Contains(shown.String(), want) || strings.ContainsAny(shown.String(), "\x1b") {
				t.Errorf("%s: %q is not shown:\n%s", test.reason, want, shown)
			}
		}
		if digest, err := plan.digest(origin); err != nil || digest == untouched {
			t.Errorf("%s: the digest is that of no change, %v", test.reason, err)
		}
		if err := plan.apply(config, origin); err != nil {
			t.Fatal(err)
		}
		if now := fromFile(config, "east"); !now.same(wanted[0]) || config.Contexts["east"].AuthInfo != "east" || len(credentialsIn(config.AuthInfos["east"])) > 0 {
			t.Errorf("%s: it is now %+v", test.reason, now)
		}
	}
}

// TestContextOfAnotherCluster expects that the credentials which a person has chosen for
// another cluster don't go to the registry's without their consent.
func TestContextOfAnotherCluster(t *testing.T) {
	config, origin := clientcmdapi.NewConfig(), mark{Registry: "https://hub.example", Scope: "all"}
	wanted := []entry{{Name: "east", cluster: "east", Server: "https://e.example"}}
	if err := makePlan(config, nil, wanted, nil, origin, true).apply(config, origin); err != nil {
		t.Fatal(err)
	}
	config.Contexts["east"].Cluster, config.Contexts["east"].AuthInfo = "mine", "me"
	plan, shown := makePlan(config, nil, wanted, nil, origin, true), &strings.Builder{}
	plan.show(shown)
	if !plan.asks() || !strings.Contains(shown.String(), `signs in as: your user "me", whose credentials go to this server`) {
		t.Errorf("it shows\n%s", shown)
	}
}

// TestWhatStays expects that what of an entry's user stays is shown with each change,
// since it goes where the entry leads, and is part of what is accepted.
func TestWhatStays(t *testing.T) {
	config, origin := clientcmdapi.NewConfig(), mark{Registry: "https://hub.example", Scope: "all"}
	wanted := []entry{{Name: "east", cluster: "east", Server: "https://e.example", APIVersion: execV1, Command: "corp-login"}}
	if err := makePlan(config, nil, wanted, nil, origin, true).apply(config, origin); err != nil {
		t.Fatal(err)
	}
	config.Clusters["east"].DisableCompression = true
	wanted[0].Server = "https://new.example"
	without, err := makePlan(config, nil, wanted, nil, origin, true).digest(origin)
	if err != nil {
		t.Fatal(err)
	}
	config.AuthInfos["east"].Impersonate = "auditor"
	config.AuthInfos["east"].Exec.Env = []clientcmdapi.ExecEnvVar{{Name: "AWS_PROFILE\x1b", Value: "geheim"}, {Name: "p\u0430th"}}
	plan, shown := makePlan(config, nil, wanted, nil, origin, true), &strings.Builder{}
	plan.show(shown)
	if !strings.Contains(shown.String(), "    with what you have set for your user: the variable AWS_PROFILE, the variable \"p\\u0430th\", as auditor\n") || strings.Contains(shown.String(), "geheim") {
		t.Errorf("it shows\n%s", shown)
	}
	if with, err := plan.digest(origin); err != nil || with == without {
		t.Errorf("the digest is the same, %v", err)
	}
	if err := plan.apply(config, origin); err != nil || !config.Clusters["east"].DisableCompression {
		t.Errorf("it is %+v, %v", config.Clusters["east"], err)
	}
	wanted[0].Command = "other-login" // which gets none of the variables
	shown.Reset()
	makePlan(config, nil, wanted, nil, origin, true).show(shown)
	if !strings.Contains(shown.String(), "with what you have set for your user: as auditor\n") {
		t.Errorf("it shows\n%s", shown)
	}
}

// TestDryRunOfRefused expects that a run that changes nothing doesn't say that it has.
func TestDryRunOfRefused(t *testing.T) {
	env := commandtest.New(t, cluster("east", "https://e.example", execOf("sh")), cluster("west", "https://w.example"))
	if text, code := env.Run(t, newCommand(env), "--all", "--dry-run=client"); code != 4 || text != "1 refused, see above" {
		t.Errorf("%d, %s", code, text)
	}
}
