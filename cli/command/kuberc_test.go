package command

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// withKuberc sets up a home with a kuberc, none when the content is empty.
func withKuberc(t *testing.T, content string) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("KUBERC", "")
	t.Setenv("KUBECTL_KUBERC", "")
	file := filepath.Join(home, ".kube", "kuberc")
	if content == "" {
		return file
	}
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const preferences = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"

// TestPluginPolicy expects that what kubectl would not run is not run, and that a
// policy that can't be understood is not one that allows everything.
func TestPluginPolicy(t *testing.T) {
	for _, test := range []struct {
		reason, kuberc string
		want           string
		allowed        string
		text           string
	}{
		{reason: "no file"},
		{reason: "an empty file", kuberc: "\n"},
		{reason: "no policy", kuberc: preferences + "aliases:\n- {name: getn, command: get}\n"},
		{reason: "all are allowed", kuberc: preferences + "credentialPluginPolicy: AllowAll\n", want: "AllowAll"},
		{reason: "none is allowed", kuberc: preferences + "credentialPluginPolicy: DenyAll\n", want: "DenyAll"},
		{reason: "some are", kuberc: preferences + "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- command: aws\n", want: "Allowlist", allowed: "aws"},
		{reason: "some are, as kubectl 1.35 has it", kuberc: preferences + "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- name: aws\n", want: "Allowlist", allowed: "aws"},
		{reason: "the first version that has none", kuberc: "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\n---\n" + preferences + "credentialPluginPolicy: DenyAll\n"},
		{reason: "a version of the future first", kuberc: "apiVersion: kubectl.config.k8s.io/v2\nkind: Preference\n---\n" + preferences + "credentialPluginPolicy: DenyAll\n", want: "DenyAll"},
		{reason: "a version of the future alone", kuberc: "apiVersion: kubectl.config.k8s.io/v2\nkind: Preference\ncredentialPluginPolicy: DenyAll\n", text: "it has no Preference of kubectl.config.k8s.io/v1beta1"},
		{reason: "not YAML", kuberc: preferences + "credentialPluginPolicy: [\n", text: "yaml: "},
		{reason: "an unknown policy", kuberc: preferences + "credentialPluginPolicy: denyall\n", text: `unknown plugin policy: "denyall"`},
		{reason: "a list without its policy", kuberc: preferences + "credentialPluginAllowlist: [{command: aws}]\n", text: "allowlist is non-nil"},
		{reason: "an empty list", kuberc: preferences + "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: []\n", text: "allowlist is empty"},
		{reason: "no list", kuberc: preferences + "credentialPluginPolicy: Allowlist\n", text: "allowlist is unspecified"},
		{reason: "an empty entry", kuberc: preferences + "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{}]\n", text: "empty allowlist entry #1"},
		{reason: "two names of one entry", kuberc: preferences + "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{name: aws, command: az}]\n", text: "credentialPluginAllowlist[0] has a command and another name: remove the name"},
	} {
		file := withKuberc(t, test.kuberc)
		config := &rest.Config{ExecProvider: &clientcmdapi.ExecConfig{Command: "aws"}}
		err := ApplyPluginPolicy(config)
		if test.text != "" {
			if err == nil || ExitCode(err) != ExitRefused || !strings.HasPrefix(err.Error(), "which credential plugins may run is not known: kuberc "+file+": ") ||
				!strings.Contains(err.Error(), test.text) || !strings.HasSuffix(err.Error(), "; correct it, or use no kuberc with KUBERC=off") {
				t.Errorf("%s: %v", test.reason, err)
			}
			continue
		}
		got := config.ExecProvider.PluginPolicy
		if err != nil || string(got.PolicyType) != test.want || (test.allowed != "") != (len(got.Allowlist) == 1) || test.allowed != "" && got.Allowlist[0].Command != test.allowed {
			t.Errorf("%s: %+v, %v", test.reason, got, err)
		}
	}
}

// TestWhichKuberc expects the file that kubectl would read.
func TestWhichKuberc(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte(preferences+"credentialPluginPolicy: AllowAll\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ kuberc, feature, want, text string }{
		{want: "DenyAll"},
		{kuberc: "off"},
		{feature: "false"},
		{feature: "true", want: "DenyAll"},
		{kuberc: other, want: "AllowAll"},
		{kuberc: other + ".gone", text: "no such file or directory"},
	} {
		withKuberc(t, preferences+"credentialPluginPolicy: DenyAll\n")
		t.Setenv("KUBERC", test.kuberc)
		t.Setenv("KUBECTL_KUBERC", test.feature)
		config := &rest.Config{ExecProvider: &clientcmdapi.ExecConfig{Command: "aws"}}
		err := ApplyPluginPolicy(config)
		if test.text != "" {
			if runtime.GOOS != "windows" && (err == nil || !strings.Contains(err.Error(), test.text)) {
				t.Errorf("%+v: %v", test, err)
			}
			continue
		}
		if got := string(config.ExecProvider.PluginPolicy.PolicyType); err != nil || got != test.want {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
	withKuberc(t, "[")
	if err := ApplyPluginPolicy(&rest.Config{}); err != nil {
		t.Errorf("a context without a plugin: %v", err)
	}
}

// TestTheRegistrysPluginIsNotRun signs in to a registry with a plugin that the
// kuberc denies, and expects that the plugin leaves no trace.
func TestTheRegistrysPluginIsNotRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the plugin is a shell script")
	}
	dir := t.TempDir()
	plugin, trace, config := filepath.Join(dir, "login"), filepath.Join(dir, "trace"), filepath.Join(dir, "config")
	for file, content := range map[string]string{
		plugin: "#!/bin/sh\ntouch " + trace + "\nexit 1\n",
		config: "apiVersion: v1\nkind: Config\ncurrent-context: hub\nclusters: [{name: hub, cluster: {server: \"https://127.0.0.1:1\"}}]\ncontexts: [{name: hub, context: {cluster: hub, user: me}}]\n" +
			"users: [{name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: " + plugin + "}}}]\n",
	} {
		if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for policy, want := range map[string]bool{"DenyAll": false, "AllowAll": true} {
		withKuberc(t, preferences+"credentialPluginPolicy: "+policy+"\n")
		env := New()
		*env.Flags.KubeConfig = config
		registry, err := env.Registry()
		if err != nil {
			t.Fatal(err)
		}
		_, err = registry.ClusterregistryV1beta1().Clusters().List(t.Context(), metav1.ListOptions{})
		if err == nil {
			t.Fatal("a server that isn't there answers")
		}
		if _, missing := os.Stat(trace); (missing == nil) != want {
			t.Errorf("%s: the plugin was run: %t; %v", policy, missing == nil, err)
		}
		if text := env.Explain("list the clusters", OfRegistry, err).Error(); !want && !strings.HasSuffix(text, `plugin "`+plugin+`" not allowed: policy set to "DenyAll"; the policy is in your kuberc`) {
			t.Errorf("%s: %s", policy, text)
		}
		_ = os.Remove(trace)
	}
}
