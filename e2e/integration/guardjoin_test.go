package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// The addresses of members, which are their names, too: so the guard finds them
// without DNS.
const m0, m1, m2 = "127.0.0.30", "127.0.0.31", "127.0.0.32"

// guarded is an etcd whose members are started by the guard, as in their pods: from a
// record alone, with no list of members among their arguments.
type guarded struct {
	t               *testing.T
	etcd, etcdutl   string
	dir             string // the members' volumes
	ca              *framework.Authority
	pair            framework.Pair
	clients, peers  int // ports
	processes       map[string]*process
	mounted, passed map[string]string   // the record
	flags           map[string][]string // of etcd, by member
}

// process is a member's container.
type process struct {
	*exec.Cmd
	done chan struct{}
	lock sync.Mutex
	log  bytes.Buffer
	// end is what it says when it is to be killed, empty for never.
	end string
}

func (p *process) Write(b []byte) (int, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	n, err := p.log.Write(b)
	if p.end != "" && bytes.Contains(p.log.Bytes(), []byte(p.end)) {
		_ = p.Process.Kill()
	}
	return n, err
}

func (p *process) said() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.log.String()
}

func newGuarded(t *testing.T, version string) *guarded {
	t.Helper()
	g := &guarded{t: t, etcd: framework.Program(t, "etcd", version, "etcd"), etcdutl: framework.Program(t, "etcd", version, "etcdutl"), dir: t.TempDir(), ca: framework.NewAuthority(t, "etcd-ca"), processes: map[string]*process{}}
	g.pair = g.ca.Issue("member", nil, "127.0.0.1", m0, m1, m2) // members connect from the first
	g.clients, g.peers = framework.FreePort(t), framework.FreePort(t)
	t.Cleanup(func() {
		for name := range g.processes {
			g.kill(name)
		}
	})
	return g
}

func (g *guarded) peer(name string) string   { return fmt.Sprintf("https://%s:%d", name, g.peers) }
func (g *guarded) client(name string) string { return fmt.Sprintf("https://%s:%d", name, g.clients) }
func (g *guarded) volume(name string) string { return filepath.Join(g.dir, name) }
func (g *guarded) data(name string) string   { return filepath.Join(g.volume(name), "etcd") }

// record changes the record, both in the volume and in what kubelet passes.
func (g *guarded) record(keys map[string]string) {
	g.mounted = maps.Clone(g.mounted)
	if g.mounted == nil {
		g.mounted = map[string]string{}
	}
	maps.Copy(g.mounted, keys)
	g.passed = maps.Clone(g.mounted)
}

// start starts a member's container.
func (g *guarded) start(name string) *process {
	g.t.Helper()
	return g.startUntil(name, "")
}

// startUntil starts a member's container, which is killed when it says something.
func (g *guarded) startUntil(name, says string) *process {
	g.t.Helper()
	if err := os.MkdirAll(g.volume(name), 0o755); err != nil {
		g.t.Fatal(err)
	}
	identity := filepath.Join(g.dir, "identity-"+name)
	if err := os.RemoveAll(identity); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Mkdir(identity, 0o755); err != nil {
		g.t.Fatal(err)
	}
	for key, value := range g.mounted {
		if err := os.WriteFile(filepath.Join(identity, key), []byte(value), 0o644); err != nil {
			g.t.Fatal(err)
		}
	}
	p := &process{done: make(chan struct{}), end: says}
	p.Cmd = exec.Command(filepath.Join(framework.Root(g.t), "bin", "clusterregistry-helper"), "etcd-guard", //nolint:noctx // it outlives the test's context
		"--data-dir="+g.data(name), "--identity-dir="+identity, "--member="+name, "--etcdutl="+g.etcdutl, fmt.Sprintf("--peer-url=https://{member}:%d", g.peers), fmt.Sprintf("--client-url=https://{member}:%d", g.clients),
		"--cacert="+g.ca.File, "--cert="+g.pair.Cert, "--key="+g.pair.Key, "--", g.etcd,
		"--name="+name, "--data-dir="+g.data(name), "--initial-cluster-token=team/fleet", "--unsafe-no-fsync", "--log-level=warn",
		"--initial-advertise-peer-urls="+g.peer(name), "--listen-peer-urls="+g.peer(name), "--peer-client-cert-auth", "--peer-trusted-ca-file="+g.ca.File, "--peer-cert-file="+g.pair.Cert, "--peer-key-file="+g.pair.Key,
		"--advertise-client-urls="+g.client(name), "--listen-client-urls="+g.client(name), "--client-cert-auth", "--trusted-ca-file="+g.ca.File, "--cert-file="+g.pair.Cert, "--key-file="+g.pair.Key)
	p.Args = append(p.Args, g.flags[name]...)
	p.Env = []string{"ETCD_INITIAL_CLUSTER_STATE=" + g.passed["initial-cluster-state"], "RECORDED_JOINING=" + g.passed["joining"], "RECORDED_RECOVERY=" + g.passed["recovery"]}
	p.Stdout, p.Stderr = p, p
	if err := p.Start(); err != nil {
		g.t.Fatalf("%v; \"make build\" makes the program", err)
	}
	go func() { _ = p.Wait(); close(p.done) }()
	g.processes[name] = p
	return p
}

