package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/features"

	"github.com/clusterregistry/operator/apiserver/body"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// What a request may cost, whatever its body is.
const (
	// mostAllocated, mostPerByte and mostWithout bound what is allocated: for any request, and
	// for one with a short body, for each of its bytes besides what one without takes.
	mostAllocated = 256 << 20
	mostPerByte   = 2 << 10
	mostWithout   = 16 << 20
	// mostTime bounds the time of the processor in units of what reading 1 MiB of JSON takes in
	// the same run, with as many values as a body may have. The most expensive of the bodies
	// below takes 20 to 70, as busy as the machine is; what goes by the square, thousands.
	mostTime = 300
)

// writes are the requests that have a body, each with the content types that it may have.
var writes = []struct{ method, path, kind string }{
	{"POST", "v1beta1/clusters", plain},
	{"POST", "v1alpha1/clusters", plain},
	{"POST", "v1beta1/clusters", "application/yaml"},
	{"POST", "v1alpha1/clusters", "application/vnd.kubernetes.protobuf"},
	{"POST", "v1beta1/clusters", "application/vnd.kubernetes.protobuf"},
	{"PUT", "v1beta1/clusters/full", plain},
	{"PUT", "v1alpha1/clusters/full", plain},
	{"PATCH", "v1beta1/clusters/full", jsonPatch},
	{"PATCH", "v1beta1/clusters/full", mergePatch},
	{"PATCH", "v1beta1/clusters/full", "application/strategic-merge-patch+json"},
	{"PATCH", "v1beta1/clusters/full?fieldManager=a&force=true", applyPatch},
	{"PATCH", "v1beta1/clusters/full?fieldManager=a&force=true", applyPatch + "; ="},
	{"PATCH", "v1alpha1/clusters/full", mergePatch},
	{"PUT", "v1beta1/clusters/full/status", plain},
	{"PUT", "v1alpha1/clusters/full/status", plain},
	{"PATCH", "v1beta1/clusters/full/status", jsonPatch},
	{"PATCH", "v1beta1/clusters/full/status", mergePatch},
	{"PATCH", "v1alpha1/clusters/full/status", mergePatch},
	{"PATCH", "v1beta1/clusters/full/status", "application/strategic-merge-patch+json"},
	{"PATCH", "v1beta1/clusters/full/status?fieldManager=a&force=true", applyPatch},
	{"POST", "v1beta1/clustersets", plain},
	{"PATCH", "v1beta1/clustersets/some", mergePatch},
	{"PATCH", "v1beta1/clustersets/some?fieldManager=a&force=true", applyPatch},
	{"DELETE", "v1beta1/clusters", plain},
	{"POST", "v1beta1/clusterheartbeats", plain},
	{"PATCH", "v1beta1/clusterheartbeats/full.some", mergePatch},
	{"PATCH", "v1beta1/clusterheartbeats/full.some?fieldManager=a&force=true", applyPatch},
}

// inCluster puts something into an object of a version.
func inCluster(version, rest string) string {
	return `{"apiVersion":"clusterregistry.k8s.io/` + version + `","kind":"Cluster","metadata":{"name":"full"},` + rest + `}`
}

