package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/etcdclient"
)

// Cluster is how the members of an etcd are reached.
type Cluster struct {
	// PeerURL and ClientURL are where a member serves members and clients, with {member}
	// in place of its name.
	PeerURL, ClientURL string
	// Files open the members to clients.
	etcdclient.Files
	// Patience is for how long members that do not answer are asked again; zero means
	// 30 s.
	Patience time.Duration
}

// listing is etcd's own list of its members.
type listing struct {
	cluster uint64
	members []listed
}

type listed struct {
	id uint64
	// name is empty as long as the member has not been started.
	name    string
	peers   []string
	learner bool
}

// url returns the URL of a member.
func url(pattern, member string) string { return strings.ReplaceAll(pattern, "{member}", member) }

// initialCluster returns the value of etcd's --initial-cluster of a new etcd.
func (c Cluster) initialCluster(members []string) string {
	var out []string
	for _, name := range members {
		out = append(out, name+"="+url(c.PeerURL, name))
	}
	return strings.Join(out, ",")
}

// list asks the named members for the list, until one answers that knows it from a
// majority: what a member that is cut off believes does not count.
func (c Cluster) list(ctx context.Context, members []string) (listing, error) {
	if len(members) == 0 {
		return listing{}, errors.New("no other member is recorded")
	}
	patience := c.Patience
	if patience == 0 {
		patience = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var errs []error
		for _, name := range members {
			found, err := c.ask(ctx, name)
			if err == nil {
				return found, nil
			}
			errs = append(errs, fmt.Errorf("member %s: %w", name, err))
		}
		select {
		case <-ctx.Done():
			return listing{}, errors.Join(errs...)
		case <-time.After(2 * time.Second):
		}
	}
}

// ask asks one member for the list.
func (c Cluster) ask(ctx context.Context, member string) (listing, error) {
	const timeout = 5 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	defer cancel()
	// A connection that fails ends this: the client would continue trying, and then
	// say no more than that its time is up.
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	trust, err := c.TLS() // each time: the files may be renewed meanwhile
	if err != nil {
		return listing{}, err
	}
	config, err := etcdclient.Member{URL: url(c.ClientURL, member), TLS: trust}.Config(fail)
	if err != nil {
		return listing{}, err
	}
	client, err := clientv3.New(config)
	if err != nil {
		return listing{}, err
	}
	defer func() { _ = client.Close() }() // all that it was for is done
	answer, err := client.MemberList(ctx) // linearizable
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return listing{}, err
	}
	found := listing{cluster: answer.Header.ClusterId}
	for _, m := range answer.Members {
		found.members = append(found.members, listed{m.ID, m.Name, m.PeerURLs, m.IsLearner})
	}
	return found, nil
}

// join returns the value of etcd's --initial-cluster of a member that joins empty: the
// members of this moment, and no other ones. It may join if it has never had data that
// others count on: a learner has no vote, and one without a name was never started.
func (l listing) join(member, peerURL string, r record) (string, error) {
	if r.cluster != 0 && l.cluster != r.cluster {
		return "", fmt.Errorf("the members that run are of cluster %x", l.cluster)
	}
	if err := l.late(member, peerURL, r); err != nil {
		return "", err
	}
	var out []string
	found := false
	for _, m := range l.members {
		switch {
		case m.id != r.member && m.name == "":
			return "", fmt.Errorf("member ID %x at %s was added to etcd, too, and never started: only one may join at a time, so remove one of the two", m.id, strings.Join(m.peers, ", "))
		case m.id != r.member:
		case !m.learner:
			return "", fmt.Errorf("member ID %x has a vote in etcd: it must be removed, and be added again as a learner", m.id)
		case m.name != "":
			return "", fmt.Errorf("member ID %x has been started before, as %s: it must be removed, and be added again under another ID", m.id, m.name)
		case !slices.Equal(m.peers, []string{peerURL}):
			return "", fmt.Errorf("member ID %x was added to etcd at %s and not at %s: it must be removed, and be added again", m.id, strings.Join(m.peers, ", "), peerURL)
		default:
			found, m.name = true, member
		}
		for _, peer := range m.peers {
			out = append(out, m.name+"="+peer)
		}
	}
	if !found {
		return "", errors.New("the members that run do not list it, or not under this ID")
	}
	return strings.Join(out, ","), nil
}

// late is about a member that was added to etcd under another ID than the recorded one, which
// etcd does not list any more: the record that is mounted is older than that, or no one has
// written the new ID down.
func (l listing) late(member, peerURL string, r record) error {
	at := func(m listed) bool { return m.name == "" && slices.Equal(m.peers, []string{peerURL}) }
	i := slices.IndexFunc(l.members, at)
	if i < 0 || slices.ContainsFunc(l.members, func(m listed) bool { return m.id == r.member }) {
		return nil
	}
	added := l.members[i]
	if !added.learner {
		return fmt.Errorf("the members that run list it as member ID %x, which has a vote in etcd: it must be removed, and be added again as a learner", added.id)
	}
	return undecided("it is recorded as member ID %x, and the members that run list it as %x: record %x in %s%s, or wait, where that is recorded already: what is mounted may be two minutes late", r.member, added.id, added.id, contract.RecordMember, member)
}
