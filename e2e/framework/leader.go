package framework

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// WaitServing waits until a member takes part: it has caught up and knows the
// leader.
func (e *Etcd) WaitServing(i int) {
	e.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: e.TLS}}
	defer client.CloseIdleConnections()
	Eventually(e.t, e.Endpoints[i]+" to serve", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.Endpoints[i]+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz says %s", response.Status)
		}
		return nil
	})
}

// Leader returns the index of the leader, once all members that run agree on
// it, and the leader's term.
func (e *Etcd) Leader() (leader int, term uint64) {
	e.t.Helper()
	Eventually(e.t, "etcd's members to agree on a leader", func(ctx context.Context) error {
		ids, leaders := map[uint64]int{}, map[uint64]bool{}
		for i, m := range e.running {
			if m == nil {
				continue
			}
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			status, err := e.Client.Status(ctx, e.Endpoints[i])
			cancel()
			if err != nil {
				return err
			}
			ids[status.Header.MemberId], leaders[status.Leader] = i, true
			term = max(term, status.RaftTerm)
		}
		for id := range leaders {
			var known bool
			if leader, known = ids[id]; !known || len(leaders) > 1 {
				return fmt.Errorf("they name %v, of %v", leaders, ids)
			}
		}
		return nil
	})
	return leader, term
}

// MoveLeader hands the leadership over to the member after the leader.
func (e *Etcd) MoveLeader() {
	e.t.Helper()
	from, _ := e.Leader()
	to := (from + 1) % len(e.running)
	status, err := e.Client.Status(e.t.Context(), e.Endpoints[to])
	if err != nil {
		e.t.Fatal(err)
	}
	// Only the leader itself can hand over.
	client := e.clientOf(e.Endpoints[from])
	if _, err := client.MoveLeader(e.t.Context(), status.Header.MemberId); err != nil {
		e.t.Fatalf("move etcd's leader: %v", err)
	}
	if now, _ := e.Leader(); now != to {
		e.t.Fatalf("etcd's leader is member %d, not %d", now, to)
	}
}

// KillLeader ends the leader at once, waits until the others have a new one,
// and starts it again.
func (e *Etcd) KillLeader() {
	e.t.Helper()
	old, term := e.Leader()
	e.Kill(old)
	if now, newTerm := e.Leader(); newTerm <= term || now == old {
		e.t.Fatalf("member %d leads in term %d, after member %d in term %d", now, newTerm, old, term)
	}
	e.Start(old)
	e.WaitServing(old)
}
