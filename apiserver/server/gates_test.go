package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/body"
	"github.com/clusterregistry/operator/apiserver/body/bodytest"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// gate turns a feature on.
func gate(tb testing.TB, feature featuregate.Feature) {
	tb.Helper()
	featuregatetesting.SetFeatureGateDuringTest(tb, utilfeature.DefaultFeatureGate, feature, true)
}

// The halves of all clusters, by the hash of what a shard goes by.
const (
	lower = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	upper = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
)

func shard(of string) string { return "shardSelector=" + url.QueryEscape(of) }

// TestShards reads and watches clusters by halves: each is in one of them, and both together are
// all that the caller sees.
func TestShards(t *testing.T) {
	gate(t, features.ShardedListAndWatch)
	o := small(t, quick)
	for i := range 30 {
		o.put(fmt.Sprintf("c%d", i), []string{"blue", "green", ""}[i%3])
	}
	for _, as := range []string{"root", "bob", "ann,team", "eve"} { // bob's are put together of two sets
		for _, path := range []string{"v1beta1/clusters?", "v1alpha1/clusters?", "v1beta1/clusters?limit=40&"} {
			everything := o.read(0, as, path, plain).names()
			low, high := o.read(0, as, path+shard(lower), plain).names(), o.read(0, as, path+shard(upper), plain).names()
			both := slices.Sorted(slices.Values(append(slices.Clone(low), high...)))
			if !slices.Equal(both, everything) || as == "root" && (len(low) == 0 || len(high) == 0) {
				t.Errorf("%s reads %s: halves of %q and %q, of %q", as, path, low, high, everything)
			}
		}
	}
	if code, answer := o.do(0, "root", http.MethodGet, "v1beta1/clusters?"+shard("object.metadata.uid"), plain, ""); code == http.StatusOK || !strings.Contains(answer, "invalid shard selector") {
		t.Errorf("a selector that is none: %d %s", code, answer)
	}

	half := o.read(0, "bob", "v1beta1/clusters?"+shard(lower), plain)
	events, err := o.watch(t.Context(), 1, "bob", "resourceVersion="+half.Metadata.ResourceVersion+"&"+shard(lower))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, name := range o.read(0, "root", "v1beta1/clusters", plain).names() {
		o.must(http.MethodPatch, "v1beta1/clusters/"+name, mergePatch, fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i))
		if slices.Contains(half.names(), name) {
			want = append(want, "MODIFIED "+name)
		}
	}
	expect(t, events, want...)
}

// TestNoShards has the gate off: all is read, as the list says by having no shard in it.
func TestNoShards(t *testing.T) {
	o := small(t, quick)
	if got := o.read(0, "root", "v1beta1/clusters?"+shard(lower), plain); len(got.Items) != 4 || got.Metadata.ShardInfo != nil {
		t.Errorf("%d clusters are read, of %v", len(got.Items), got.Metadata.ShardInfo)
	}
}

// accepting makes a request of root whose answer is to be of a type.
func (o *office) accepting(accept, method, path, kind, content string) *http.Response {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), method, o.servers[0].URL+apiGroup+path, strings.NewReader(content))
	if err != nil {
		o.t.Fatal(err)
	}
	request.Header.Set("As", "root")
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", kind)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// answer makes such a request, and returns the code and the body.
func (o *office) answer(accept, method, path, kind, content string) (int, []byte) {
	o.t.Helper()
	response := o.accepting(accept, method, path, kind, content)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return response.StatusCode, answer
}

const cborPatch = "application/apply-patch+cbor"

