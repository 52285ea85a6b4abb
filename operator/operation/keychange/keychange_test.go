package keychange

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation"
)

// parsed returns keys of aescbc with the given names, or Identity.
func parsed(t *testing.T, names ...string) encryption.Keys {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [clusters.clusterregistry.k8s.io]\n  providers:\n"
	for _, name := range names {
		if name == "identity" {
			text += "  - identity: {}\n"
			continue
		}
		text += fmt.Sprintf("  - aescbc: {keys: [{name: %s, secret: %s}]}\n", name, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), 32)))
	}
	keys, err := encryption.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// registry is one whose servers are replaced one at a time, by those with the keys in use.
type registry struct {
	t              *testing.T
	inUse, desired encryption.Keys
	servers        []encryption.Keys
	stored         map[string]string // by the names of clusters, what etcd holds
	status         *operatorv1alpha1.Operation
	walk           Walk
	verified       string
	seen           []string
	// history are the keys, by revision, of what can be read from before, and compacted is the
	// revision before which there is none.
	history             []string
	revision, compacted int64
}

// store stores a cluster, by a server with keys.
func (r *registry) store(name string, keys encryption.Keys) {
	if before, is := r.stored[name]; is {
		r.history = append(r.history, encryption.Under([]byte(before)))
	} else {
		r.history = append(r.history, "")
	}
	r.stored[name], r.revision = value(keys), r.revision+1
}

// value is what a server with keys stores.
func value(keys encryption.Keys) string {
	if id := keys[0].ID(); id != "identity" {
		return "k8s:enc:" + strings.Replace(id, "/", ":v1:", 1) + ":x"
	}
	return "k8s\x00x"
}

// storage reads two clusters at a time, and has them stored again by any server.
func (r *registry) storage(random *rand.Rand) Storage {
	return Storage{
		Over: func() bool { return random.IntN(3) == 0 },
		Read: func(_ context.Context, after string, each func(string, []byte) error) (etcd.Stored, error) {
			names := slices.DeleteFunc(slices.Sorted(maps.Keys(r.stored)), func(name string) bool { return name <= after })
			page := names[:min(2, len(names))]
			for _, name := range page {
				if err := each(name, []byte(r.stored[name])); err != nil {
					return etcd.Stored{}, err
				}
			}
			out := etcd.Stored{Objects: len(page), Last: after, Left: len(names) - len(page), Revision: r.revision}
			if len(page) > 0 {
				out.Last = page[len(page)-1]
			}
			return out, nil
		},
		Rewrite: func(_ context.Context, name string) error {
			if random.IntN(4) == 0 {
				return errors.New("no answer")
			}
			r.store(name, r.servers[random.IntN(len(r.servers))])
			return nil
		},
	}
}

// reconcile does what the operator does once: it knows no more than what is recorded, but for
// the walk, which a restart loses.
func (r *registry) reconcile(random *rand.Rand) {
	if random.IntN(20) == 0 {
		r.walk = Walk{}
	}
	missing := ""
	for i, keys := range r.servers {
		if !keys.Equal(r.inUse) {
			missing = fmt.Sprintf("server %d has %v", i, keys)
		}
	}
	h := Handler{Operation: r.status, Now: time.Now(), Missing: missing, State: encryption.State{InUse: r.inUse, Desired: r.desired},
		Verified: r.verified,
		Verify: func(context.Context) error {
			if random.IntN(4) == 0 {
				return errors.New("a conflict")
			}
			r.verified = r.inUse[0].ID()
			return nil
		},
		Record: func(_ context.Context, keys encryption.Keys) error {
			if random.IntN(4) == 0 {
				return errors.New("a conflict")
			}
			if r.inUse[0] != keys[0] {
				r.verified = "unknown"
			}
			r.inUse, r.walk = keys, Walk{}
			return nil
		},
		Rewrite: func(ctx context.Context) (stored map[string]int, progress string, err error) {
			r.walk, stored, progress, err = r.walk.Continue(ctx, r.inUse, r.storage(random))
			return stored, progress, err
		},
		Readable: func(context.Context) (string, error) {
			if at := r.walk.Revision(); at == 0 || at > r.compacted {
				return "history", nil
			}
			return "", nil
		},
	}
	if r.status == nil {
		if h.Due() && missing == "" {
			r.status = h.Begin()
		}
		return
	}
	recorded := r.status.DeepCopy()
	driver := operation.Driver{Status: r.status, Recorded: recorded, Now: time.Now()}
	_, progress := driver.Advance(r.t.Context(), h)
	if !slices.Contains(r.seen, string(recorded.Phase)) {
		r.seen = append(r.seen, string(recorded.Phase))
	}
	if random.IntN(5) == 0 {
		r.status = recorded // it died before the status was written
		return
	}
	if progress != operation.UnderWay {
		r.status = nil
	}
}

