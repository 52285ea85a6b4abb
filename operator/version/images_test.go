package version

import (
	"strings"
	"testing"
)

// TestImages reads tables of two releases that run one etcd. Digests of one letter
// are made as long as real ones are.
func TestImages(t *testing.T) {
	const table = `releases:
- {version: v0.1.0, released: true, images: {clusterregistry-apiserver: "sha256:a", clusterregistry-helper: "sha256:b", etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, REST}
- {version: v0.2.0, released: false, images: {clusterregistry-apiserver: "sha256:d", clusterregistry-helper: "sha256:b", etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, upgradesFrom: [v0.1.0], REST}
`
	const rest = `etcd: v3.6.14, helper: v0.1.0, layout: v1, serves: [v1], reads: [v1], stores: v1, host: {from: "1.34", to: "1.37"}, kubectl: {from: "1.32", to: "1.37"}`
	for _, test := range []struct{ reason, old, new, says string }{
		{"nothing wrong", "", "", ""},
		{"recorded before it is released, and not yet", `images: {clusterregistry-apiserver: "sha256:d", clusterregistry-helper: "sha256:b", etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, upgradesFrom`, "upgradesFrom", ""},
		{"released without", `images: {clusterregistry-apiserver: "sha256:a", clusterregistry-helper: "sha256:b", etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, `, "", `entry 0 (v0.1.0): it is released without the digests of its images`},
		{"one is missing", `clusterregistry-helper: "sha256:b", etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, upgradesFrom`, `etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, upgradesFrom`, `entry 1 (v0.2.0): the digest "" of image clusterregistry-helper is not like`},
		{"a tag for a digest", `"sha256:d"`, "v0.2.0", `the digest "v0.2.0" of image clusterregistry-apiserver`},
		{"capital digits", `"sha256:d"`, `"sha256:D"`, "of image clusterregistry-apiserver"},
		{"an image of no release", `{clusterregistry-apiserver: "sha256:d"`, `{operator: "sha256:e", clusterregistry-apiserver: "sha256:d"`, `unknown field`},
		{"one tag, two images", `etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, upgradesFrom`, `etcd: "sha256:e", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, upgradesFrom`, "for image etcd:v3.6.14, and an earlier release has sha256:cc"},
		{"another helper of the same tag", `"sha256:b", etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, upgradesFrom`, `"sha256:e", etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:9"}, upgradesFrom`, "for image clusterregistry-helper:v0.1.0"},
	} {
		content := strings.NewReplacer("REST", rest).Replace(strings.Replace(table, test.old, test.new, 1))
		for _, letter := range "abcdefD9" {
			content = strings.ReplaceAll(content, "sha256:"+string(letter)+`"`, "sha256:"+strings.Repeat(string(letter), 64)+`"`)
		}
		_, err := Parse([]byte(content))
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestRuns expects the helper and etcd that a release runs, not those of its version.
func TestRuns(t *testing.T) {
	r := Release{Version: "v0.2.0", Helper: "v0.1.0", Etcd: "v3.6.14", Images: Images{Server: "sha256:a", Helper: "sha256:b", Etcd: "sha256:c", Controller: "sha256:d", Backup: "sha256:e"}}
	const want = "clusterregistry-apiserver:v0.2.0@sha256:a clusterregistry-helper:v0.1.0@sha256:b etcd:v3.6.14@sha256:c clusterregistry-controller:v0.2.0@sha256:d clusterregistry-backup:v0.2.0@sha256:e"
	var got []string
	for _, image := range r.Runs() {
		got = append(got, image.Name+":"+image.Tag+"@"+image.Digest)
	}
	if all := strings.Join(got, " "); all != want {
		t.Errorf("it runs %s", all)
	}
}
