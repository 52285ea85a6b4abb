package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// further are what commands do beside their sessions, and need rights for.
var further = []session{
	{section: "join", line: "kubectl registry join east --cluster-context admin@east --server https://new.example.com:6443"},
	{section: "unjoin", line: "kubectl registry unjoin west --yes --dry-run=server"},
	{section: "kubeconfig", line: "kubectl registry kubeconfig east west", typed: "y\n"},
	{section: "import", line: "kubectl registry import -f clusters.yaml --overwrite --with-status", code: 4},
	{section: "can-see", line: "kubectl registry can-see payments", host: teamHost, team: true},
	{section: "status", line: "kubectl registry status fleet", code: 4},
	{section: "backup show", line: "kubectl registry backup show before-cleanup"},
	{section: "restore plan", line: "kubectl registry restore plan --registry fleet --latest"},
	{section: "recover plan", line: "kubectl registry recover plan"},
	{section: "diagnose", line: "kubectl registry diagnose", code: 4},
}

// TestRightsAreDocumented runs each command and expects the right to each request that
// it sends in its section of the page.
func TestRightsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(pluginPage)
	if err != nil {
		t.Fatal(err)
	}
	rights := func(section string) string {
		_, text, _ := strings.Cut(string(page), "\n## "+section+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		_, text, _ = strings.Cut(text, "**Rights:**")
		return text
	}
	for _, s := range slices.Concat(sessions, further) {
		documented := rights(s.section)
		if strings.HasPrefix(documented, " as above") {
			documented += rights("upgrade plan")
		}
		_, actions := s.run(t)
		if len(actions) == 0 {
			t.Errorf("%s sends nothing", s.line)
		}
		for _, action := range actions {
			resource := action.GetResource().Resource
			if group := action.GetResource().Group; group != "" && group != clusterregistry.GroupName {
				resource += "." + group
			}
			if below := action.GetSubresource(); below != "" {
				resource += "/" + below
			}
			// report has its list of resources above.
			if !strings.Contains(documented, "`"+action.GetVerb()+"`") || s.section != "report" && !strings.Contains(documented, "`"+resource+"`") {
				t.Errorf("%s needs %s on %s, and the page says:%s", s.line, action.GetVerb(), resource, documented)
			}
		}
	}
}

// TestCompletion asks as a shell does, and expects the names that a command can take.
func TestCompletion(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"join e", "east"},
		{"join east ", ""},
		{"join north --cluster-context a", "admin@east"},
		{"join north --dry-run ", "none client server"},
		{"kubeconfig --dry-run ", "none client"},
		{"unjoin w", "west"},
		{"unjoin west ", ""},
		{"status ", "fleet"},
		{"status fleet ", ""},
		{"status -o ", "json yaml jsonpath="},
		{"clusters ", ""},
		{"kubeconfig east w", "west"},
		{"export ", ""},
		{"import --from-context h", "hub"},
		{"import ", ""},
		{"grant pay", "payments"},
		{"grant payments ", ""},
		{"can-see payments s", "search"},
		{"clusters -o ", "wide name json yaml jsonpath="},
		{"can-see -o ", "table json yaml jsonpath="},
		{"can-see --visibility ", "All ClusterSets"},
		{"upgrade plan f", "fleet"},
		{"upgrade to v0.2.0 ", "fleet"},
		{"etcd ", "defrag members replace rotate-ca"},
		{"etcd members ", "fleet"},
		{"etcd defrag ", "fleet"},
		{"etcd defrag fleet fleet-etcd-", "fleet-etcd-0 fleet-etcd-1 fleet-etcd-2"},
		{"etcd defrag fleet fleet-etcd-0 ", ""},
		{"etcd replace fleet-etcd-1", "fleet-etcd-1"},
		{"etcd replace fleet-etcd-1 ", ""},
		{"etcd rotate-ca ", "etcd serving client"},
		{"etcd rotate-ca serving ", "fleet"},
		{"backup ", "create list show verify"},
		{"backup create ", "fleet"},
		{"backup create fleet --deletion-policy ", "Delete Retain"},
		{"backup list ", "fleet"},
		{"backup show f", "fleet-20261123-1100"},
		{"backup verify ", "before-cleanup fleet-20261123-1100"},
		{"backup verify before-cleanup ", ""},
		{"restore plan b", "before-cleanup"},
		{"restore plan --registry ", "fleet"},
		{"recover ", "plan"},
		{"recover plan ", "fleet"},
		{"recover plan fleet ", ""},
		{"diagnose ", "fleet"},
		{"report ", "fleet"},
		{"--context ", "admin@east hub"},
	} {
		env := commandtest.New(t, clustersOf(t, "")...)
		teamOf(t, env)
		env.Objects = commandtest.HostCluster(commandtest.Objects(t, sessionHost)...)
		t.Chdir(t.TempDir())
		kubeconfig := t.TempDir() + "/config"
		t.Setenv("KUBECONFIG", kubeconfig)
		writeSessionFiles(t, kubeconfig)
		cmd := root(env.Env)
		cmd.SetArgs(append([]string{"__complete"}, strings.Split(test.line, " ")...))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(env.Stdout.String()) {
			if name, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(name, ":") {
				got = append(got, name)
			}
		}
		if slices.Sort(got); strings.Join(got, " ") != strings.Join(slices.Sorted(slices.Values(strings.Fields(test.want))), " ") {
			t.Errorf("%q is completed to %q", test.line, got)
		}
	}
}