// live has a server replaced, and clusters written.
func (r *registry) live(random *rand.Rand) {
	if random.IntN(3) == 0 {
		r.servers[random.IntN(len(r.servers))] = r.inUse
	}
	r.store(fmt.Sprintf("cluster-%d", random.IntN(7)), r.servers[random.IntN(len(r.servers))])
	if random.IntN(10) == 0 {
		r.compacted = r.revision - random.Int64N(r.revision-r.compacted+1)
	}
}

// readable returns an error when a server lacks the key of something that is stored.
func (r *registry) readable() error {
	for i, keys := range r.servers {
		for name, content := range r.stored {
			if id := encryption.Under([]byte(content)); !slices.Contains(keys.IDs(), id) {
				return fmt.Errorf("server %d has %v, and %s is stored under %s", i, keys, name, id)
			}
		}
		// What the write of a revision has replaced can be read at the one before it.
		for revision := r.compacted + 1; revision <= r.revision; revision++ {
			if id := r.history[revision-1]; id != "" && !slices.Contains(keys.IDs(), id) {
				return fmt.Errorf("server %d has %v, and what revision %d replaced was stored under %s; compacted is %d of %d", i, keys, revision, id, r.compacted, r.revision)
			}
		}
	}
	return nil
}

// TestChange changes what is desired at random, while servers are replaced, clusters written,
// and the operator dies or fails. Each server can read all that is stored at each moment, and
// in the end everything is stored under the key that is desired first, and no server has
// another key than those desired.
func TestChange(t *testing.T) {
	choices := []encryption.Keys{parsed(t, "identity"), parsed(t, "a"), parsed(t, "a", "identity"), parsed(t, "b"), parsed(t, "b", "a"), parsed(t, "c", "b", "a")}
	seen := map[string]bool{}
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 2))
		r := &registry{t: t, verified: "identity", inUse: choices[0], desired: choices[0], servers: slices.Repeat([]encryption.Keys{choices[0]}, 1+random.IntN(3)), stored: map[string]string{}}
		look := func(step int) {
			if err := r.readable(); err != nil {
				t.Fatalf("seed %d, step %d: %v; in use are %v, %+v", seed, step, err, r.inUse, r.status)
			}
		}
		act := func(step int) {
			r.reconcile(random)
			look(step)
			r.live(random)
			look(step)
		}
		for step := range 150 {
			if random.IntN(40) == 0 {
				r.status = nil // it got lost
			}
			if random.IntN(25) == 0 {
				r.desired = append(choices, nil)[random.IntN(len(choices)+1)]
			}
			act(step)
		}
		r.desired = choices[random.IntN(len(choices))]
		last := func() bool {
			return r.status == nil && r.verified == r.desired[0].ID() && r.inUse[0] == r.desired[0] && len(r.inUse) == len(r.desired) && !slices.ContainsFunc(r.servers, func(keys encryption.Keys) bool { return !keys.Equal(r.inUse) })
		}
		for step := 0; !last(); step++ {
			if step > 5000 {
				t.Fatalf("seed %d: %v does not become %v: %+v, servers have %v", seed, r.inUse, r.desired, r.status, r.servers)
			}
			act(step)
		}
		for name, content := range r.stored {
			if id := encryption.Under([]byte(content)); id != r.desired[0].ID() {
				t.Fatalf("seed %d: %s is stored under %s, desired is %v", seed, name, id, r.desired)
			}
		}
		for _, phase := range r.seen {
			seen[phase] = true
		}
	}
	for _, phase := range []string{"Preflight", "KeyAddition", "KeyActivation", "StorageMigration", "KeyRemoval"} {
		if !seen[phase] {
			t.Errorf("no change came to the phase %s", phase)
		}
	}
}

