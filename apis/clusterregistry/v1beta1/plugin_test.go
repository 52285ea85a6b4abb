package v1beta1

import (
	"encoding/json"
	"testing"
)

func TestPluginConfig(t *testing.T) {
	for _, test := range []struct {
		reason string
		access Access
		want   string
	}{
		{"nothing", Access{}, `{"clusterName":"east"}`},
		{"a provider without config", Access{Provider: &ProviderAccess{Type: "secretreader"}}, `{"clusterName":"east"}`},
		{"config", Access{Provider: &ProviderAccess{Type: "secretreader", Config: map[string]string{"path": "fleet/east"}}}, `{"path":"fleet/east"}`},
		{"OIDC", Access{OIDC: &OIDCAccess{IssuerURL: "https://login.example", ClientID: "kube", Scopes: []string{"a", "b"}}}, `{"clientID":"kube","issuerURL":"https://login.example","scopes":["a","b"]}`},
		{"an object", Access{ObjectRef: &ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "fleet", Name: "east"}}, `{"apiVersion":"v1","kind":"Secret","name":"east","namespace":"fleet"}`},
		{"a program", Access{Exec: &ExecAccess{Command: "evil", Args: []string{"--evil"}}}, `{"clusterName":"east"}`},
	} {
		if got, err := json.Marshal(test.access.PluginConfig("east")); err != nil || string(got) != test.want {
			t.Errorf("%s: %s, want %s, %v", test.reason, got, test.want, err)
		}
	}
}
