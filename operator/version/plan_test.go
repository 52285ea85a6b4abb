package version

import (
	"errors"
	"strings"
	"testing"
)

var tested = []Release{
	{Version: "v0.1.0", Host: Range{From: "1.34", To: "1.37"}},
	{Version: "v0.2.0", Host: Range{From: "1.36", To: "1.39"}},
}

func TestFind(t *testing.T) {
	for version, reason := range map[string]string{
		"v0.1.0": "", "v0.2.0": "",
		"v0.3.0": "a newer operator knows it",
		"0.1.0":  "without v it is another text",
		"":       "an object that the schema never saw",
	} {
		release, err := Find(tested, version)
		if reason == "" && (err != nil || release.Version != version) {
			t.Errorf("%s: found %q, %v", version, release.Version, err)
		}
		if reason != "" && (!errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `"`+version+`"; it knows v0.1.0, v0.2.0`)) {
			t.Errorf("%q (%s): %v", version, reason, err)
		}
	}
}

func TestCheckHost(t *testing.T) {
	for host, test := range map[string]struct{ reason, says string }{
		"v1.34.0":          {"the oldest", ""},
		"v1.37.12":         {"the newest, whatever its patch", ""},
		"v1.36.3-gke.1200": {"a vendor's", ""},
		"v1.35.4+k3s1":     {"another vendor's", ""},
		"v1.33.9":          {"too old", "the host cluster runs Kubernetes v1.33.9; v0.1.0 was tested with 1.34 to 1.37"},
		"v1.38.0-alpha.1":  {"too new, if not released", "was tested with 1.34 to 1.37"},
		"v1.4.0":           {"numbers, not texts, are compared", "was tested with"},
		"1.36.3":           {"no version of Kubernetes begins so", `"1.36.3", which is not a valid`},
		"":                 {"a host that does not tell", `"", which is not a valid`},
	} {
		err := tested[0].CheckHost(host)
		if test.says == "" && err != nil || test.says != "" && (!errors.Is(err, ErrHost) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%q (%s): %v", host, test.reason, err)
		}
	}
}
