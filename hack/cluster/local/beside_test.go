package local

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/hack/cluster/network"
)

// record makes the record of a cluster in a directory of clusters.
func record(t *testing.T, dir, name string, s state) *Cluster {
	t.Helper()
	c := &Cluster{Name: name, Dir: dir + "/" + name, Out: t.Output()}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c.state = s
	if err := c.writeState(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPlaceBeside(t *testing.T) {
	dir := t.TempDir()
	subnet := netip.MustParsePrefix("10.200.7.0/24")
	at := func(index int) *neighbor { return &neighbor{Cluster: "registry", Index: index, Nodes: 3} }
	registry := record(t, dir, "registry", state{Nodes: 3, Subnet: subnet})
	record(t, dir, "first", state{Subnet: subnet, Beside: at(1)})
	record(t, dir, "third", state{Subnet: subnet, Beside: at(3)})
	record(t, dir, "alone", state{Subnet: netip.MustParsePrefix("10.200.8.0/24")})
	if err := os.MkdirAll(dir+"/damaged", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/damaged/cluster.json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reason string
		wish   Cluster
		nodes  int
		err    string
	}{
		{reason: "the first free place", wish: Cluster{Beside: "registry"}},
		{reason: "with nodes", wish: Cluster{Beside: "registry"}, nodes: 1, err: "add --nodes=0"},
		{reason: "with a subnet", wish: Cluster{Beside: "registry", Subnet: "10.9.0.0/24"}, err: "exclude each other"},
		{reason: "beside nothing", wish: Cluster{Beside: "absent"}, err: `--beside=absent: there is no cluster "absent" here`},
		{reason: "beside one that is beside another", wish: Cluster{Beside: "first"}, err: "is itself beside registry; name that"},
	} {
		c := test.wish
		c.Name, c.Dir, c.state = "new", dir+"/new", state{Nodes: test.nodes}
		err := c.placeBeside()
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got %v, want %q", test.reason, err, test.err)
			}
			continue
		}
		if err != nil || *c.state.Beside != *at(2) || c.state.Subnet != subnet {
			t.Errorf("%s: got %+v, %v", test.reason, c.state, err)
		}
		if got := c.server(); got != "https://10.200.7.102:6443" {
			t.Errorf("%s: its address is %s", test.reason, got)
		}
		if c.network().Beside.ID != registry.id() {
			t.Errorf("%s: it is on the network %s, want %s", test.reason, c.network().Beside.ID, registry.id())
		}
	}
	names := []string{}
	for _, c := range registry.besideIt() {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "first third" {
		t.Errorf("beside registry are %q", got)
	}
}

func TestNoPlaceLeft(t *testing.T) {
	dir := t.TempDir()
	record(t, dir, "registry", state{})
	for index := range network.MaxBeside {
		record(t, dir, "c"+string(rune('a'+index)), state{Beside: &neighbor{Cluster: "registry", Index: index + 1}})
	}
	c := &Cluster{Name: "new", Dir: dir + "/new", Beside: "registry"}
	if err := c.placeBeside(); err == nil || !strings.Contains(err.Error(), "there are 100 control planes beside it") {
		t.Errorf("got %v", err)
	}
}

// TestNetworkThatWasMadeAgain expects a control plane to notice that the cluster which it
// was beside is gone, or another one.
func TestNetworkThatWasMadeAgain(t *testing.T) {
	for reason, test := range map[string]struct {
		other *state
		err   string
	}{
		"as before":       {other: &state{Nodes: 3, Subnet: netip.MustParsePrefix("10.200.7.0/24")}},
		"it is gone":      {err: `there is no cluster "registry" here`},
		"another subnet":  {other: &state{Nodes: 3, Subnet: netip.MustParsePrefix("10.200.8.0/24")}, err: "was made again"},
		"a node was lost": {other: &state{Nodes: 2, Subnet: netip.MustParsePrefix("10.200.7.0/24")}, err: `take "east" down and bring it up again`},
	} {
		dir := t.TempDir()
		if test.other != nil {
			record(t, dir, "registry", *test.other)
		}
		east := record(t, dir, "east", state{Subnet: netip.MustParsePrefix("10.200.7.0/24"), Beside: &neighbor{Cluster: "registry", Index: 1, Nodes: 3}})
		err := east.checkBeside()
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got %v, want %q", reason, err, test.err)
		}
	}
}
