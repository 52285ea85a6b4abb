package retry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

var (
	refused = status.Error(codes.Unknown, "raft proposal dropped")
	lost    = rpctypes.Error(rpctypes.ErrGRPCTimeout)
	full    = rpctypes.Error(rpctypes.ErrGRPCNoSpace)
)

func TestClassify(t *testing.T) {
	for _, test := range []struct {
		err  error
		want reason
	}{
		{err: nil},
		{err: refused, want: unapplied},
		{err: status.Error(codes.Unknown, "raft: stopped"), want: unknown},
		{err: status.Error(codes.Unknown, "etcdserver: something new"), want: ""},
		{err: fmt.Errorf("wrapped: %w", refused), want: ""}, // gRPC puts other words around the message
		{err: rpctypes.ErrTooManyRequests, want: unapplied},
		{err: apierrors.NewTooManyRequests("storage is (re)initializing", 1), want: unapplied}, // a watch cache
		{err: lost, want: unknown},
		{err: rpctypes.ErrTimeoutDueToLeaderFail, want: unknown},
		{err: rpctypes.ErrNoLeader, want: unknown},
		{err: rpctypes.ErrLeaderChanged, want: unknown},
		{err: status.Error(codes.Unavailable, "error reading from server: EOF"), want: unknown},
		{err: status.Error(codes.Unknown, "something else")},
		{err: full},
		{err: context.DeadlineExceeded},
		{err: storage.NewKeyNotFoundError("k", 0)},
	} {
		if got := classify(test.err); got != test.want {
			t.Errorf("%v: %q, want %q", test.err, got, test.want)
		}
	}
}

func named(uid, label string) *clusterregistry.Cluster {
	return &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: types.UID(uid), Labels: map[string]string{"is": label}}}
}

// writes returns what was made of the key, in order.
func (f *faulty) writes() []string {
	out := []string{}
	for _, c := range f.history {
		if c.data == nil {
			out = append(out, "gone")
			continue
		}
		made := decode(c.data, c.version)
		out = append(out, string(made.UID)+"="+made.Labels["is"])
	}
	return out
}

// situation is a script and what is to come of it.
type situation struct {
	reason string
	start  *clusterregistry.Cluster
	script []fault
	// stale lets the storage start from a cache that lags.
	stale, forgetful bool
	wantErr          error
	// returned is the cluster that the caller gets, as in writes.
	returned string
	writes   []string
}

func (s situation) run(t *testing.T, operation func(context.Context, storage.Interface, *clusterregistry.Cluster) error) {
	t.Helper()
	below := &faulty{script: s.script, forgetful: s.forgetful}
	if s.start != nil {
		if s.stale {
			below.another(named(string(s.start.UID), "older"))
			below.cached = decode(below.data, below.modified)
		}
		below.another(s.start)
		below.history = nil
	}
	out := &clusterregistry.Cluster{}
	err := operation(t.Context(), &store{Interface: below, codec: codec, newFunc: func() runtime.Object { return &clusterregistry.Cluster{} }, outage: &outage{}}, out)
	if s.wantErr == nil && err != nil || s.wantErr != nil && !errors.Is(err, s.wantErr) && (err == nil || !strings.Contains(err.Error(), s.wantErr.Error())) {
		t.Errorf("%s: error %v, want %v", s.reason, err, s.wantErr)
	}
	if got := string(out.UID) + "=" + out.Labels["is"]; err == nil && got != s.returned {
		t.Errorf("%s: returned %s, want %s", s.reason, got, s.returned)
	}
	if below.blocked {
		t.Errorf("%s: it would wait for a change that nobody made", s.reason)
	}
	if got := below.writes(); !slices.Equal(got, s.writes) {
		t.Errorf("%s: etcd recorded %v, want %v", s.reason, got, s.writes)
	}
}

