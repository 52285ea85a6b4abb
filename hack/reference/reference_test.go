package main

import (
	"os"
	"strings"
	"testing"
)

// fromHere leads to the top of the repository.
const fromHere = "../../"

// TestUpToDate compares each document with the schema that it is made of: both are
// in the repository.
func TestUpToDate(t *testing.T) {
	for crd, file := range map[string]string{crdFile: referenceFile, backupCRDFile: backupReferenceFile, selectionCRDFile: selectionReferenceFile} {
		want, err := reference(fromHere + crd)
		if err != nil {
			t.Fatal(err)
		}
		checkFile(t, file, want)
	}
	for _, of := range pages {
		want, err := pageOf(fromHere+schemaFile, of)
		if err != nil {
			t.Fatal(err)
		}
		checkFile(t, of.file, want)
	}
}

func checkFile(t *testing.T, file, want string) {
	t.Helper()
	got, err := os.ReadFile(fromHere + file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the types say; run \"make update-codegen\"", file)
	}
}

// TestClusterRows looks for lines of the reference of Cluster that only come out
// right when everything does.
func TestClusterRows(t *testing.T) {
	text, err := pageOf(fromHere+schemaFile, cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n## spec.access[]\n",
		"\n- `spec.endpoints` (list of object): The ways",
		"\n- `spec.endpoints[].name` (string, **required**): name tells",
		"\n- `spec.endpoints[].caBundle` (base64): ",
		"\n- `spec.taints[].effect` (string, **required**: `NoExecute`, `NoSchedule`, `PreferNoSchedule`): What becomes of workloads that don't tolerate the taint.\n",
		"\n- `spec.access[].oidc.issuerURL` (string, **required**): ",
		"\n- `status.conditions` (list of Condition): ",
		"\n- `status.capacity` (map to quantity): ",
		"\n- `status.reporters[].lastSeen` (time): ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "metadata.") || strings.Contains(text, "conditions[]") {
		t.Error("there are fields of Kubernetes' own types")
	}
}

// TestRows looks for lines that only come out right when everything does.
func TestRows(t *testing.T) {
	text, err := reference(fromHere + crdFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if rest, is := strings.CutPrefix(line, "- `"); is {
			path, about, _ := strings.Cut(rest, "` ")
			lines[path] = about + "\n"
		}
	}
	for path, want := range map[string][]string{
		"spec.mode":                            {"string, **required**", "`Aggregated`, `Independent`", "**immutable**", "A change is refused with: \"the mode of a registry can't be changed"},
		"spec.version":                         {"string, **required**: `v0.1.0`, `v0.2.0`): ", "A change may be refused with: ", "can't be brought to this one"},
		"spec.deletionPolicy":                  {"; default: `Retain`): "},
		"spec.server.replicas":                 {"(integer; default: `2`): ", "1 to 16"},
		"spec.etcd.external.endpoints":         {"list of string, **required**", "1 to 9 entries", "when one fails.\n"},
		"spec.etcd.storage":                    {"(object; default: ", "A change may be refused with: \"the size of etcd's volumes can grow but not shrink"},
		"spec.etcd.storage.size":               {"(quantity; default: `8Gi`): "},
		"spec.tls.rotation":                    {"(object; default: ", "A change may be refused with: \"rotation.etcd can't be lowered"},
		"spec.controllers.tolerations":         {"list of Toleration of a pod"},
		"spec.server.extraArgs":                {"map to string", "at most 7 keys)"},
		"spec.etcd":                            {"A change may be refused with: \"a registry can't be moved"},
		"spec.restoreFrom.store":               {" It has the fields of `spec.backup.store`.\n"},
		"spec.backup.retention.keepLast":       {"): How many of the newest", "1 to 1000.\n"},
		"status.etcdVersion":                   {"(string): "},
		"spec.server.service.type":             {"`ClusterIP`, `NodePort`, `LoadBalancer`"},
		"spec.etcd.resources":                  {"It has the fields of `spec.controllers.resources`.\n"},
		"spec.controllers.clusterAPI.selector": {"LabelSelector"},
		"spec.server.progressDeadlineSeconds":  {"(integer; default: `600`): ", "30 to 86400.\n"},
		"spec.backup.timeZone":                 {"(string; default: UTC): ", "such as Europe/Berlin.\n"},
	} {
		for _, text := range want {
			if !strings.Contains(lines[path], text) {
				t.Errorf("%s: %q is missing in %q", path, text, lines[path])
			}
		}
	}
	for path, line := range lines {
		if fixed := strings.Contains(line, "**immutable**"); fixed != (path == "spec.mode") {
			t.Errorf("%s: immutable: %t", path, fixed)
		}
	}
	for _, absent := range []string{"tolerations[]", "metadata", "conditions[]", "spec.restoreFrom.store."} {
		for path := range lines {
			if strings.Contains(path, absent) {
				t.Errorf("%s is Kubernetes' own", path)
			}
		}
	}
	if whole, _, _ := strings.Cut(text, "\n## "); strings.Count(whole, "\n- ") != 1 || !strings.Contains(whole, "metadata.name becomes a part of Service names") {
		t.Errorf("the rule about the object's name is to be the only one of the whole:\n%s", whole)
	}
}

// TestLargeStatus expects that a large status is described by its topmost fields, which name those
// within them, and a small one as a whole.
func TestLargeStatus(t *testing.T) {
	for _, test := range []struct{ crd, has, hasNot string }{
		{crdFile, "\n- `status.endpoint` (object with `caBundle`, `url`): Where", "\n- `status.endpoint.url`"},
		{crdFile, "\n- `status.history` (list of object with `completionTime`, ", "\n- `status.history[]."},
		{crdFile, "\n- `spec.etcd.storage.size` (", "\n- `spec.etcd` (object with "},
		{selectionCRDFile, "\n- `status.decisions[].clusterName` (", "\n- `status.decisions` (list of object with "},
	} {
		text, err := reference(fromHere + test.crd)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, test.has) || strings.Contains(text, test.hasNot) {
			t.Errorf("%s: %q: %t, %q: %t", test.crd, test.has, strings.Contains(text, test.has), test.hasNot, strings.Contains(text, test.hasNot))
		}
	}
	if got := line("claim <name>,\n  a | b"); got != "claim &lt;name>, a | b" {
		t.Errorf("got %q", got)
	}
}

// TestSaidOnce expects that a field that several objects have is described once, and that the
// page leaves to the server what is wrong with a value, or with fields that don't go together,
// and repeats no range.
func TestSaidOnce(t *testing.T) {
	text, err := reference(fromHere + crdFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n\nThe same as in `spec.controllers`: `spec.etcd.affinity`, ", "`spec.etcd.topologySpreadConstraints`.\n",
		"\n- `spec.images.pullSecrets` (list of object with `name`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, path := range []string{"spec.etcd.affinity", "spec.backup.store.s3.prefix", "spec.images.pullSecrets[].name"} {
		if strings.Contains(text, "\n- `"+path+"` ") {
			t.Errorf("%s is described again", path)
		}
	}
	for _, absent := range []string{"write the name of a bucket", "name exactly one store: s3", "characters)", "integer: 1 to 1000"} {
		if strings.Contains(text, absent) {
			t.Errorf("%q is on the page", absent)
		}
	}
	if _, status, _ := strings.Cut(text, "\n## status\n"); strings.Contains(status, "**required**") {
		t.Error("fields of the status are required")
	}
}
