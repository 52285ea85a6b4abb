package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestEtcdState observes real members of etcd, healthy and not.
func TestEtcdState(t *testing.T) {
	t.Parallel() // it waits most of the time
	t.Run("three", func(t *testing.T) {
		members := framework.StartEtcd(t, 3)
		access := accessTo(members)
		s, recorded := recordIdentity(t, access, 3)
		t.Run("refused", func(t *testing.T) { testStateRefused(t, members, access) })
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
			want:     []string{"a certificate that is not valid for its name", "wanted to match localhost"}},
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
	if err := access.MoveLeader(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the members to follow another leader", func(ctx context.Context) error {
		now := access.Observe(ctx)
		if _, leads := now.Next([]string{leader}); leads {
			return fmt.Errorf("%s still leads", leader)
		}
		return now.Gate(recorded, leader)
	})
	if err := access.MoveLeader(t.Context(), s); err == nil || !strings.Contains(err.Error(), "not leader") {
		t.Errorf("one that leads no more handed over: %v", err)
	}
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
		if s.Members[0].Err == nil || s.Members[0].Leader != "" {
			return fmt.Errorf("%+v", s.Members[0])
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
