package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/e2e/framework"
)

// testFleet merges the clusters of a registry into a kubeconfig that has something else
// already, has kubectl use it, and removes one of them from both.
func testFleet(t *testing.T, p plugin, hosts map[string]*framework.Host) {
	dir := t.TempDir()
	script := fmt.Sprintf("[ \"$*\" = 'eks get-token --cluster-name=east' ] || exit 1\necho '%s'\n", credential("v1beta1", token(t, hosts["east"])))
	aws := program(t, "aws", script)
	path := "PATH=" + filepath.Dir(aws) + string(os.PathListSeparator) + os.Getenv("PATH")
	// The person has a cluster of their own, which is the west by another way, and a user
	// there.
	fleet := filepath.Join(dir, "fleet")
	own, err := clientcmd.LoadFromFile(hosts["west"].Kubeconfig("ann", "system:masters"))
	if err != nil {
		t.Fatal(err)
	}
	const mine = "mine"
	context := own.Contexts[own.CurrentContext]
	foreign := clientcmdapi.NewConfig()
	foreign.Clusters[mine], foreign.AuthInfos[mine] = own.Clusters[context.Cluster], own.AuthInfos[context.AuthInfo]
	foreign.Contexts[mine], foreign.CurrentContext = &clientcmdapi.Context{Cluster: mine, AuthInfo: mine, Namespace: "kube-public"}, mine
	if err := clientcmd.WriteToFile(*foreign, fleet); err != nil {
		t.Fatal(err)
	}
	before := loaded(t, fleet)

	_, text := p.run(3, "", "kubeconfig", "--all", "--merge="+fleet)
	digest := regexp.MustCompile(`--accept=(sha256:[0-9a-f]+)`).FindStringSubmatch(text)
	if digest == nil || !strings.Contains(text, "runs: aws eks get-token --cluster-name=east") {
		t.Fatalf("it shows %s", text)
	}
	if !reflect.DeepEqual(loaded(t, fleet), before) {
		t.Error("the file was changed although no one has confirmed it")
	}
	p.run(0, "", "kubeconfig", "--all", "--merge="+fleet, "--accept="+digest[1])
	expectMine(t, before, fleet)
	first := content(t, fleet)
	if out, _ := p.run(0, "", "kubeconfig", "--all", "--merge="+fleet); out != fleet+": 0 new or changed, 2 unchanged, 0 removed\n" || content(t, fleet) != first {
		t.Errorf("merged again: %s\n%s\nand before\n%s", out, content(t, fleet), first)
	}
	// How to sign in to the west, the entry doesn't say.
	framework.NewKubectl(t, newest, fleet).Run("config", "set-context", "west", "--user="+mine)
	if out, _ := p.run(0, "", "kubeconfig", "--all", "--merge="+fleet); !strings.Contains(out, "0 new or changed, 2 unchanged") {
		t.Errorf("with a user of the person's own: %s", out)
	}
	for _, version := range []string{"v1.32.13", newest} {
		kubectl := framework.NewKubectl(t, version, fleet).Environment(path)
		for _, args := range []string{"--context=east get ns kube-system", "--context=west get ns kube-system", "get ns kube-system"} {
			if out := kubectl.Run(append(strings.Fields(args), "-o", "name")...); out != "namespace/kube-system\n" {
				t.Errorf("kubectl %s %s prints %q", version, args, out)
			}
		}
	}

	p.run(3, "", "unjoin", "west")
	p.run(0, "", "unjoin", "west", "--yes")
	if out, _ := p.run(0, "", "status"); !strings.HasPrefix(out, "OK: 1 cluster\n") {
		t.Errorf("it says %s", out)
	}
	if out, _ := p.run(0, "", "kubeconfig", "--all", "--merge="+fleet); out != fleet+": 0 new or changed, 1 unchanged, 1 removed\n" {
		t.Errorf("without the west: %s", out)
	}
	after := loaded(t, fleet)
	if after.Contexts["west"] != nil || after.Clusters["west"] != nil || after.Contexts["east"] == nil {
		t.Errorf("without the west, the file has\n%s", content(t, fleet))
	}
	expectMine(t, before, fleet)
	if info, err := os.Stat(fleet); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

// expectMine expects in a file what it had before, and that as the current context.
func expectMine(t *testing.T, before *clientcmdapi.Config, path string) {
	t.Helper()
	after := loaded(t, path)
	for name := range after.Contexts {
		if before.Contexts[name] == nil {
			delete(after.Contexts, name)
		}
	}
	for name := range after.Clusters {
		if before.Clusters[name] == nil {
			delete(after.Clusters, name)
		}
	}
	for name := range after.AuthInfos {
		if before.AuthInfos[name] == nil {
			delete(after.AuthInfos, name)
		}
	}
	if !reflect.DeepEqual(after, before) {
		t.Errorf("of what the file had before, it has now\n%+v\nwant\n%+v", after, before)
	}
}

func loaded(t *testing.T, path string) *clientcmdapi.Config {
	t.Helper()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