func TestCreate(t *testing.T) {
	other := func(f *faulty) { f.another(named("other", "theirs")) }
	exists := errors.New("key exists")
	for _, s := range []situation{
		{reason: "no fault", returned: "mine=new", writes: []string{"mine=new"}},
		{reason: "refused", script: []fault{{err: refused}, {err: refused}}, returned: "mine=new", writes: []string{"mine=new"}},
		{reason: "lost", script: []fault{{err: lost}}, returned: "mine=new", writes: []string{"mine=new"}},
		{reason: "applied, the answer lost", script: []fault{{err: lost, applied: true}}, returned: "mine=new", writes: []string{"mine=new"}},
		{reason: "applied late", script: []fault{{err: lost, late: true}}, returned: "mine=new", writes: []string{"mine=new"}},
		{
			reason: "applied and then changed by another",
			script: []fault{{err: lost, applied: true}, {before: func(f *faulty) { f.another(named("mine", "changed")) }}},
			// It is what became of the creation by now.
			returned: "mine=changed", writes: []string{"mine=new", "mine=changed"},
		},
		{reason: "another came first", script: []fault{{err: lost}, {before: other}}, wantErr: exists, writes: []string{"other=theirs"}},
		{reason: "another was there", start: named("other", "theirs"), wantErr: exists, writes: []string{}},
		{reason: "an answer", script: []fault{{err: full}}, wantErr: full, writes: []string{}},
		{reason: "an answer after an open attempt", script: []fault{{err: lost, applied: true}, {err: full}}, wantErr: lost, writes: []string{"mine=new"}},
		{reason: "an answer after a refusal", script: []fault{{err: refused}, {err: full}}, wantErr: full, writes: []string{}},
	} {
		s.run(t, func(ctx context.Context, store storage.Interface, out *clusterregistry.Cluster) error {
			return store.Create(ctx, "/east", named("mine", "new"), out, 0)
		})
	}
}

// TestUpdate appends to a label, so that it shows on what, and how often.
func TestUpdate(t *testing.T) {
	start := named("mine", "a")
	other := func(f *faulty) { f.another(named("mine", "theirs")) }
	gone := func(f *faulty) { f.another(nil) }
	for _, s := range []situation{
		{reason: "no fault", start: start, returned: "mine=a+", writes: []string{"mine=a+"}},
		{reason: "refused", start: start, script: []fault{{err: refused}}, returned: "mine=a+", writes: []string{"mine=a+"}},
		{reason: "lost", start: start, script: []fault{{err: lost}}, returned: "mine=a+", writes: []string{"mine=a+"}},
		{reason: "applied, the answer lost", start: start, script: []fault{{err: lost, applied: true}}, returned: "mine=a+", writes: []string{"mine=a+"}},
		{reason: "applied, the answer lost, the cache lags", start: start, stale: true, script: []fault{{}, {err: lost, applied: true}}, returned: "mine=a+", writes: []string{"mine=a+"}},
		{reason: "lost, the cache lags", start: start, stale: true, script: []fault{{}, {err: lost}}, returned: "mine=a+", writes: []string{"mine=a+"}},
		{reason: "applied late", start: start, script: []fault{{err: lost, late: true}}, returned: "mine=a+", writes: []string{"mine=a+"}},
		{reason: "lost twice, then applied late", start: start, script: []fault{{err: lost}, {err: lost, late: true}}, returned: "mine=a+", writes: []string{"mine=a+"}},
		{
			reason: "lost, then another wrote", start: start, script: []fault{{err: lost}, {before: other}},
			returned: "mine=theirs+", writes: []string{"mine=theirs", "mine=theirs+"},
		},
		{
			reason: "applied, then another wrote", start: start, script: []fault{{err: lost, late: true}, {before: other}},
			returned: "mine=a+", writes: []string{"mine=a+", "mine=theirs"},
		},
		{
			reason: "another wrote, and nobody knows what came before", start: start, forgetful: true, script: []fault{{err: lost}, {before: other}},
			wantErr: lost, writes: []string{"mine=theirs"},
		},
		{
			reason: "lost, then deleted", start: start, script: []fault{{err: lost}, {before: gone}},
			wantErr: errors.New("key not found"), writes: []string{"gone"},
		},
		{
			reason: "applied, then deleted", start: start, script: []fault{{err: lost, late: true}, {before: gone}},
			returned: "mine=a+", writes: []string{"mine=a+", "gone"},
		},
		{
			reason: "deleted, and nobody knows what came before", start: start, forgetful: true, script: []fault{{err: lost, late: true}, {before: gone}},
			wantErr: lost, writes: []string{"mine=a+", "gone"},
		},
		{reason: "an answer after an open attempt", start: start, script: []fault{{err: lost}, {err: full}}, wantErr: lost, writes: []string{}},
	} {
		s.run(t, func(ctx context.Context, store storage.Interface, out *clusterregistry.Cluster) error {
			// The UID has to be the same, whichever attempt is looked at.
			return store.GuaranteedUpdate(ctx, "/east", out, false, storage.NewUIDPreconditions("mine"), storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
				c := existing.(*clusterregistry.Cluster)
				c.Labels["is"] += "+"
				return c, nil
			}), nil)
		})
	}
}

