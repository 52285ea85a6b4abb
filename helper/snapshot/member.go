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

// choose returns the leader if it can be told and answers, else the first member
// that answers. The error says of each why it is not the one.
func (e Etcd) choose(ctx context.Context) (member, error) {
	var chosen member
	var errs []error
	for _, endpoint := range e.Endpoints {
		m, err := e.ask(ctx, endpoint)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", endpoint, err))
		case chosen.endpoint == "" || m.leads:
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
	const timeout = 10 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	defer cancel()
	// A connection that fails ends this: the client would continue trying, and then
	// say no more than that its time is up.
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	doing := "it does not answer"
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", doing, err)
		}
	}()
	config, err := e.config(endpoint, fail)
	if err != nil {
		return member{}, err
	}
	client, err := clientv3.New(config)
	if err != nil {
		return member{}, err
	}
	defer func() { _ = client.Close() }() // all that it was for is done
	// The client's own Status has a connection to itself, whose end would be taken
	// for that of the one that reads.
	status, err := pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return member{}, err
	}
	doing = "it answers, but does not complete a linearizable read"
	read, err := client.Get(ctx, "any", clientv3.WithCountOnly())
	if err != nil {
		return member{}, err
	}
	return member{
		endpoint: endpoint, leads: status.Leader == status.Header.MemberId,
		version: strings.TrimPrefix(status.Version, "v"), size: status.DbSize, revision: read.Header.Revision,
	}, nil
}
