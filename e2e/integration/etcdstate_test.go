package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestEtcdState observes real members of etcd, healthy and not.
func TestEtcdState(t *testing.T) {
	t.Parallel() // it waits most of the time
	t.Run("three", func(t *testing.T) {
		members := framework.StartEtcd(t, 3)
		access := accessTo(members)
		t.Run("refused", func(t *testing.T) { testStateRefused(t, members, access) })
		s, recorded := recordIdentity(t, access, 3)
		testStateMoves(t, access, s, recorded)
		testStateOfDead(t, members, access, recorded)
	})
	t.Run("one", func(t *testing.T) {
		access := accessTo(framework.StartEtcd(t, 1))
		s, recorded := recordIdentity(t, access, 1)
		if err := s.Gate(recorded, "m0"); !errors.Is(err, etcd.ErrSingleMember) {
			t.Errorf("the gate of a single member says %v", err)
		}
		if member, leads := s.Next([]string{"m0"}); member != "m0" || !leads {
			t.Errorf("the next is %q (leads: %t)", member, leads)
		}
		if err := access.MoveLeader(t.Context(), s); err == nil {
			t.Error("a single member handed its leadership over")
		}
	})
}

// TestEtcdAlarms is about an etcd whose members answer, and which still refuses
// what it is asked, or would with the next failure.
func TestEtcdAlarms(t *testing.T) {
	t.Parallel()
	t.Run("no space", func(t *testing.T) {
		members := framework.StartEtcd(t, 1, "--quota-backend-bytes=4194304")
		access := accessTo(members)
		recordIdentity(t, access, 1)
		if alarm, raised := access.Observe(t.Context()).Raised(); raised {
			t.Fatalf("etcd begins with %+v", alarm)
		}
		value := strings.Repeat("x", 1<<20)
		var put *clientv3.PutResponse
		for err := error(nil); !errors.Is(err, rpctypes.ErrNoSpace); {
			answer, putErr := members.Client.Put(t.Context(), "full", value)
			if err = putErr; err == nil {
				put = answer
			} else if !errors.Is(err, rpctypes.ErrNoSpace) {
				t.Fatal(err)
			}
		}
		noSpace := func(when string) {
			t.Helper()
			s := access.Observe(t.Context())
			alarm, raised := s.Raised()
			if !raised || alarm.Type != etcd.AlarmNoSpace || s.RaisedBy(alarm.Type) != "member m0" || s.Serving() != 1 {
				t.Errorf("%s: %+v", when, s)
			}
			if _, err := members.Client.Put(t.Context(), "small", "x"); !errors.Is(err, rpctypes.ErrNoSpace) {
				t.Errorf("%s a write is answered with %v", when, err)
			}
		}
		noSpace("when it is full")
		_, deleted := members.Client.Delete(t.Context(), "full")
		_, compacted := members.Client.Compact(t.Context(), put.Header.Revision, clientv3.WithCompactPhysical())
		_, defragmented := members.Client.Defragment(t.Context(), members.Endpoints[0])
		if err := errors.Join(deleted, compacted, defragmented); err != nil {
			t.Fatal(err)
		}
		noSpace("when there is room again")
		if _, err := members.Client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
			t.Fatal(err)
		}
		if s := access.Observe(t.Context()); len(s.Alarms) > 0 {
			t.Errorf("it is disarmed: %+v", s)
		}
		if _, err := members.Client.Put(t.Context(), "small", "x"); err != nil {
			t.Error(err)
		}
	})
	t.Run("corrupt", func(t *testing.T) {
		members := framework.StartEtcd(t, 3)
		access := accessTo(members)
		before, recorded := recordIdentity(t, access, 3)
		wrong, err := strconv.ParseUint(recorded.Members["m1"], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		request := &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: wrong, Alarm: pb.AlarmType_CORRUPT}
		framework.Eventually(t, "the alarm to be raised", func(ctx context.Context) error {
			_, err := pb.NewMaintenanceClient(members.Client.ActiveConnection()).Alarm(ctx, request)
			return err
		})
		framework.Eventually(t, "all members to have heard of it", func(ctx context.Context) error {
			s := access.Observe(ctx)
			if alarm, raised := s.Raised(); !raised || alarm.Type != etcd.AlarmCorrupt || s.RaisedBy(alarm.Type) != "member m1" || s.Serving() != 3 {
				return fmt.Errorf("%d serve, alarms %v", s.Serving(), s.Alarms)
			}
			for _, m := range s.Members {
				if m.Corrupt() != (m.Name == "m1") {
					return fmt.Errorf("member %s says %q", m.Name, m.Errors)
				}
			}
			// All read, and none writes.
			if _, err := members.Client.Put(ctx, "small", "x"); !errors.Is(err, rpctypes.ErrCorrupt) {
				return fmt.Errorf("a write is answered with %w", err)
			}
			return nil
		})
		if err := before.Check(recorded); err != nil {
			t.Error(err)
		}
	})
	t.Run("members", func(t *testing.T) {
		members := framework.StartEtcd(t, 3)
		access := accessTo(members)
		s, recorded := recordIdentity(t, access, 3)
		if err := s.Differs(recorded); err != nil {
			t.Fatalf("the list differs: %v", err)
		}
		differs := func(want string) {
			t.Helper()
			framework.Eventually(t, "the list to differ: "+want, func(ctx context.Context) error {
				if s = access.Observe(ctx); s.Serving() != 3 || s.ListErr != nil {
					return fmt.Errorf("%+v", s)
				}
				if err := s.Differs(recorded); err == nil || !strings.Contains(err.Error(), want) {
					return fmt.Errorf("it differs: %w", err)
				}
				return nil
			})
		}
		// A voter that is never started makes the majority three of four.
		const peer = "https://127.0.0.1:1"
		var added uint64
		use(t, members, "a member to be added", adding(&added, peer, (*clientv3.Client).MemberAdd))
		differs("at https://127.0.0.1:1 was added to etcd but has not been started")
		use(t, members, "a member to be removed", removing(added))
		framework.Eventually(t, "the list to be the recorded one", func(ctx context.Context) error { return access.Observe(ctx).Differs(recorded) })
		use(t, members, "a learner to be added", adding(&added, peer, (*clientv3.Client).MemberAddAsLearner))
		differs("has not been started")
	})
}