// bodies are what may cost far more than it should: with as many entries as a list may have,
// as long as a body may be, and one that is longer.
func bodies() (out []string) {
	out = append(most(), inCluster("v1beta1", `"nonsense":"`+strings.Repeat("x", 2*body.MaxBytes)+`"`))
	for _, size := range []int{6 << 10, 1_000_000} {
		many := func(item string) string {
			return "[" + strings.TrimSuffix(strings.Repeat(item+",", size/(len(item)+1)), ",") + "]"
		}
		text := strings.Repeat("x", size)
		condition := `{"type":"A","status":"True","reason":"B","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`
		for _, rest := range []string{
			`"spec":{"access":` + many("{}") + `}`,
			`"spec":{"endpoints":` + many("{}") + `}`,
			`"spec":{"taints":` + many("{}") + `}`,
			`"spec":{"endpoints":[{"name":"a","clientCIDRs":` + many(`""`) + `}]}`,
			`"spec":{"authInfo":{"providers":` + many("{}") + `}}`,
			`"spec":{"kubernetesApiEndpoints":{"serverEndpoints":` + many("{}") + `}}`,
			`"spec":{"access":[{"name":"a","exec":{"apiVersion":"v1","command":"c","args":` + many(`"--a"`) + `}}]},"nonsense":"clusterName"`,
			`"status":{"conditions":` + many("{}") + `}`,
			`"status":{"conditions":` + many(condition) + `}`,
			`"Metadata":[],"nonsense":` + many("[]") + `,"clusterName":1`,
			`"nonsense":` + strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
			`"spec":{"displayName":"` + text + `","id":"` + text + `"}`,
			`"spec":{"displayName":"` + strings.Repeat("a://b:", size/6) + `"}`,
			`"spec":{"taints":[{"key":"` + text + `","effect":"NoSchedule"}]}`,
		} {
			out = append(out, inCluster("v1beta1", rest), inCluster("v1alpha1", rest))
		}
		out = append(out,
			"["+strings.TrimSuffix(strings.Repeat(`{"op":"add","path":"/spec/access/0","value":{}},`, size/48), ",")+"]",
			"["+strings.TrimSuffix(strings.Repeat(`{"op":"copy","from":"/spec","path":"/metadata/a"},`, size/52), ",")+"]",
			inProtobuf(strings.Repeat("\x22\x00", size/2)),              // access
			inProtobuf(strings.Repeat("\"\t012345678", size/11)),        // the same, as text
			inProtobuf("\x22\xff\x7f"+strings.Repeat("\x22\x00", 8191)), // what access has of its own
			"- "+strings.Repeat("-\t", size/2)+"a",
			"apiVersion: clusterregistry.k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: full}\nspec:\n  access:\n"+strings.Repeat("  -\t{}\u0085", size/9),
			"\xff\xfe"+strings.Repeat("-\x00\t\x00a\x00\x85\x00", size/8),
			"apiVersion: clusterregistry.k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: full}\nspec:\n  access:\n"+strings.Repeat("  - {}\n", size/7),
			"apiVersion: clusterregistry.k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: full}\nx: &a [{},{},{},{},{},{},{},{}]\nspec:\n  access:\n"+strings.Repeat("  - *a\n", size/9),
		)
	}
	return out
}

// tooMany returns bodies with lists of empty items: one that is longer than a body may be, of which
// each item was once checked for 34 seconds, and one that is just short enough. Each write gets them.
func tooMany() (out []string) {
	for _, size := range []int{2_900_000, 1_030_000} {
		items := "[" + strings.TrimSuffix(strings.Repeat("{},", size/3), ",") + "]"
		for _, rest := range []string{`"spec":{"access":` + items + `}`, `"status":{"conditions":` + items + `}`} {
			out = append(out, inCluster("v1beta1", rest), inCluster("v1alpha1", rest))
		}
		out = append(out, `[{"op":"add","path":"/spec/access","value":`+items+`}]`, `[{"op":"add","path":"/status/conditions","value":`+items+`}]`)
	}
	return out
}

// most returns bodies with as many entries as there may be in lists that are not too long.
func most() (out []string) {
	repeat := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	named := func(n int, item string) string {
		var items []string
		for i := range n {
			items = append(items, strings.ReplaceAll(item, "%", fmt.Sprint(i)))
		}
		return strings.Join(items, ",")
	}
	// As much of each as there may be in JSON, and where it is read as YAML.
	for _, n := range []int{body.MaxValues, body.MaxSeparators} {
		lists, values := n/2050, 2000
		for _, rest := range []string{
			`"nonsense":[` + repeat(lists/2, "["+repeat(values, "{}")+"]") + `]`,
			`"nonsense":[` + repeat(lists, "["+repeat(values, "1")+"]") + `]`,
			`"nonsense":{` + named(lists/2, `"a%":{`+repeat(values, `"b":{}`)+`}`) + `}`,
			`"spec":{"access":[` + named(lists/2, `{"name":"a%","exec":{"args":[`+repeat(values, `"a"`)+`],"env":[`+repeat(values/2, `{}`)+`]}}`) + `]}`,
			`"spec":{"endpoints":[` + named(lists, `{"name":"a%","url":"https://a","clientCIDRs":[`+repeat(values, `"10.0.0.0/8"`)+`]}`) + `]}`,
			`"spec":{"kubernetesApiEndpoints":{"serverEndpoints":[` + repeat(values, `{"clientCIDR":"10.0.0.0/8","serverAddress":"https://a"}`) + `]},"authInfo":{"providers":[` + named(min(lists, values), `{"name":"a%","type":{"name":"a"},"config":{`+named(values, `"b%":"c"`)+`}}`) + `]}}`,
			`"status":{"reporters":[` + named(lists/2, `{"name":"a%","conditions":[`+repeat(values, `{}`)+`]}`) + `]}`,
			`"status":{"conditions":[` + named(min(values, n/7), `{"type":"A%","status":"True","reason":"B","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`) + `]}`,
		} {
			out = append(out, inCluster("v1beta1", rest), inCluster("v1alpha1", rest))
		}
		meta := `{"name":"full","labels":{` + named(values, `"a%":"b"`) + `},"ownerReferences":[` + repeat(values, `{}`) + `],"managedFields":[` + named(values, `{"manager":"a%","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:a":{}}}}`) + `]}`
		out = append(out, strings.Replace(inCluster("v1beta1", `"spec":{}`), `{"name":"full"}`, meta, 1))
	}
	return out
}

