package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// member is a member that a snapshot can be taken from.
type member struct {
	endpoint string
	leads    bool
	// version is that of etcd, and size that of its database in bytes.
	version string
	size    int64
	// revision is at least that of every write which was acknowledged before the
	// member was asked.
	revision int64
}

// choose returns the first member that answers and is not the leader, which has enough
// to do, else the leader. The error says of each why it is not the one.
func (e Etcd) choose(ctx context.Context) (member, error) {
	var chosen member
	var errs []error
	for _, endpoint := range e.Endpoints {
		m, err := e.ask(ctx, endpoint)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", endpoint, err))
		case chosen.endpoint == "" || chosen.leads:
			chosen = m
		}
	}
	switch {
	case chosen.endpoint != "":
		return chosen, nil
	case len(errs) == 0:
		errs = append(errs, errors.New("no endpoint is given"))
	}
	return member{}, fmt.Errorf("no etcd member can be asked for a snapshot: %w", errors.Join(errs...))
}

// ask asks a member how it is, and has it catch up with what the others know: a
// linearizable read is answered only then.
func (e Etcd) ask(ctx context.Context, endpoint string) (m member, err error) {
	doing := "it does not answer"
	err = e.call(ctx, endpoint, 10*time.Second, func(ctx context.Context, client *clientv3.Client) error {
		// The client's own Status has a connection to itself, whose end would be taken
		// for that of the one that reads.
		status, err := pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		doing = "it answers, but does not complete a linearizable read"
		read, err := client.Get(ctx, "any", clientv3.WithCountOnly())
		if err != nil {
			return err
		}
		m = member{
			endpoint: endpoint, leads: status.Leader == status.Header.MemberId,
			version: strings.TrimPrefix(status.Version, "v"), size: status.DbSize, revision: read.Header.Revision,
		}
		return nil
	})
	if err != nil {
		return member{}, fmt.Errorf("%s: %w", doing, err)
	}
	return m, nil
}

// call has one member asked, within a time. A connection that fails ends it: the client
// would continue trying, and then say no more than that its time is up.
func (e Etcd) call(ctx context.Context, endpoint string, timeout time.Duration, ask func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	config, err := e.config(endpoint, fail)
	if err != nil {
		return err
	}
	client, err := clientv3.New(config)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all that it was for is done
	err = ask(ctx, client)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