func accessTo(e *framework.Etcd) etcd.Access {
	// These machines are shared, and only the dead should be found slow.
	access := etcd.Access{Endpoints: map[string]string{}, TLS: e.TLS, Timeout: 10 * time.Second}
	for i, endpoint := range e.Endpoints {
		access.Endpoints[fmt.Sprintf("m%d", i)] = endpoint
	}
	return access
}

// recordIdentity waits until etcd passes the gate by its own identity, and
// checks what is known of every member then.
func recordIdentity(t *testing.T, access etcd.Access, members int) (s etcd.State, recorded etcd.Identity) {
	t.Helper()
	framework.Eventually(t, "etcd to be healthy", func(ctx context.Context) error {
		s = access.Observe(ctx)
		var ok bool
		if recorded, ok = s.Identity(); !ok {
			return fmt.Errorf("no identity: %+v", s)
		}
		if s.Serving() != members {
			return fmt.Errorf("%d of %d members serve: %s", s.Serving(), members, s.Failures())
		}
		if err := s.Gate(recorded, "m0"); err != nil && !errors.Is(err, etcd.ErrSingleMember) {
			return err
		}
		return nil
	})
	if len(s.List) != members || len(recorded.Members) != members || s.Serving() != members || len(s.Alarms) != 0 || len(recorded.ClusterID) < 8 {
		t.Errorf("of %d members: %+v, recorded %v", members, s, recorded)
	}
	leaders := 0
	for _, m := range s.Members {
		if m.Leads() {
			leaders++
		}
		if !strings.HasPrefix(m.Version, "3.") || m.Term == 0 || m.CommittedIndex == 0 || m.AppliedIndex == 0 || m.DBSize == 0 || m.Learner || len(m.Errors) != 0 {
			t.Errorf("a member: %+v", m)
		}
	}
	if leaders != 1 {
		t.Errorf("%d members lead", leaders)
	}
	return s, recorded
}

