package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/internal/contract"
)

// errCompacted is about a revision that etcd was compacted past while it was read.
var errCompacted = errors.New("etcd was compacted in between")

const (
	// pageKeys is how many keys are read at a time: the member reads their values, too.
	pageKeys = 500
	// reading is how long it may take to read all keys, or to hash them.
	reading = 5 * time.Minute
)

// Content reads from etcd what is below a prefix, which ends with a slash: at a revision,
// or, when that is zero, with all that was acknowledged before.
func (e Etcd) Content(ctx context.Context, prefix string, revision int64) (contract.Content, error) {
	from, err := e.choose(ctx)
	if err != nil {
		return contract.Content{}, err
	}
	return e.content(ctx, from, prefix, revision)
}

// content is Content of one member.
func (e Etcd) content(ctx context.Context, from member, prefix string, revision int64) (contract.Content, error) {
	found := contents{prefix: prefix}
	err := e.call(ctx, from.endpoint, reading, func(ctx context.Context, client *clientv3.Client) error {
		for next := prefix; next != ""; {
			answer, err := client.Get(ctx, next, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithRev(revision), clientv3.WithLimit(pageKeys), clientv3.WithKeysOnly())
			if errors.Is(err, rpctypes.ErrCompacted) {
				return errCompacted
			}
			if err != nil {
				return err
			}
			if revision == 0 {
				revision = answer.Header.Revision
			}
			next = ""
			for _, kv := range answer.Kvs {
				found.add(string(kv.Key), kv.ModRevision)
				if answer.More {
					next = string(kv.Key) + "\x00"
				}
			}
		}
		return nil
	})
	if err != nil {
		return contract.Content{}, fmt.Errorf("read the keys below %s from %s: %w", prefix, from.endpoint, err)
	}
	return found.Content, nil
}

// contents counts keys below a prefix.
type contents struct {
	prefix string
	contract.Content
}

func (c *contents) add(key string, modRevision int64) {
	resource, _, _ := strings.Cut(strings.TrimPrefix(key, c.prefix), "/")
	if c.Keys == nil {
		c.Keys = map[string]int64{}
	}
	c.Keys[resource]++
	c.HighestModRevision = max(c.HighestModRevision, modRevision)
}
