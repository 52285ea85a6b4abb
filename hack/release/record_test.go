package release

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/operator/version"
)

// TestRecord records digests in the table as it is, twice.
func TestRecord(t *testing.T) {
	content, err := os.ReadFile("../../" + table)
	if err != nil {
		t.Fatal(err)
	}
	// It records no digest as long as nothing is released, and those of all releases
	// anew once all are.
	content = recorded.ReplaceAll(bytes.ReplaceAll(content, []byte("released: true"), []byte("released: false")), nil)
	releases, err := version.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	digest := func(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }
	digests := map[string]string{}
	var all []string
	for _, r := range releases {
		all = append(all, r.Version)
		for _, image := range r.Runs() {
			digests[image.Name+":"+image.Tag] = digest("a")
		}
	}
	last := all[len(all)-1]
	digests["clusterregistry-apiserver:"+last] = digest("b")
	first, changed, err := Record(content, digests)
	if err != nil || strings.Join(changed, " ") != strings.Join(all, " ") {
		t.Fatalf("recorded %v, want %v: %v", changed, all, err)
	}
	again, _, err := Record(first, digests)
	if err != nil || string(again) != string(first) {
		t.Errorf("recorded twice, %v:\n%s", err, again)
	}
	digests["clusterregistry-apiserver:"+last] = digest("c")
	later, _, err := Record(first, digests)
	if err != nil || string(later) != strings.ReplaceAll(string(first), digest("b"), digest("c")) {
		t.Errorf("recorded anew, %v:\n%s", err, later)
	}
	now, err := version.Parse(later)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range now {
		for _, image := range r.Runs() {
			if want := digests[image.Name+":"+image.Tag]; image.Digest != want {
				t.Errorf("%s has %s for %s, want %s", r.Version, image.Digest, image.Name, want)
			}
		}
	}
	if rest := recorded.ReplaceAllString(string(first), ""); rest != string(content) {
		t.Errorf("more than digests has changed:\n%s", rest)
	}
}

// TestRecordLeavesAlone is about what must not change, or can't.
func TestRecordLeavesAlone(t *testing.T) {
	const entry = `- version: VERSION
  released: RELEASED
IMAGES  etcd: v3.6.14
  helper: VERSION
  layout: v1
  serves: [v1]
  reads: [v1]
  stores: v1
  host: {from: "1.34", to: "1.37"}
  kubectl: {from: "1.32", to: "1.37"}
`
	digest := func(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }
	one := "releases:\n" + strings.NewReplacer("VERSION", "v0.1.0", "RELEASED", "true", "IMAGES", "  images: {clusterregistry-apiserver: \""+digest("a")+"\", clusterregistry-helper: \""+digest("a")+"\", etcd: \""+digest("a")+"\", clusterregistry-controller: \""+digest("a")+"\", clusterregistry-backup: \""+digest("a")+"\"}\n").Replace(entry)
	two := strings.NewReplacer("VERSION", "v0.2.0", "RELEASED", "false", "IMAGES", "").Replace(entry)
	all := map[string]string{
		"clusterregistry-apiserver:v0.1.0": digest("b"), "clusterregistry-helper:v0.1.0": digest("b"), "etcd:v3.6.14": digest("a"),
		"clusterregistry-apiserver:v0.2.0": digest("b"), "clusterregistry-helper:v0.2.0": digest("b"),
		"clusterregistry-controller:v0.2.0": digest("b"), "clusterregistry-backup:v0.2.0": digest("b"),
	}
	out, changed, err := Record([]byte(one+two), all)
	if err != nil || strings.Join(changed, " ") != "v0.2.0" || !strings.HasPrefix(string(out), one) {
		t.Errorf("one that is released has changed: %v, %v\n%s", changed, err, out)
	}
	all["etcd:v3.6.14"] = digest("b")
	if _, _, err := Record([]byte(one+two), all); err == nil || !strings.Contains(err.Error(), "one tag is one image") {
		t.Errorf("with another etcd than the one that is published: %v", err)
	}
	delete(all, "etcd:v3.6.14")
	if out, changed, err := Record([]byte(one+two), all); err != nil || len(changed) > 0 || string(out) != one+two {
		t.Errorf("without etcd: %v, %v\n%s", changed, err, out)
	}
	flow := "releases:\n- {version: v0.2.0, " + strings.ReplaceAll(strings.TrimSpace(strings.SplitN(strings.ReplaceAll(two, "\n  ", ", "), ", ", 2)[1]), "\n", ", ") + "}\n"
	all["etcd:v3.6.14"] = digest("a")
	if _, _, err := Record([]byte(flow), all); err == nil || !strings.Contains(err.Error(), "no line") {
		t.Errorf("a table in another form: %v", err)
	}
}
