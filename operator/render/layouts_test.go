package render

import (
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

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
	withLayout(t, newest(t).Layout, "v99")
	layouts := func(servers, etcd string) *Result {
		in := input(t, read(t, "aggregated-ha"))
		in.Snapshot, in.Release.Layout, in.Release.EtcdLayout = "before-the-next", servers, etcd
		return rendered(t, in)
	}
	old, next := layouts("v1", "v1"), layouts("v99", "v99")
	for _, test := range []struct {
		servers, etcd       string
		ofServers, ofOthers *Result
	}{{"v1", "v99", old, next}, {"v99", "v1", next, old}} {
		got := layouts(test.servers, test.etcd)
		for stage, want := range map[Stage]*Result{
			StageCertificates: test.ofOthers, StageEtcd: test.ofOthers, StageSnapshot: test.ofOthers, StageServer: test.ofServers, StageController: test.ofServers, StageEndpoint: test.ofServers} {
			if !reflect.DeepEqual(got.Stages[stage], want.Stages[stage]) || len(got.Stages[stage]) == 0 {
				t.Errorf("servers of %s, etcd of %s: stage %s is of another layout", test.servers, test.etcd, stage)
			}
		}
	}
	for _, stage := range []Stage{StageCertificates, StageEtcd, StageSnapshot, StageServer, StageController, StageEndpoint} {
		if reflect.DeepEqual(old.Stages[stage], next.Stages[stage]) {
			t.Errorf("stage %s is the same in both layouts, and nothing was tested", stage)
		}
	}
}

// staged is the annotation that each object of the manifests has.
var staged = regexp.MustCompile(`(?m)(^ *|\{)(operator\.clusterregistry\.io/stage: )`)

// withLayout adds a layout for the duration of a test: a copy of another one, of which every
// object has an annotation that names it.
func withLayout(t *testing.T, of, name string) {
	t.Helper()
	tree := fstest.MapFS{}
	err := fs.WalkDir(manifests.Registry, root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(manifests.Registry, file)
		tree[file] = &fstest.MapFile{Data: content}
		if inner, is := strings.CutPrefix(file, path.Join(root, of)+"/"); is {
			tree[path.Join(root, name, inner)] = &fstest.MapFile{Data: content}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for file, entry := range tree {
		if strings.HasPrefix(file, path.Join(root, name)) {
			tree[file] = &fstest.MapFile{Data: staged.ReplaceAllFunc(entry.Data, func(match []byte) []byte {
				before, _, _ := strings.Cut(string(match), "operator")
				separator := "\n" + before
				if before == "{" {
					separator = ", "
				}
				return []byte(before + "layout: " + name + separator + strings.TrimPrefix(string(match), before))
			})}
		}
	}
	before := layouts
	layouts = tree
	t.Cleanup(func() { layouts = before })
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
