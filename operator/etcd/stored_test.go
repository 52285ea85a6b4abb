package etcd

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestStoredVersion(t *testing.T) {
	protobuf := func(version string) []byte {
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: "Cluster"}, Raw: []byte("content")}
		content, err := unknown.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte("k8s\x00"), content...)
	}
	for reason, test := range map[string]struct {
		content    []byte
		want, says string
	}{
		"protobuf":                    {protobuf("example.org/v1"), "example.org/v1", ""},
		"JSON":                        {[]byte(`{"apiVersion": "example.org/v2", "kind": "Cluster", "spec": {}}`), "example.org/v2", ""},
		"protobuf without a version":  {protobuf(""), "", "does not name its API version"},
		"JSON without a version":      {[]byte(`{"kind": "Cluster"}`), "", "does not name its API version"},
		"protobuf that was cut short": {protobuf("example.org/v1")[:12], "", "is damaged"},
		"encrypted":                   {[]byte("k8s:enc:aescbc:v1:key:..."), "", "is neither"},
		"nothing":                     {nil, "", "is neither"},
	} {
		got, err := StoredVersion(test.content)
		if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %q, %v", reason, got, err)
		}
	}
}