func (g *guarded) kill(name string) {
	_ = g.processes[name].Process.Kill()
	<-g.processes[name].done
}

// empties takes a member's data from it while its container is down.
func (g *guarded) empties(name string) {
	g.t.Helper()
	g.kill(name)
	if err := os.RemoveAll(g.volume(name)); err != nil {
		g.t.Fatal(err)
	}
}

// refuses starts the member m1, which the guard does not let start, and says why.
func (g *guarded) refuses(reason, says string) {
	g.t.Helper()
	g.ends(reason, m1, says, contract.GuardRefused)
}

// waits starts a member of which the guard can't know yet whether it may start.
func (g *guarded) waits(reason, name, says string) {
	g.t.Helper()
	g.ends(reason, name, says, contract.GuardWaits)
}

// waitsEmpty starts a member without data, which the guard lets start when others say that it joins.
func (g *guarded) waitsEmpty(reason, name, says string) {
	g.t.Helper()
	g.ends(reason, name, says, contract.GuardEmpty)
}

func (g *guarded) ends(reason, name, says string, code int) {
	g.t.Helper()
	if said := g.exits(reason, name, says, code); strings.Count(said, "\n") != 1 {
		g.t.Fatalf("%s: it says more than one line: %s", reason, said)
	}
	if entries, err := os.ReadDir(g.data(name)); err == nil && len(entries) > 0 {
		g.t.Errorf("%s: member %s has begun with data: %v", reason, name, entries)
	}
}

// use calls a member once it serves.
func (g *guarded) use(name, what string, do func(context.Context, *clientv3.Client) error) {
	g.t.Helper()
	certificate, err := tls.LoadX509KeyPair(g.pair.Cert, g.pair.Key)
	if err != nil {
		g.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(g.ca.PEM)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{g.client(name)}, TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots, MinVersion: tls.VersionTLS12}, Logger: zap.NewNop()})
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	framework.Eventually(g.t, what, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := do(ctx, client); err != nil {
			return fmt.Errorf("%w; %s says %s", err, name, g.processes[name].said())
		}
		return nil
	})
}

// learner adds a member to etcd, and returns its ID.
func (g *guarded) learner(name string) (id uint64) {
	g.t.Helper()
	g.use(m0, "etcd to let "+name+" in", adding(&id, g.peer(name), (*clientv3.Client).MemberAddAsLearner))
	return id
}

func (g *guarded) removes(id uint64) {
	g.t.Helper()
	g.use(m0, "etcd to let a member go", removing(id))
}

// serves waits until a member has what was written.
func (g *guarded) serves(name string) {
	g.t.Helper()
	g.use(name, name+" to serve", func(ctx context.Context, client *clientv3.Client) error {
		if answer, err := client.Get(ctx, "key"); err != nil || len(answer.Kvs) != 1 {
			return fmt.Errorf("it has %v: %w", answer, err)
		}
		return nil
	})
}

// promotes gives a learner a vote once it has caught up.
func (g *guarded) promotes(id uint64) {
	g.t.Helper()
	g.use(m0, "the learner to catch up", unlessDone(rpctypes.ErrMemberNotLearner, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberPromote(ctx, id)
		return err
	}))
}