// TestDue begins a change when a backup was the last thing that needed a key.
func TestDue(t *testing.T) {
	h := Handler{Verified: "aescbc/b", State: encryption.State{InUse: parsed(t, "b", "a"), Desired: parsed(t, "b"), Needed: []string{"aescbc/a"}}}
	if h.Due() {
		t.Error("a backup needs the key that would be removed")
	}
	if h.State.Needed = nil; !h.Due() {
		t.Error("no backup needs the key any more, and it is not removed")
	}
}

// TestLookedAtAgain takes nothing for stored under the key that writes because a server has
// answered that it has stored it: a walk that has found any under another key is followed by one
// that begins with the first, until one has found none.
func TestLookedAtAgain(t *testing.T) {
	keys := parsed(t, "a")
	stored, lasts := value(parsed(t, "b")), 0
	storage := Storage{Over: func() bool { return true },
		Read: func(_ context.Context, _ string, each func(string, []byte) error) (etcd.Stored, error) {
			return etcd.Stored{Objects: 1, Last: "east"}, each("east", []byte(stored))
		},
		Rewrite: func(context.Context, string) error {
			if lasts++; lasts == 2 { // the first one did not last
				stored = value(keys)
			}
			return nil
		}}
	walk := Walk{}
	for i, want := range []bool{false, false, true} {
		next, found, progress, err := walk.Continue(t.Context(), keys, storage)
		if walk = next; err != nil || (found != nil) != want {
			t.Fatalf("walk %d, after %d rewrites: %v, %s, %v", i, lasts, found, progress, err)
		}
	}
}

// TestUnreadable is about a cluster that no server can read: it keeps what is not known to be
// stored again from being taken for it.
func TestUnreadable(t *testing.T) {
	keys := parsed(t, "a")
	storage := Storage{Over: func() bool { return true },
		Read: func(_ context.Context, _ string, each func(string, []byte) error) (etcd.Stored, error) {
			return etcd.Stored{Objects: 1}, each("east", []byte("k8s:enc:aescbc:v1:lost:x"))
		},
		Rewrite: func(context.Context, string) error { return errors.New("rewrite cluster east: no matching key") }}
	_, stored, progress, err := Walk{}.Continue(t.Context(), keys, storage)
	if stored != nil || progress != "0/1" || err == nil || !strings.Contains(err.Error(), "east") {
		t.Errorf("%v, %s, %v", stored, progress, err)
	}
}

// TestKept says which key is not dropped yet, though the spec no longer names it.
func TestKept(t *testing.T) {
	h := Handler{Operation: &operatorv1alpha1.Operation{}, State: encryption.State{InUse: parsed(t, "b", "a"), Desired: parsed(t, "b")}}
	if got := h.Waiting("x").Message; !strings.Contains(got, "x; the servers keep aescbc/a, which spec.server.encryption no longer names, until no cluster is stored under it") {
		t.Error(got)
	}
	h.State.Needed = []string{"aescbc/a"}
	if got := h.Waiting("x").Message; !strings.HasSuffix(got, "x; they read with aescbc/a as long as a ClusterRegistryBackup needs it") {
		t.Error(got)
	}
	h.State.Desired = parsed(t, "b", "a")
	if got := h.Waiting("x").Message; strings.Contains(got, "keep") {
		t.Error(got)
	}
}