// testStateRefused reaches for healthy members in the wrong way.
func testStateRefused(t *testing.T, members *framework.Etcd, access etcd.Access) {
	pair := members.CA.IssueExpired("registry", nil)
	expired, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	other := x509.NewCertPool()
	other.AppendCertsFromPEM(framework.NewAuthority(t, "other-ca").PEM)
	_, port, _ := strings.Cut(strings.TrimPrefix(access.Endpoints["m0"], "https://"), ":")
	for reason, test := range map[string]struct {
		endpoint string // m0's own when empty
		change   func(*tls.Config)
		want     []string
	}{
		"another CA": {
			change: func(c *tls.Config) { c.RootCAs = other },
			want:   []string{"that the CA given for etcd did not sign", "certificate signed by unknown authority"}},
		"no client certificate": {
			change: func(c *tls.Config) { c.Certificates = nil },
			want:   []string{"refuses the client certificate", "certificate required"}},
		"an expired client certificate": {
			change: func(c *tls.Config) { c.Certificates = []tls.Certificate{expired} },
			want:   []string{"refuses the client certificate", "remote error: tls: "}},
		"a host name that is not in its certificate": {
			endpoint: "https://localhost:" + port,
			want:     []string{"a certificate that is not valid for its name", "is valid for " + framework.EtcdName + ", not localhost"}},
	} {
		t.Run(reason, func(t *testing.T) {
			wrong := etcd.Access{Endpoints: map[string]string{"m0": access.Endpoints["m0"]}, TLS: access.TLS.Clone(), Timeout: access.Timeout}
			if test.endpoint != "" {
				wrong.Endpoints["m0"] = test.endpoint
			}
			if test.change != nil {
				test.change(wrong.TLS)
			}
			err := wrong.Observe(t.Context()).Serves()
			if err == nil {
				t.Fatal("it serves")
			}
			for _, want := range append(test.want, "m0 ("+wrong.Endpoints["m0"]+")") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
		})
	}
}

// testStateMoves rolls nothing, but asks who is next until only the leader is
// left, which then hands over.
func testStateMoves(t *testing.T, access etcd.Access, s etcd.State, recorded etcd.Identity) {
	t.Helper()
	outdated := []string{"m0", "m1", "m2"}
	for range 2 {
		member, leads := s.Next(outdated)
		if leads {
			t.Fatalf("of %v %s is next, which leads", outdated, member)
		}
		outdated = slices.DeleteFunc(outdated, func(name string) bool { return name == member })
	}
	leader, leads := s.Next(outdated)
	if !leads {
		t.Fatalf("the last is %s, which does not lead", leader)
	}
	framework.Eventually(t, "the members to follow another leader", func(ctx context.Context) error {
		now := access.Observe(ctx)
		if _, leads := now.Next([]string{leader}); leads {
			return errors.Join(fmt.Errorf("%s still leads", leader), access.MoveLeader(ctx, now))
		}
		return now.Gate(recorded, leader)
	})
	framework.Eventually(t, "one that leads no more to refuse to hand over", func(ctx context.Context) error {
		err := access.MoveLeader(ctx, s)
		if err == nil { // it may have been elected again
			return errors.New("it handed over")
		}
		if !strings.Contains(err.Error(), "not leader") {
			return err
		}
		return nil
	})
}

// testStateOfDead kills one member, then another.
func testStateOfDead(t *testing.T, members *framework.Etcd, access etcd.Access, recorded etcd.Identity) {
	t.Helper()
	members.Kill(1)
	var s etcd.State
	framework.Eventually(t, "the others to serve", func(ctx context.Context) error {
		s = access.Observe(ctx)
		if s.Serving() != 2 {
			return fmt.Errorf("%d serve: %w", s.Serving(), errors.Join(s.Members[0].Err, s.Members[2].Err))
		}
		return s.Gate(recorded, "m1") // it serves nobody, so it can be replaced
	})
	if err := s.Serves(); err != nil {
		t.Error(err)
	}
	if _, ok := s.Identity(); ok {
		t.Error("there is an identity to record, though one member is dead")
	}
	err := s.Gate(recorded, "m0")
	if want := "member m1 (" + access.Endpoints["m1"] + ") refuses connections"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the gate says %v, want %q", err, want)
	}

	members.Kill(2)
	access.Timeout = time.Second
	framework.Eventually(t, "the last to serve no more", func(ctx context.Context) error {
		s = access.Observe(ctx)
		if left := s.Members[0]; left.Err == nil || left.Leader != "" || left.ID == "" { // which it says first
			return fmt.Errorf("%+v", left)
		}
		if killed := s.Members[2]; killed.Err == nil || !strings.Contains(killed.Err.Error(), "refuses") {
			return fmt.Errorf("%+v", killed)
		}
		return nil
	})
	if err := s.Serves(); err == nil || !strings.Contains(err.Error(), "m0 ("+access.Endpoints["m0"]+") has no leader") || !strings.Contains(err.Error(), "m2 ("+access.Endpoints["m2"]+") refuses") {
		t.Errorf("without a majority: %v", err)
	}
	if err := s.Check(recorded); err != nil {
		t.Error(err)
	}
}