// inProtobuf puts the content of a spec into a cluster, as client-go sends one.
func inProtobuf(spec string) string {
	field := func(number protowire.Number, content string) string {
		return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), content))
	}
	object := field(1, field(1, "full")) + field(2, spec)
	return "k8s\x00" + field(1, field(1, "clusterregistry.k8s.io/v1beta1")+field(2, "Cluster")) + field(2, object)
}

// FuzzBodies sends any body in any write through the whole server, and fails when that
// takes more memory or time than the body is worth.
func FuzzBodies(f *testing.F) {
	unit := unitOfTime(f)
	gate(f, features.CBORServingAndStorage)
	kept := newMemory()
	d := newDeskOn(f, cluster.GuardedFieldsOff, kept, serveGrants(f))
	d.stored, d.says = kept, map[string]review{"endpoints": {decision: authorizer.DecisionAllow}, "identity": {decision: authorizer.DecisionAllow}}
	for path, content := range map[string]string{
		"v1beta1/clusters":    full(),
		"v1beta1/clustersets": `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"ClusterSet","metadata":{"name":"some"}}`,
		rolesPath:             `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"some"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["x"]}]}`,
		bindingsPath:          `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"some"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"small"}}`,
	} {
		if code, answer, _ := d.send(http.MethodPost, path, plain, content); code != http.StatusCreated {
			f.Fatalf("%d %s", code, answer)
		}
	}
	stored := maps.Clone(d.stored.objects)
	contents := bodies()
	for write := range writes {
		for _, content := range tooMany() {
			f.Add(uint8(write), []byte(content))
		}
		for i, content := range contents {
			// Each short body meets each write. Of the others one in eight does: among them is
			// what takes most, a patch that makes of a cluster of v1alpha1 one of v1beta1.
			if len(content) < 1<<15 || (i+write)%8 == 4 {
				f.Add(uint8(write), []byte(content))
			}
		}
	}
	for i := range otherWrites {
		for _, content := range granting(f) {
			f.Add(uint8(len(writes)+i), []byte(content))
		}
	}
	all := slices.Concat(writes, otherWrites)
	f.Fuzz(func(t *testing.T, write uint8, content []byte) {
		d.t, d.stored.objects = t, maps.Clone(stored)
		request := all[int(write)%len(all)]
		allocated, took := cost(func() {
			if code, answer, _ := d.send(request.method, request.path, request.kind, string(content)); code >= http.StatusInternalServerError || len(answer) > 1<<20+len(content) {
				t.Errorf("%s %s (%s) with %d bytes answers %d with %d bytes: %.300s to %.120s", request.method, request.path, request.kind, len(content), code, len(answer), answer, content)
			}
		})
		if most := min(mostAllocated, mostWithout+mostPerByte*uint64(len(content))); allocated > most {
			t.Errorf("%s %s (%s) with %d bytes allocates %d MB, more than %d: %.120s", request.method, request.path, request.kind, len(content), allocated>>20, most>>20, content)
		}
		if took > mostTime*unit {
			t.Errorf("%s %s (%s) with %d bytes takes %s, more than %d times %s: %.120s", request.method, request.path, request.kind, len(content), took, mostTime, unit, content)
		}
	})
}

// full is a cluster with as many endpoints and ways to sign in as it may have.
func full() string {
	var endpoints, access []string
	for i := range 16 {
		endpoints = append(endpoints, fmt.Sprintf(`{"name":"e%d","url":"https://e%d.example","clientCIDRs":["10.%d.0.0/16"]}`, i, i, i))
		access = append(access, fmt.Sprintf(`{"name":"p%d","audience":"User","provider":{"type":"x"}}`, i))
	}
	return inCluster("v1beta1", `"spec":{"endpoints":[`+strings.Join(endpoints, ",")+`],"access":[`+strings.Join(access, ",")+`]}`)
}

// unitOfTime is what it takes to read 1 MiB with as many values as there may be.
func unitOfTime(tb testing.TB) time.Duration {
	item := fmt.Sprintf(`{"a":"%s"},`, strings.Repeat("x", body.MaxBytes/(body.MaxValues/2)-10))
	data := []byte("[" + strings.TrimSuffix(strings.Repeat(item, body.MaxValues/2), ",") + "]")
	const times = 10
	_, took := cost(func() {
		for range times {
			var out any
			if err := json.Unmarshal(data, &out); err != nil {
				tb.Fatal(err)
			}
		}
	})
	return took / times
}

// cost returns what f allocates, and how long it has the processor.
func cost(f func()) (uint64, time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processor()
	f()
	took := processor() - began
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took
}

// processor is how long this process has had the processor.
func processor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
