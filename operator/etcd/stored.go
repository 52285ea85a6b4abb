package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Stored is a page of stored objects.
type Stored struct {
	// Objects counts those of the page.
	Objects int
	// Last is the name of the last object of the page, after which the next page
	// begins, and Left counts the objects of all pages to come.
	Last string
	Left int
	// Revision is etcd's when it answered: what was written before is in the page.
	Revision int64
}

// page is how many objects are read from etcd at a time, if they are not too large
// for one answer.
const page = 500

// Stored reads a page of the objects below a prefix of keys, beginning after the
// one of a name, or with the first. Each is given to a function once, by its name and
// with what etcd holds. The error says that etcd can't be asked, or which key holds
// something else than an object.
func (a Access) Stored(ctx context.Context, prefix, after string, each func(name string, content []byte) error) (Stored, error) {
	key, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	if after != "" {
		key = prefix + after + "\x00"
	}
	var answer *clientv3.GetResponse
	limit := int64(page)
	ask := func(ctx context.Context, client *clientv3.Client) (err error) {
		answer, err = client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(limit))
		return err
	}
	err := a.any(ctx, ask)
	for status.Code(err) == codes.ResourceExhausted && limit > 1 {
		limit = max(1, limit/8)
		err = a.any(ctx, ask)
	}
	if err != nil {
		return Stored{}, err
	}
	out := Stored{Objects: len(answer.Kvs), Last: after, Left: int(answer.Count) - len(answer.Kvs), Revision: answer.Header.Revision}
	for _, kv := range answer.Kvs {
		out.Last = strings.TrimPrefix(string(kv.Key), prefix)
		if err := each(out.Last, kv.Value); err != nil {
			return Stored{}, fmt.Errorf("what etcd holds under %s %w", kv.Key, err)
		}
	}
	return out, nil
}

// Compacted reports whether etcd has dropped the history before a revision, so that no one can
// read what was stored before it and is not any more, in a list, or a watch that begins there.
func (a Access) Compacted(ctx context.Context, revision int64) (bool, error) {
	if revision < 2 {
		return true, nil // there is nothing before it
	}
	err := a.any(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Get(ctx, "\x00", clientv3.WithRev(revision-1), clientv3.WithCountOnly())
		return err
	})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return true, nil
	}
	return false, err
}

// any lets do talk to one member after the other, until it succeeds with one.
func (a Access) any(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	var errs []error
	for name := range a.Endpoints {
		err := a.call(ctx, name, do)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// envelope begins what Kubernetes' API servers store in protobuf; a
// runtime.Unknown follows (k8s.io/apimachinery, runtime/serializer/protobuf).
var envelope = []byte("k8s\x00")

// StoredVersion returns the version of the API in which an object is stored, such as
// example.org/v1, in protobuf or in JSON.
func StoredVersion(content []byte) (string, error) {
	var meta metav1.TypeMeta
	if content, is := bytes.CutPrefix(content, envelope); is {
		unknown := runtime.Unknown{}
		if err := unknown.Unmarshal(content); err != nil {
			return "", fmt.Errorf("is damaged: %w", err)
		}
		meta.APIVersion = unknown.APIVersion
	} else if err := json.Unmarshal(content, &meta); err != nil {
		return "", fmt.Errorf("is neither Kubernetes protobuf nor JSON: %w", err)
	}
	if meta.APIVersion == "" {
		return "", errors.New("does not name its API version")
	}
	return meta.APIVersion, nil
}