// forms writes a key to an etcd that forms, and records who its members are.
func (g *guarded) forms(names ...string) {
	g.t.Helper()
	g.record(map[string]string{"initial-cluster-state": "new", "cluster-id": "", "members": strings.Join(names, ",")})
	for _, name := range names {
		g.start(name)
	}
	keys := map[string]string{"initial-cluster-state": "existing"}
	g.use(names[0], "etcd to form", func(ctx context.Context, client *clientv3.Client) error {
		if _, err := client.Put(ctx, "key", "value"); err != nil {
			return err
		}
		list, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		if len(list.Members) != len(names) {
			g.t.Fatalf("it has %d members, want %v", len(list.Members), names)
		}
		keys["cluster-id"] = fmt.Sprintf("%x", list.Header.ClusterId)
		for _, m := range list.Members {
			if m.Name == "" {
				return fmt.Errorf("member %x was not started yet", m.ID)
			}
			keys["member-id."+m.Name] = fmt.Sprintf("%x", m.ID)
		}
		return nil
	})
	g.record(keys)
}

// joins records m1 as a learner.
func (g *guarded) joins(id uint64) {
	g.record(map[string]string{"joining": m1, "member-id." + m1: fmt.Sprintf("%x", id)})
}

// TestMembersByRecord forms an etcd, and has members join it, by nothing but the record:
// a member that has lost its data never starts empty, however late the record is.
func TestMembersByRecord(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v3.6.14", "v3.7.3"} {
		t.Run("one becomes two/"+version, func(t *testing.T) {
			t.Parallel()
			testGuardedJoin(newGuarded(t, version))
		})
		t.Run("three/"+version, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, version)
			g.forms(m0, m1, m2)
			for _, name := range []string{m1, m2} {
				g.kill(name)
				g.start(name) // with data it needs no list of members
				g.serves(name)
			}
			g.empties(m1)
			g.refuses("a voter has lost its data", "has no data, but cluster")
			g.joins(recordedID(t, g, m1))
			g.refuses("a person has recorded that it joins, and not added it again", "has a vote in etcd: it must be removed, and be added again as a learner")
		})
	}
}

// recordedID returns the ID of a member.
func recordedID(t *testing.T, g *guarded, name string) (id uint64) {
	t.Helper()
	if _, err := fmt.Sscanf(g.mounted["member-id."+name], "%x", &id); err != nil {
		t.Fatal(err)
	}
	return id
}

func testGuardedJoin(g *guarded) {
	g.record(map[string]string{"initial-cluster-state": "new", "members": m1})
	g.waits("the record has other members", m0, "the key members of the record does not have this member")
	g.forms(m0)
	g.record(map[string]string{"members": m0 + "," + m1, "joining": m1})
	g.waitsEmpty("it was not added yet", m1, "not under which ID it was added to etcd")
	id := g.learner(m1)
	g.joins(id + 1)
	g.waitsEmpty("another ID is recorded", m1, "in member-id."+m1+", or wait")
	g.joins(id)
	delete(g.passed, "joining")
	g.refuses("what kubelet passes is late", "has no data, but")
	g.joins(id)
	g.start(m1)
	g.use(m1, "the learner to start", func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Get(ctx, "key", clientv3.WithSerializable())
		return err
	})
	g.use(m0, "the learner to say its name", func(ctx context.Context, client *clientv3.Client) error {
		list, err := client.MemberList(ctx)
		if err == nil && (len(list.Members) != 2 || list.Members[0].Name == "" || list.Members[1].Name == "") {
			err = fmt.Errorf("members %v", list.Members)
		}
		return err
	})
	g.empties(m1)
	g.refuses("the learner has lost its data", "has been started before, as "+m1)
	g.removes(id)
	g.refuses("it was removed", "do not list it")

	id = g.learner(m1)
	g.joins(id)
	g.start(m1)
	g.promotes(id)
	g.serves(m1)
	g.kill(m1)
	g.start(m1) // the record still lets it start empty, but it has data
	g.serves(m1)
	g.empties(m1)
	// One of two is no majority, so no one can say what it is.
	g.waitsEmpty("it has lost its data just after it got its vote, and the record is late", m1, "can't be asked whether it may join")
}