// TestUpdateOfAVersion is a PUT of a version: it must not be applied to another.
func TestUpdateOfAVersion(t *testing.T) {
	conflict := errors.New("Precondition failed: ResourceVersion")
	other := func(f *faulty) { f.another(named("mine", "theirs")) }
	for _, s := range []situation{
		{reason: "applied, the answer lost", start: named("mine", "a"), script: []fault{{err: lost, applied: true}}, returned: "mine=b", writes: []string{"mine=b"}},
		{reason: "applied late", start: named("mine", "a"), script: []fault{{err: lost, late: true}}, returned: "mine=b", writes: []string{"mine=b"}},
		{reason: "lost, then another wrote", start: named("mine", "a"), script: []fault{{err: lost}, {before: other}}, wantErr: conflict, writes: []string{"mine=theirs"}},
		{reason: "applied, then another wrote", start: named("mine", "a"), script: []fault{{err: lost, late: true}, {before: other}}, returned: "mine=b", writes: []string{"mine=b", "mine=theirs"}},
	} {
		s.run(t, func(ctx context.Context, store storage.Interface, out *clusterregistry.Cluster) error {
			return store.GuaranteedUpdate(ctx, "/east", out, false, &storage.Preconditions{ResourceVersion: new("1")}, storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) {
				return named("mine", "b"), nil
			}), nil)
		})
	}
}

// TestUpdateAsCreate gives each attempt a UID of its own, as the registry does.
func TestUpdateAsCreate(t *testing.T) {
	other := func(f *faulty) { f.another(named("other", "theirs")) }
	for _, s := range []situation{
		{reason: "refused", script: []fault{{err: refused}}, returned: "mine-2=new", writes: []string{"mine-2=new"}},
		{reason: "lost", script: []fault{{err: lost}}, returned: "mine-2=new", writes: []string{"mine-2=new"}},
		{reason: "applied, the answer lost", script: []fault{{err: lost, applied: true}}, returned: "mine-1=new", writes: []string{"mine-1=new"}},
		{reason: "the first applied late", script: []fault{{err: lost, late: true}, {}}, returned: "mine-1=new", writes: []string{"mine-1=new"}},
		{reason: "another came first", script: []fault{{err: lost}, {before: other}}, wantErr: lost, writes: []string{"other=theirs"}},
	} {
		attempts := 0
		s.run(t, func(ctx context.Context, store storage.Interface, out *clusterregistry.Cluster) error {
			return store.GuaranteedUpdate(ctx, "/east", out, true, nil, storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
				if existing.(*clusterregistry.Cluster).UID != "" {
					return nil, errors.New("it is there")
				}
				attempts++
				return named(fmt.Sprintf("mine-%d", attempts), "new"), nil
			}), nil)
		})
	}
}

