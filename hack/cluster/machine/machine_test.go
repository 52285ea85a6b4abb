package machine

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestUnsupportedCgroupLayout(t *testing.T) {
	_, err := layout(t.TempDir(), "")
	for _, want := range []string{"unsupported cgroup layout", "it lacks cpu, cpuset, memory", "systemd.unified_cgroup_hierarchy=1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestCgroupPaths(t *testing.T) {
	for _, test := range []struct {
		layout        Layout
		path, kubelet string
	}{
		{Layout{Unified: true, Base: "/"}, "/cr-1-n1", "/"},
		{Layout{Base: "/session/7"}, "/session/7/cr-1-n1", "/session/7/cr-1-n1"},
	} {
		if got := test.layout.Path("cr-1-n1"); got != test.path {
			t.Errorf("%+v: path %s, want %s", test.layout, got, test.path)
		}
		if got := test.layout.KubeletRoot("cr-1-n1"); got != test.kubelet {
			t.Errorf("%+v: kubelet's root %s, want %s", test.layout, got, test.kubelet)
		}
	}
}

func TestOwnCapabilities(t *testing.T) {
	caps, err := ownCapabilities()
	if err != nil {
		t.Fatal(err)
	}
	if root := os.Geteuid() == 0; root != slices.Contains(caps, "CAP_SYS_ADMIN") {
		t.Errorf("root: %t, capabilities: %v", root, caps)
	}
	if len(capabilityNames) != 41 || capabilityNames[24] != "SYS_RESOURCE" || capabilityNames[40] != "CHECKPOINT_RESTORE" {
		t.Errorf("capabilities are out of order: %v", capabilityNames)
	}
}