// TestCBOR writes, lists and watches clusters in CBOR, with what bounds bodies in other encodings.
func TestCBOR(t *testing.T) {
	gate(t, features.CBORServingAndStorage)
	o := small(t, quick)
	if code, answer := o.answer(plain, http.MethodPost, "v1beta1/clusters", runtime.ContentTypeCBOR, bodytest.CBOR(t, inSet("c1", "blue"))); code != http.StatusCreated {
		t.Fatalf("a creation: %d %s", code, answer)
	}
	if code, answer := o.answer(plain, http.MethodPatch, "v1beta1/clusters/c2?fieldManager=a", cborPatch, bodytest.CBOR(t, inSet("c2", "green"))); code != http.StatusCreated {
		t.Errorf("an apply: %d %s", code, answer)
	}
	// As in JSON, where TestWrittenBodies has it.
	large := inSet("c3", "")
	large = strings.TrimSuffix(large, "}") + `,"x":[` + strings.Repeat("1,", body.MaxEntries) + `1]}`
	for kind, path := range map[string]string{runtime.ContentTypeCBOR: "v1beta1/clusters", cborPatch: "v1beta1/clusters/c3?fieldManager=a"} {
		method := map[bool]string{true: http.MethodPatch, false: http.MethodPost}[kind == cborPatch]
		if code, answer := o.answer(plain, method, path, kind, bodytest.CBOR(t, large)); code != http.StatusUnprocessableEntity || !strings.Contains(string(answer), "Too many") {
			t.Errorf("a body with too many entries in %s: %d %.200s", kind, code, answer)
		}
	}
	if code, answer := o.answer(plain, http.MethodPatch, "v1alpha1/clusters/c2?fieldManager=a", cborPatch, bodytest.CBOR(t, inSet("c2", "green"))); code != http.StatusUnsupportedMediaType {
		t.Errorf("an apply in v1alpha1: %d %s", code, answer)
	}

	var inJSON, inCBOR v1beta1.ClusterList
	if _, answer := o.answer(plain, http.MethodGet, "v1beta1/clusters", "", ""); json.Unmarshal(answer, &inJSON) != nil {
		t.Fatalf("no JSON: %s", answer)
	}
	code, answer := o.answer(runtime.ContentTypeCBOR, http.MethodGet, "v1beta1/clusters", "", "")
	if _, _, err := cbor.NewSerializer(scheme, scheme).Decode(answer, nil, &inCBOR); code != http.StatusOK || err != nil {
		t.Fatalf("a list: %d %v", code, err)
	}
	if len(inCBOR.Items) != 6 || !equality.Semantic.DeepEqual(inJSON, inCBOR) {
		t.Errorf("in JSON %+v\nin CBOR %+v", inJSON, inCBOR)
	}

	watched := o.accepting(runtime.ContentTypeCBOR, http.MethodGet, "v1beta1/clusters?watch=true&resourceVersion="+inCBOR.ResourceVersion, "", "")
	if kind := watched.Header.Get("Content-Type"); watched.StatusCode != http.StatusOK || kind != "application/cbor-seq" {
		t.Fatalf("a watch: %d %s", watched.StatusCode, kind)
	}
	o.move("c1", "green")
	end := time.AfterFunc(time.Minute, func() { _ = watched.Body.Close() })
	defer end.Stop()
	frame := make([]byte, 64<<10)
	n, err := cbor.NewFramer().NewFrameReader(watched.Body).Read(frame)
	if err != nil {
		t.Fatal(err)
	}
	var event struct {
		Type   string          `json:"type"`
		Object v1beta1.Cluster `json:"object"`
	}
	if err := direct.Unmarshal(frame[:n], &event); err != nil || event.Type != "MODIFIED" || event.Object.Name != "c1" || event.Object.Spec.ClusterSet != "green" {
		t.Errorf("it tells %+v, %v", event, err)
	}
}

// TestNoCBOR has the gate off.
func TestNoCBOR(t *testing.T) {
	o := small(t, quick)
	if code, answer := o.answer(runtime.ContentTypeCBOR, http.MethodGet, "v1beta1/clusters", "", ""); code != http.StatusNotAcceptable {
		t.Errorf("a list: %d %.200s", code, answer)
	}
	if code, answer := o.answer(plain, http.MethodPost, "v1beta1/clusters", runtime.ContentTypeCBOR, bodytest.CBOR(t, inSet("c1", "blue"))); code != http.StatusUnsupportedMediaType {
		t.Errorf("a creation: %d %.200s", code, answer)
	}
}

// BenchmarkEncodings prints what a list of 10,000 clusters with a CA costs a server, and its bytes,
// in each encoding, without TLS, authorization and etcd.
func BenchmarkEncodings(b *testing.B) {
	gate(b, features.CBORServingAndStorage)
	stored := newEncoded()
	d := newDeskOn(b, cluster.GuardedFieldsOff, stored.getter())
	if code, answer, _ := d.send(http.MethodPost, "v1beta1/clusters?fieldManager=person", plain, written("v1beta1", "west", 0, certificates(b, 1))); code != http.StatusCreated {
		b.Fatalf("%d %s", code, answer)
	}
	if code, answer, _ := d.send(http.MethodPatch, "v1beta1/clusters/west?fieldManager=controller", mergePatch, `{"metadata":{"labels":{"seen":"yes"}}}`); code != http.StatusOK {
		b.Fatalf("%d %s", code, answer)
	}
	stored.fill(b, "west", 10_000)
	for _, accept := range []string{plain, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR} {
		b.Run(strings.TrimPrefix(accept, "application/"), func(b *testing.B) {
			var bytes int
			measure(b, func(int) { bytes = d.size("v1beta1/clusters", accept) })
			b.ReportMetric(float64(bytes)/10_000, "bytes/cluster")
		})
	}
}

// size returns how many bytes an answer has.
func (d *desk) size(path, accept string) int {
	d.t.Helper()
	request := httptest.NewRequestWithContext(d.t.Context(), http.MethodGet, apiGroup+path, nil)
	request.Header.Set("Accept", accept)
	recorder := httptest.NewRecorder()
	d.handler.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		d.t.Fatalf("%s: %d %.200s", accept, recorder.Code, recorder.Body)
	}
	return recorder.Body.Len()
}
