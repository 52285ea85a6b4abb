package body

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apiserver/body/bodytest"
)

const (
	asJSON  = "application/json"
	asYAML  = "application/yaml"
	asApply = "application/apply-patch+yaml"
	asCBOR  = runtime.ContentTypeCBOR

	asCBORApply = "application/apply-patch+cbor"
)

// list is a JSON list with so many entries.
func list(n int, entry string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]"
}

// message is a field of a message in protobuf.
func message(number protowire.Number, content string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), content))
}

// object puts content into the envelope of Kubernetes.
func object(content string) string { return "k8s\x00" + message(2, content) }

// keysInCBOR is a map with so many keys, between 256 and 65,535.
func keysInCBOR(n int) string {
	return "\xb9" + string([]byte{byte(n >> 8), byte(n)}) + strings.Repeat("\x61a\x61b", n)
}

// TestCheck refuses what is too much, and says where it is.
func TestCheck(t *testing.T) {
	const many, separators = MaxEntries + 1, MaxSeparators + 1
	for _, test := range []struct{ reason, kind, body, want string }{
		{"nothing", asJSON, "", ""},
		{"as many entries as there may be", asJSON, `{"spec":{"access":` + list(MaxEntries, "{}") + `}}`, ""},
		{"too many entries", asJSON, `{"spec":{"access":` + list(many, "{}") + `}}`, "spec.access: Too many: 2049: must have at most 2048 items"},
		{"too many in an entry", asJSON, `{"spec":{"access":[{},{"exec":{"args":` + list(many, `"a"`) + `}}]}}`, "spec.access[1].exec.args: Too many"},
		{"too many keys", asJSON, `{"metadata":{"labels":{` + strings.Repeat(`"a":"b",`, MaxEntries) + `"a":"b"}}}`, "metadata.labels: Too many"},
		{"a key that is no field", asJSON, `{"s3cret":` + list(many, "1") + `}`, "<a key>: Too many"},
		{"a list alone", asJSON, list(many, "{}"), "<body>: Too many"},
		{"too many values in all", asJSON, list(MaxValues/2000, list(2000, "1")) + list(2000, "1"), "<body>: Too many: 32769"},
		{"as deep as it may be", asJSON, strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), ""},
		{"too deep", asJSON, strings.Repeat("[", MaxDepth+1), "lists and maps are nested too deep"},
		{"in text", asJSON, `{"a":"` + strings.Repeat(`[,{\"\\`, many) + `"}`, ""},
		{"text without an end", asJSON, `{"a":"` + strings.Repeat(",", many) + `\`, ""},
		{"no brackets", asJSON, strings.Repeat(",", many), ""},
		{"more brackets that end than begin", asJSON, strings.Repeat("}", many) + list(many, "1"), "Too many"},
		{"a content type in other letters", "Application/JSON; charset=utf-8", list(many, "{}"), "Too many"},
		{"no content type", "", list(many, "{}"), "Too many"},

		{"JSON that is read as YAML", asApply, list(MaxSeparators/2002, list(2000, "1")), ""},
		{"too much of it", asApply, list(1+MaxSeparators/2000, list(2000, "1")), "Too many"},
		{"YAML", asYAML, "a: [1, 2]\nb: R&D\n", ""},
		{"as many lines as there may be", asYAML, strings.Repeat("a\r\n", MaxSeparators), ""},
		{"too many lines", asYAML, strings.Repeat("a\n", separators), "YAML may have at most 16384 line breaks, commas, brackets and dashes; send the same as JSON"},
		{"too many lines of a Mac", asYAML, strings.Repeat("a\r", separators), "YAML may have"},
		{"too many next lines", asYAML, strings.Repeat("a\u0085", separators), "YAML may have"},
		{"too many line separators", asYAML, strings.Repeat("a\u2028", separators), "YAML may have"},
		{"too many paragraph separators", asYAML, strings.Repeat("a\u2029", separators), "YAML may have"},
		{"too many dashes", asYAML, strings.Repeat("- ", separators), "YAML may have"},
		{"too many dashes with tabs", asYAML, strings.Repeat("-\t", separators), "YAML may have"},
		{"too many commas", asYAML, "[" + strings.Repeat("a,", separators), "YAML may have"},
		{"too many brackets", asYAML, strings.Repeat("[", separators), "YAML may have"},
		{"too many braces", asYAML, strings.Repeat("{", separators), "YAML may have"},
		{"UTF-16", asYAML, "\xff\xfe" + strings.Repeat("-\x00\t\x00", separators), "YAML must be in UTF-8"},
		{"an alias", asYAML, "a: &x [1]\nb: *x\n", "anchors and aliases of YAML"},
		{"an anchor alone", asYAML, "a: &x [1]\nb: '*y'\n", ""},
		{"YAML with parameters", asApply + "; charset=utf-8", strings.Repeat("a\n", separators), "YAML may have"},
		{"YAML with parameters that are not well formed", asApply + ";=", strings.Repeat("a\n", separators), "YAML may have"},

		{"protobuf", runtime.ContentTypeProtobuf, object(strings.Repeat(message(3, ""), MaxEntries)), ""},
		{"too many entries in protobuf", runtime.ContentTypeProtobuf, object(strings.Repeat(message(3, ""), many)), "<body>: Too many"},
		{"too many in a message", runtime.ContentTypeProtobuf, object(message(2, message(4, strings.Repeat(message(3, ""), many)))), "<body>: Too many"},
		{"too many in all in protobuf", runtime.ContentTypeProtobuf, object(strings.Repeat(message(4, strings.Repeat(message(3, "")+message(4, ""), 20)), 2000)), "<body>: Too many: 32769"},
		{"too deep in protobuf", runtime.ContentTypeProtobuf, deep(MaxDepth + 1), "nested too deep"},
		{"text that could be a message", runtime.ContentTypeProtobuf, object(message(2, strings.Repeat("x", 10*MaxEntries))), ""},
		{"protobuf without its envelope", runtime.ContentTypeProtobuf, strings.Repeat(message(3, ""), many), "<body>: Too many"},
		{"CBOR", asCBOR, bodytest.CBOR(t, list(MaxEntries, "{}")), ""},
		{"too many entries in CBOR", asCBOR, bodytest.CBOR(t, `{"spec":{"access":`+list(many, "{}")+`}}`), "<body>: Too many: 2049"},
		{"too many keys in CBOR", asCBOR, keysInCBOR(many), "<body>: Too many"},
		{"too many in all in CBOR", asCBOR, bodytest.CBOR(t, list(1+MaxValues/2000, list(2000, "1"))), "<body>: Too many: 32769"},
		{"too many entries of an apply in CBOR", asCBORApply + "; charset=utf-8", bodytest.CBOR(t, list(many, "1")), "<body>: Too many"},
		{"as deep as it may be in CBOR", asCBOR, bodytest.CBOR(t, strings.Repeat("[", MaxDepth)+strings.Repeat("]", MaxDepth)), ""},
		{"too deep in CBOR", asCBOR, bodytest.CBOR(t, strings.Repeat("[", MaxDepth+1)+strings.Repeat("]", MaxDepth+1)), "nested too deep"},
		{"too many tags in CBOR", asCBOR, strings.Repeat("\xc6", MaxDepth+1) + "\x01", "nested too deep"},
		{"entries without a number in CBOR", asCBOR, "\x9f" + strings.Repeat("\x01", many) + "\xff", "<body>: Too many"},
		{"pieces of text in CBOR", asCBOR, "\x7f" + strings.Repeat("\x61a", many) + "\xff", "<body>: Too many"},
		{"what looks like lists in text in CBOR", asCBOR, bodytest.CBOR(t, `"`+strings.Repeat("[", 10*many)+`"`), ""},
		{"a list in CBOR that is longer than the body", asCBOR, "\x9b\xff\xff\xff\xff\xff\xff\xff\xff", ""},
		{"text in CBOR that is longer than the body", asCBOR, "\x7b\xff\xff\xff\xff\xff\xff\xff\xff", ""},
		{"no CBOR", asCBOR, "\xfc", ""},

		{"no protobuf", runtime.ContentTypeProtobuf, "k8s\x00\xff", ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			fault := Check([]byte(test.body), test.kind)
			if (fault == nil) != (test.want == "") || fault != nil && !strings.Contains(fault.Error(), test.want) {
				t.Errorf("got %v, want %q", fault, test.want)
			}
		})
	}
}

// deep is a message with one in it, and so on.
func deep(n int) string {
	content := message(1, "\x00")
	for range n {
		content = message(1, content)
	}
	return object(content)
}

// TestCheckIsFree allocates nothing for a body as long and full as one may be.
func TestCheckIsFree(t *testing.T) {
	entry := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 20))
	for kind, body := range map[string]string{
		asJSON:                      list(7, list(2000, entry)),
		asApply:                     list(3, list(2000, entry)),
		asYAML:                      strings.Repeat("- a: "+strings.Repeat("x", 100)+"\n", 8000),
		asCBOR:                      bodytest.CBOR(t, list(7, list(2000, entry))),
		runtime.ContentTypeProtobuf: object(strings.Repeat(message(4, message(3, "a")+message(4, "b")), 2000)),
	} {
		data := []byte(body)
		if fault := Check(data, kind); fault != nil {
			t.Fatalf("%s: %v", kind, fault)
		}
		if n := testing.AllocsPerRun(10, func() { _ = Check(data, kind) }); n > 4 {
			t.Errorf("%s: %v allocations", kind, n)
		}
	}
}
