package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

const ofMany = 200

// nameOfMany is that of a cluster of the source of manyOf.
func nameOfMany(n int) string { return fmt.Sprintf("c-%03d", n) }

// manyOf returns an environment whose registry has the first clusters of a source of many, one of
// them with something else.
func manyOf(t *testing.T, first int) *commandtest.Env {
	t.Helper()
	var there []runtime.Object
	for n := range first {
		c := some(nameOfMany(n), "")
		if n == 1 {
			c.Spec.DisplayName = "theirs"
		}
		there = append(there, c)
	}
	env := commandtest.New(t, there...)
	for n := range ofMany {
		content, err := json.Marshal(some(nameOfMany(n), ""))
		if err != nil {
			t.Fatal(err)
		}
		env.Stdin.WriteString(strings.Replace(string(content), "{", `{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster",`, 1) + "\n")
	}
	return env
}

// verbs counts what was asked of the registry.
func verbs(env *commandtest.Env) map[string]int {
	out := map[string]int{}
	for _, action := range env.Clusters.Actions() {
		out[action.GetVerb()]++
	}
	return out
}

func importMany(t *testing.T, env *commandtest.Env, code int) ([]Result, string) {
	t.Helper()
	text, got := env.Run(t, NewImport(env.Env), "-f", "-", "-o", "json")
	var out []Result
	if err := json.Unmarshal(env.Stdout.Bytes(), &out); err != nil || got != code {
		t.Fatalf("exits with %d, %s: %v in %s", got, text, err, env.Stdout)
	}
	for n, result := range out {
		if result.Name != nameOfMany(n) {
			t.Fatalf("result %d is of %s", n, result.Name)
		}
	}
	return out, text
}

// TestImportMany lists the registry once, and reports in the order of the source.
func TestImportMany(t *testing.T) {
	env := manyOf(t, 60)
	results, _ := importMany(t, env, command.ExitAttention)
	for n, result := range results {
		want := created
		switch {
		case n == 1:
			want = differs
		case n < 60:
			want = same
		}
		if result.Result != want {
			t.Errorf("%s: %s", result.Name, result.Result)
		}
	}
	if got := verbs(env); len(results) != ofMany || got["list"] != 1 || got["get"] != 0 || got["create"] != ofMany-60 {
		t.Errorf("%d results of %v", len(results), got)
	}
}

// TestImportManyWithoutList asks for each cluster where they can't be listed.
func TestImportManyWithoutList(t *testing.T) {
	for _, refusal := range []error{apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "", errors.New("no")), apierrors.NewResourceExpired("the page is too old"),
		errors.New("no kind \"ClusterList\" is registered"), apierrors.NewBadRequest("continue is not valid"), apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "clusters"}, "list")} {
		env := manyOf(t, 60)
		env.Clusters.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
		results, _ := importMany(t, env, command.ExitAttention)
		if got := verbs(env); len(results) != ofMany || results[0].Result != same || results[60].Result != created || got["get"] != ofMany {
			t.Errorf("%v: %v of %v", refusal, results[:2], got)
		}
	}
}

// TestImportManyEnteredMeanwhile compares with what someone has entered after the list.
func TestImportManyEnteredMeanwhile(t *testing.T) {
	env := manyOf(t, 60)
	env.Clusters.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &v1beta1.ClusterList{}, nil
	})
	results, _ := importMany(t, env, command.ExitAttention)
	if results[0].Result != same || results[1].Result != differs || results[60].Result != created {
		t.Errorf("%v", results[:2])
	}
}

// TestImportManyUnread stops where what someone has entered since can't be read: that is about the
// registry, and not about the entry.
func TestImportManyUnread(t *testing.T) {
	env := manyOf(t, 60)
	env.Clusters.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &v1beta1.ClusterList{}, nil
	})
	env.Clusters.PrependReactor("get", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("no endpoints")
	})
	if text, code := env.Run(t, NewImport(env.Env), "-f", "-"); code != command.ExitFailed || !strings.HasPrefix(text, "stopped at entry 1 of 200, Cluster c-000: ") {
		t.Errorf("exits with %d: %s", code, text)
	}
}

// TestImportManyStops reports what is done before the entry at which the registry has failed.
func TestImportManyStops(t *testing.T) {
	env := manyOf(t, 0)
	env.Clusters.PrependReactor("create", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.CreateAction).GetObject().(*v1beta1.Cluster).Name
		return name >= nameOfMany(100), nil, apierrors.NewServiceUnavailable("no endpoints")
	})
	results, text := importMany(t, env, command.ExitFailed)
	if len(results) != 100 || !strings.HasPrefix(text, "stopped at entry 101 of 200, Cluster c-100: ") || !strings.HasSuffix(text, "; 100 entries are done, 0 differ or were refused, and running this again continues") {
		t.Errorf("%d results, %s", len(results), text)
	}
	if got := verbs(env)["create"]; got > 100+workers {
		t.Errorf("%d clusters were tried", got)
	}
}