func TestDelete(t *testing.T) {
	start := named("mine", "a")
	other := func(f *faulty) { f.another(named("mine", "theirs")) }
	replaced := func(f *faulty) { f.another(nil); f.another(named("other", "new")) }
	for _, s := range []situation{
		{reason: "no fault", start: start, returned: "mine=a", writes: []string{"gone"}},
		{reason: "refused", start: start, script: []fault{{err: refused}}, returned: "mine=a", writes: []string{"gone"}},
		{reason: "lost", start: start, script: []fault{{err: lost}}, returned: "mine=a", writes: []string{"gone"}},
		{reason: "applied, the answer lost", start: start, script: []fault{{err: lost, applied: true}}, returned: "mine=a", writes: []string{"gone"}},
		{reason: "applied, the answer lost, the cache lags", start: start, stale: true, script: []fault{{}, {err: lost, applied: true}}, returned: "mine=a", writes: []string{"gone"}},
		{reason: "lost, the cache lags", start: start, stale: true, script: []fault{{}, {err: lost}}, returned: "mine=a", writes: []string{"gone"}},
		{reason: "applied late", start: start, script: []fault{{err: lost, late: true}}, returned: "mine=a", writes: []string{"gone"}},
		{reason: "lost, then changed by another", start: start, script: []fault{{err: lost}, {before: other}}, returned: "mine=theirs", writes: []string{"mine=theirs", "gone"}},
		{reason: "made anew by another", start: start, script: []fault{{err: lost}, {before: replaced}}, returned: "mine=a", writes: []string{"gone", "other=new"}},
		{reason: "an answer after an open attempt", start: start, script: []fault{{err: lost}, {err: full}}, wantErr: lost, writes: []string{}},
	} {
		s.run(t, func(ctx context.Context, store storage.Interface, out *clusterregistry.Cluster) error {
			return store.Delete(ctx, "/east", out, storage.NewUIDPreconditions("mine"), storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
		})
	}
}

// TestRefusedByTheCaller has the caller's own part in a write fail with errors
// that a storage gives as well: they are passed on at once, as they are.
func TestRefusedByTheCaller(t *testing.T) {
	for reason, busy := range map[string]error{
		"a webhook that is busy":       apierrors.NewTooManyRequests("come back later", 7),
		"another storage in between":   lost,
		"another storage that is gone": refused,
	} {
		for operation, run := range map[string]func(storage.Interface, *int) error{
			"update": func(s storage.Interface, asked *int) error {
				return s.GuaranteedUpdate(t.Context(), "/east", &clusterregistry.Cluster{}, false, nil, storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) {
					*asked++
					return nil, busy
				}), nil)
			},
			"delete": func(s storage.Interface, asked *int) error {
				return s.Delete(t.Context(), "/east", &clusterregistry.Cluster{}, nil, func(context.Context, runtime.Object) error {
					*asked++
					return busy
				}, nil, storage.DeleteOptions{})
			},
		} {
			below, asked := &faulty{}, 0
			below.another(named("mine", "a"))
			err := run(&store{Interface: below, codec: codec, newFunc: func() runtime.Object { return &clusterregistry.Cluster{} }, outage: &outage{}}, &asked)
			if err != busy || asked != 1 { //nolint:errorlint // it has to be the very same
				t.Errorf("%s, %s: %v, asked %d times", reason, operation, err, asked)
			}
		}
	}
}

// TestEndOfContext makes sure that a request doesn't outlive its caller, and
// says what held it up.
func TestEndOfContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	attempts := 0
	c := call{operation: "create", key: "/east", outage: &outage{}}
	err := c.persist(ctx, func() error {
		if attempts++; attempts == 3 {
			cancel()
		}
		return refused
	})
	if !errors.Is(err, refused) || attempts != 3 {
		t.Errorf("%v after %d attempts", err, attempts)
	}
}
