package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/clusterregistry/operator/internal/contract"
)

// OwnerKey is the key by which an external etcd belongs to one registry.
const OwnerKey = contract.OwnerKey

// Owner is the registry that an external etcd belongs to.
type Owner struct {
	// Host is its host cluster, by the UID of the namespace kube-system there.
	Host      string `json:"host"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID is the ClusterRegistry's.
	UID string `json:"uid"`
	// Since is when etcd became this registry's.
	Since time.Time `json:"since"`
}

// Owned is what an external etcd says of whose it is.
type Owned struct {
	Owner
	// Revision is the one at which that was written, zero where nothing is.
	Revision int64
	// Err says why it can't be understood.
	Err error
	// Managed is whether an operator runs this etcd for a registry, or it was made from the
	// data of such a one: that has a mark and no owner.
	Managed bool
}

// By reports whether etcd belongs to the ClusterRegistry with a UID.
func (o Owned) By(uid string) bool { return o.Revision > 0 && o.Err == nil && o.UID == uid }

// owned understands what etcd holds below OwnerKey.
func owned(kvs []*mvccpb.KeyValue) Owned {
	if len(kvs) == 0 {
		return Owned{}
	}
	out := Owned{Revision: kvs[0].ModRevision}
	if err := json.Unmarshal(kvs[0].Value, &out.Owner); err != nil {
		out.Err = err
	} else if out.Host == "" || out.Namespace == "" || out.Name == "" || out.UID == "" {
		out.Err = errors.New("it does not name a host cluster, a namespace, a name and a UID")
	}
	return out
}

// Owned reads which registry an external etcd belongs to.
func (a Access) Owned(ctx context.Context) (out Owned, err error) {
	err = a.any(ctx, func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.Get(ctx, OwnerKey)
		if err != nil {
			return err
		}
		if out = owned(answer.Kvs); out.Revision > 0 {
			return nil
		}
		marked, err := client.Get(ctx, MarkKey, clientv3.WithCountOnly())
		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			return nil // an etcd that has users is no operator's, and its user needs the servers' keys alone
		}
		out.Managed = err == nil && marked.Count > 0
		return err
	})
	if err != nil {
		return Owned{}, fmt.Errorf("read the key %s: %w", OwnerKey, err)
	}
	return out, nil
}

// Own makes an external etcd a registry's, if it still is whose it was seen to be, and returns
// whose it is then: of two that try at the same time, both get the one that was first. An answer
// that was lost does no harm, since the next member has what was written.
func (a Access) Own(ctx context.Context, owner Owner, seen Owned) (out Owned, err error) {
	content, err := json.Marshal(owner)
	if err != nil {
		return Owned{}, err
	}
	err = a.any(ctx, func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(OwnerKey), "=", seen.Revision)).
			Then(clientv3.OpPut(OwnerKey, string(content))).Else(clientv3.OpGet(OwnerKey)).Commit()
		switch {
		case err != nil:
		case answer.Succeeded:
			out = Owned{Owner: owner, Revision: answer.Header.Revision}
		default:
			out = owned(answer.Responses[0].GetResponseRange().GetKvs())
		}
		return err
	})
	if err != nil {
		return Owned{}, fmt.Errorf("write the key %s: %w", OwnerKey, err)
	}
	return out, nil
}

// Only returns the way to those members alone that were ready.
func (a Access) Only(ready State) Access {
	endpoints := map[string]string{}
	for _, member := range ready.serving() {
		endpoints[member.Name] = a.Endpoints[member.Name]
	}
	a.Endpoints = endpoints
	return a
}

// Disown makes an external etcd no one's, if it belongs to the ClusterRegistry with a UID.
func (a Access) Disown(ctx context.Context, uid string) error {
	seen, err := a.Owned(ctx)
	if err != nil || !seen.By(uid) {
		return err
	}
	err = a.any(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(OwnerKey), "=", seen.Revision)).Then(clientv3.OpDelete(OwnerKey)).Commit()
		return err
	})
	if err != nil {
		return fmt.Errorf("delete the key %s: %w", OwnerKey, err)
	}
	return nil
}
