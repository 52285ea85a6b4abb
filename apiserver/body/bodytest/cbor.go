// Package bodytest makes bodies of requests for tests.
package bodytest

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// self is the tag by which CBOR is known (RFC 8949, 3.4.6).
const self = "\xd9\xd9\xf7"

// CBOR returns JSON as Kubernetes' clients send it in CBOR.
func CBOR(t testing.TB, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	data, err := direct.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return self + string(data)
}