// TestImportManyNotListed reports what was decided without the registry when that can't list its
// clusters since it fails.
func TestImportManyNotListed(t *testing.T) {
	for _, fails := range []error{apierrors.NewServiceUnavailable("no endpoints"), apierrors.NewInternalError(errors.New("etcd has no leader")), apierrors.NewTimeoutError("too slow", 1)} {
		env := manyOf(t, 60)
		first, _, _ := strings.Cut(env.Stdin.String(), "\n")
		env.Stdin.WriteString(first + "\n") // of two of one name, the second one is refused
		env.Clusters.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, fails })
		results, text := importMany(t, env, command.ExitFailed)
		if len(results) != 1 || results[0].Result != refused || !strings.HasPrefix(text, "stopped at entry 1 of 201, Cluster c-000: ") || !strings.HasSuffix(text, "; 0 entries are done, 1 differ or were refused, and running this again continues") || verbs(env)["create"] > 0 {
			t.Errorf("%v: %v, %s", fails, results, text)
		}
	}
}

// TestImportManyStopsEarly reports all that is done when one of the first entries still waits.
func TestImportManyStopsEarly(t *testing.T) {
	env := manyOf(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tried atomic.Int64
	env.Clusters.PrependReactor("create", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if name := action.(clienttesting.CreateAction).GetObject().(*v1beta1.Cluster).Name; name == nameOfMany(2) {
			return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), name, errors.New("another request holds its id"))
		}
		if tried.Add(1) == 60 {
			cancel()
		}
		return false, nil, nil
	})
	i := &importer{env: env.Env, workers: workers, pause: time.Hour, held: 2 * time.Hour}
	cmd := i.command()
	cmd.SetArgs([]string{"-f", "-", "-o", "json"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	var got []Result
	if failed := json.Unmarshal(env.Stdout.Bytes(), &got); failed != nil || err == nil {
		t.Fatalf("%v: %v in %s", err, failed, env.Stdout)
	}
	if len(got) < 60 || got[1].Result != differs || got[2].Name != nameOfMany(3) || got[2].Result != created {
		t.Errorf("%d results: %v", len(got), got[:min(len(got), 3)])
	}
	if text := err.Error(); !strings.HasPrefix(text, "stopped at entry 3 of 200, Cluster c-002: ") || !strings.Contains(text, fmt.Sprintf("; %d entries are done, 1 differ or were refused,", len(got)-1)) {
		t.Error(text)
	}
}

// TestImportIsNotPrinted says what was done also when its report can't be printed.
func TestImportIsNotPrinted(t *testing.T) {
	for says, env := range map[string]*commandtest.Env{
		"1 of 200 entries differ or were refused; the report is not printed: ": manyOf(t, 60),
		"all 200 entries are done, and the report is not printed: ":            manyOf(t, 0),
	} {
		if text, code := env.Run(t, NewImport(env.Env), "-f", "-", "-o", "jsonpath={[999].name}"); code != command.ExitFailed || !strings.HasPrefix(text, says) {
			t.Errorf("exits with %d, and does not say %q: %s", code, says, text)
		}
	}
}

func TestNameTemplate(t *testing.T) {
	const source = `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: east, namespace: red, uid: u1}, spec: {controlPlaneEndpoint: {host: r.example, port: 6443}}}
---
{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: east, namespace: blue, uid: u2}, spec: {controlPlaneEndpoint: {host: b.example, port: 6443}}}
---
{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: own}}
`
	for _, test := range []struct {
		template, says string
		code           int
	}{
		{"{namespace}-{name}", `"name": "red-east"|"name": "blue-east"|it has no namespace, and --name-template={namespace}-{name} asks for one`, 4},
		{"x-{name}", `"name": "x-east"|the name is taken by Cluster red/east of the same source: rename one of them, or see --name-template|"name": "x-own"`, 4},
		{"{NAME}", "--name-template={NAME}: it has to have {name}, and may have {namespace}, such as {namespace}-{name}", 2},
		{"{name}-{region}", "--name-template={name}-{region}: it has to have", 2},
		{"", "--name-template=: it has to have", 2},
	} {
		env := commandtest.New(t)
		env.Stdin.WriteString(source)
		text, code := env.Run(t, NewImport(env.Env), "-f", "-", "-o", "json", "--name-template="+test.template)
		for says := range strings.SplitSeq(test.says, "|") {
			if code != test.code || !strings.Contains(env.Stdout.String()+text, says) {
				t.Errorf("%s: exits with %d, and does not say %s: %s%s", test.template, code, says, text, env.Stdout)
			}
		}
	}
}
