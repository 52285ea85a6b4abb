package authn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"

// issuer returns the configuration of one issuer with the given mappings.
func issuer(mappings string) string {
	return header + "jwt:\n- issuer: {url: \"https://idp.example\", audiences: [registry]}\n  claimMappings: " + mappings + "\n"
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ reason, content, want string }{
		{"an issuer", issuer(`{username: {claim: email, prefix: ""}, groups: {claim: groups, prefix: "idp:"}}`), ""},
		{"expressions", issuer(`{username: {expression: "'idp:' + claims.sub"}}`), ""},
		{"no issuer", header, ""},
		{"empty", "", "Object 'Kind' is missing"},
		{"no YAML", "{", "unexpected end"},
		{"another kind", "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: []\n", "it holds a EncryptionConfiguration, not an AuthenticationConfiguration"},
		{"an unknown field", header + "nonsense: true\n", `unknown field "nonsense"`},
		{"a field twice", header + "jwt: []\njwt: []\n", "already set"},
		{"anonymous callers", header + "anonymous: {enabled: true}\n", "remove the field"},
		{"users of Kubernetes", issuer(`{username: {claim: sub, prefix: "system:"}}`), `jwt[0].claimMappings.username.prefix: Invalid value: "system:": names that begin with "system:"`},
		{"groups of Kubernetes", issuer(`{username: {claim: sub, prefix: ""}, groups: {claim: groups, prefix: "system:x:"}}`), `begin with "system:" are refused from tokens: choose another prefix`},
		{"groups of the registry", issuer(`{username: {claim: sub, prefix: ""}, groups: {claim: groups, prefix: "clusterregistry:"}}`), `jwt[0].claimMappings.groups.prefix: Invalid value: "clusterregistry:": names that begin with "clusterregistry:"`},
		{"an expression that is none", issuer(`{username: {expression: "claims."}}`), "jwt[0].claimMappings.username.expression"},
	} {
		config, err := parse([]byte(test.content), authenticationcel.NewDefaultCompiler())
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.want)
		}
		if err == nil && config == nil {
			t.Errorf("%s: neither a configuration nor an error", test.reason)
		}
	}
}

// FuzzParse reads what may be in the file that a platform team mounts. Whatever
// it is, the server answers with a configuration that it can build issuers of,
// or with an error, and no issuer may map to names that are reserved.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("seeds: %v, %v", seeds, err)
	}
	for _, seed := range seeds {
		content, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		config, err := parse(content, authenticationcel.NewDefaultCompiler())
		if err != nil {
			return
		}
		if config == nil {
			t.Fatal("neither a configuration nor an error")
		}
		if config.Anonymous != nil {
			t.Error("anonymous callers are let in")
		}
		for _, issuer := range config.JWT {
			for _, prefix := range []*string{issuer.ClaimMappings.Username.Prefix, issuer.ClaimMappings.Groups.Prefix} {
				if prefix != nil && reservation(*prefix) != "" {
					t.Errorf("names get the prefix %q", *prefix)
				}
			}
		}
	})
}
