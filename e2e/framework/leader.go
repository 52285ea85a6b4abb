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

// MoveLeader hands the leadership over to another member, the one after the leader unless
// there is an election meanwhile.
func (e *Etcd) MoveLeader() {
	e.t.Helper()
	first, _ := e.Leader()
	Eventually(e.t, "etcd's leader to move", func(ctx context.Context) error {
		leader, _ := e.Leader()
		if leader != first {
			return nil
		}
		// A member that does not take over within an election timeout, as on a busy
		// computer, never does, and etcd keeps waiting for it.
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		status, err := e.Client.Status(ctx, e.Endpoints[(leader+1)%len(e.running)])
		if err != nil {
			return err
		}
		// Only the leader itself can hand over.
		if _, err := e.clientOf(e.Endpoints[leader]).MoveLeader(ctx, status.Header.MemberId); err != nil {
			return err
		}
		return fmt.Errorf("member %d has handed over", leader)
	})
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
