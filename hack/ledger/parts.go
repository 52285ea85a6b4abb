package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/hack/cluster/components"
)

// part is what is run in one piece and has rows of its own. None takes longer than longest.
type part struct {
	name string
	// minutes is what it takes as long as no row says that.
	minutes int
	// cluster is what it runs on, nil where it needs none or makes its own.
	cluster *cluster
	// command is run at the root of the checkout, with env besides the environment.
	command, env []string
	// tests are the directories of Go packages on which, with the programs, it depends; none
	// means on every file.
	tests []string
	// busy is true when a process uses one core beside it.
	busy bool
}

// longest is what a part may take, in minutes.
const longest = 80

// cluster is a local cluster that a part has for itself.
type cluster struct {
	version  string // of Kubernetes
	nodes    string // how many, empty for as many as usual
	packages string // of e2e whose images it has
}

// split are the tests of a package that one part is too short for, by what is added to its
// name. Every test of the package is matched by just one pattern, and a package that is
// not here is one part.
var split = map[string][]struct{ name, tests string }{
	"accidents": {
		{"", `^Test(Deletions|MatrixSingle)\b`},
		{"-damages", `^TestMatrixDamages\b`},
		{"-independent", `^TestMatrixIndependent\b`},
	},
	"backup": {
		{"", `^Test(Backups|NamespaceDeleted|Claim|Read|Plugin|UsedLine|ScaleBackedUp|MatrixFleetEvents.*)\b`},
		{"-restore", `^Test(Recovery|MatrixRecoverySingle|Restore|RestoreEncrypted)\b`},
	},
	"faults": {
		{"", `^Test(ScaleAndRotation|Recovery|Matrix(BackendDown|CertManagerLate|Encryption|Steady))\b`},
		{"-recovery", `^TestMatrix(DataLost|QuorumLost|RecoveryOfNodes|RecoveryOfFive|RecoveryWithFirst)\b`},
		{"-moves", `^TestMatrix(Move.*|OperatorKilled)\b`},
		{"-certificates", `^TestMatrix(CARotation|CARotationOfClients|ShortLivedCertificates)\b`},
	},
	"install": {
		{"", `^Test(Aggregated|Corrected|Disorder|Independent|Retain)\b`},
		{"-matrix", `^TestMatrix`},
	},
	"upgrade": {
		{"", `^Test(BrokenServer|Operator|Single|Upgrade)\b`},
		{"-matrix", `^TestMatrix`},
	},
}

// whole are the packages of e2e that are one part each.
var whole = []string{"apiserver", "cluster", "docs", "monitoring", "namespaced", "platforms", "reliability", "shipping"}

// selections are what E2E_CELLS selects of the cells of e2e/reliability, a part each.
var selections = []string{
	"etcd's container killed in place/3", "operator killed/3", "volume emptied in place/3", "disk full/3", "node cut off/3",
	"file corrupted/3", "claim deleted/3", "node stopped/3", "member's pod killed/3",
	"operator killed/1", "member's pod killed/1", "operator killed/5", "member's pod killed/5",
}

// undertakings are how the names begin of what else fails at each step of, a part each. Every
// undertaking of operator/simulation is matched by just one.
var undertakings = [][]string{
	{"from"},
	{"a_member", "a_defragmentation"},
	{"volumes", "another"},
	{"a_key", "an_upgrade", "a_backup"},
	{"a_recovery", "a_first", "a_deletion"},
	{"more", "fewer", "an_audit", "an_address", "a_name"},
	{"a_registry"},
}

// parts returns all parts.
func parts() []part {
	full := []string{"E2E_FULL=1"}
	all := []part{
		{name: "unit", minutes: 40, command: words("make unit"), env: full},
		{name: "simulation", minutes: 60, command: words("make simulation"), env: []string{"SEEDS=100"}},
		{name: "alerts", minutes: 10, command: words("make verify-alerts")},
		{name: "chart", minutes: 15, command: words("make verify-helm")},
		{name: "ui", minutes: 5, command: words("make verify-ui")},
		{name: "ui-browser", minutes: 5, command: words("make ui-browser")},
		{name: "core", minutes: 60, command: words("hack/test.sh core")},
		{name: "core-busy", minutes: 75, command: words("hack/test.sh core"), busy: true},
		{name: "integration", minutes: 70, command: words("make integration"), env: full, tests: []string{"integration"}},
		{name: "olm", minutes: 30, command: words("hack/olm.sh"), tests: []string{"olm"}},
		{name: "second", minutes: 20, command: words("hack/second.sh"), tests: []string{"backup"}},
		{name: "skew", minutes: 40, command: words("hack/skew.sh"), tests: []string{"skew"}},
	}
	for i, names := range undertakings {
		all = append(all, part{name: fmt.Sprintf("second-failures-%d", i+1), minutes: 50, command: words("make second-failures"), env: []string{"RUN=^" + strings.Join(names, "|^")}})
	}
	newest := components.KubernetesVersions[0]
	for _, name := range whole {
		all = append(all, e2e("e2e-"+name, newest, name, append(slices.Clone(full), "RUN=")))
	}
	for _, name := range slices.Sorted(maps.Keys(split)) {
		for _, s := range split[name] {
			all = append(all, e2e("e2e-"+name+s.name, newest, name, append(slices.Clone(full), "RUN="+s.tests)))
		}
	}
	for _, s := range selections {
		p := e2e("cells-"+strings.NewReplacer(" ", "-", "/", "-", "'", "").Replace(s), newest, "reliability", []string{"E2E_CELLS=" + s})
		p.command, p.cluster.nodes, p.minutes = words("make e2e-cells"), "5", 60 // an etcd of five needs them
		all = append(all, p)
	}
	// What repetition and the matrix of faults show does not depend on the host's version.
	for _, version := range components.KubernetesVersions[1:] {
		all = append(all,
			e2e("host-"+version, version, "docs faults install reliability upgrade", nil),
			e2e("host-"+version+"-more", version, "accidents apiserver backup cluster monitoring namespaced platforms shipping", nil))
	}
	return all
}

// e2e returns a part that runs packages of e2e on a cluster.
func e2e(name, version, packages string, env []string) part {
	return part{
		name: name, minutes: 50, tests: words(packages),
		cluster: &cluster{version: version, packages: packages},
		command: words("make e2e-run"), env: append([]string{"PACKAGES=" + packages}, env...),
	}
}

func words(s string) []string { return strings.Fields(s) }

// named returns the parts of these names.
func named(states []state, names []string) (chosen []state, _ error) {
	if len(names) == 0 {
		return nil, errUsage
	}
	for _, name := range names {
		i := slices.IndexFunc(states, func(s state) bool { return s.part.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q; \"make test-list\" prints them", name)
		}
		chosen = append(chosen, states[i])
	}
	return chosen, nil
}
