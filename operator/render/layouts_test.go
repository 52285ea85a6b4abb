package render

import (
	"reflect"
	"slices"
	"testing"

	"github.com/clusterregistry/operator/manifests"
)

// TestLayoutsAreUsed expects a directory for the layout of each release, and none
// besides.
func TestLayoutsAreUsed(t *testing.T) {
	var want, got []string
	for _, release := range allReleases(t) {
		want = append(want, release.Layout)
	}
	slices.Sort(want)
	directories, err := manifests.Registry.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range directories {
		got = append(got, directory.Name())
	}
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("%s has the layouts %v, and releases have %v", root, got, want)
	}
}

// TestTwoLayouts renders what there is in an upgrade: the servers of one release,
// and all else of another.
func TestTwoLayouts(t *testing.T) {
	functionsOf := layouts(t)
	layouts := func(servers, etcd string) *Result {
		functions := functionsOf[servers]
		if len(functionsOf[etcd]) == 0 {
			functions = nil // members are never of an older release than servers
		}
		in := input(t, read(t, "aggregated-ha"))
		in.Snapshot, in.Release.Layout, in.Release.EtcdLayout, in.Release.Controllers = "before-the-next", servers, etcd, functions
		return rendered(t, in)
	}
	v1, v2 := layouts("v1", "v1"), layouts("v2", "v2")
	for _, test := range []struct {
		servers, etcd       string
		ofServers, ofOthers *Result
	}{{"v1", "v2", v1, v2}, {"v2", "v1", v2, v1}} {
		got := layouts(test.servers, test.etcd)
		for stage, want := range map[Stage]*Result{
			StageCertificates: test.ofOthers, StageEtcd: test.ofOthers, StageSnapshot: test.ofOthers, StageServer: test.ofServers, StageEndpoint: test.ofServers} {
			if !reflect.DeepEqual(got.Stages[stage], want.Stages[stage]) || len(got.Stages[stage]) == 0 {
				t.Errorf("servers of %s, etcd of %s: stage %s is of another layout", test.servers, test.etcd, stage)
			}
		}
		if len(got.Stages[StageController]) > 0 {
			t.Errorf("servers of %s, etcd of %s: there is a controller, of which one has none", test.servers, test.etcd)
		}
	}
	if len(v2.Stages[StageController]) == 0 || len(v1.Stages[StageController]) > 0 {
		t.Error("there is no controller in v2, or one in v1")
	}
	if reflect.DeepEqual(v1.Stages[StageEtcd], v2.Stages[StageEtcd]) {
		t.Error("the layouts are the same, and nothing was tested")
	}
}

// TestGuardIsInEveryStart expects etcd to be started by the guard, in its own
// container, with the guard's program where only an init container writes.
func TestGuardIsInEveryStart(t *testing.T) {
	for variant, in := range variants(t) {
		template, ok := podTemplates(t, rendered(t, in))["StatefulSet "+in.Registry.Name+"-etcd"]
		if !ok {
			continue // an etcd of somebody else
		}
		etcd := template.Spec.Containers[0]
		program := slices.Index(etcd.Args, "--")
		if !slices.Equal(etcd.Command, []string{"/helper/clusterregistry-helper"}) || etcd.Args[0] != "etcd-guard" || program < 0 || etcd.Args[program+1] != "/usr/local/bin/etcd" {
			t.Errorf("%s: etcd is started by %v %v", variant, etcd.Command, etcd.Args)
		}
		for _, mount := range etcd.VolumeMounts {
			if (mount.Name == "helper" || mount.Name == "identity") && !mount.ReadOnly {
				t.Errorf("%s: etcd's container may write to %s", variant, mount.MountPath)
			}
		}
	}
}
