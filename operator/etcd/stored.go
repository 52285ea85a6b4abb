package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Stored is in which version objects are stored.
type Stored struct {
	// Total counts the objects, and Outdated names those that are not stored in the
	// version that was asked for.
	Total    int
	Outdated []string
}

// page is how many objects are read from etcd at a time.
const page = 500

// Stored reads every object below a prefix of keys, and looks at the version of
// the API in which it is stored, such as example.org/v1. All of it is read at
// one revision. The error says that etcd can't be asked, or which key holds
// something else than an object.
func (a Access) Stored(ctx context.Context, prefix, version string) (Stored, error) {
	var out Stored
	key, end, revision := prefix, clientv3.GetPrefixRangeEnd(prefix), int64(0)
	for {
		var answer *clientv3.GetResponse
		err := a.any(ctx, func(ctx context.Context, client *clientv3.Client) (err error) {
			answer, err = client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
			return err
		})
		if err != nil {
			return Stored{}, err
		}
		for _, kv := range answer.Kvs {
			stored, err := storedVersion(kv.Value)
			if err != nil {
				return Stored{}, fmt.Errorf("what etcd holds under %s %w", kv.Key, err)
			}
			out.Total++
			if stored != version {
				out.Outdated = append(out.Outdated, path.Base(string(kv.Key)))
			}
		}
		if !answer.More {
			return out, nil
		}
		key, revision = string(answer.Kvs[len(answer.Kvs)-1].Key)+"\x00", answer.Header.Revision
	}
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

// storedVersion returns the version of the API in which an object is stored, in
// protobuf or in JSON.
func storedVersion(content []byte) (string, error) {
	var meta metav1.TypeMeta
	if content, is := bytes.CutPrefix(content, envelope); is {
		unknown := runtime.Unknown{}
		if err := unknown.Unmarshal(content); err != nil {
			return "", fmt.Errorf("is damaged: %w", err)
		}
		meta.APIVersion = unknown.APIVersion
	} else if err := json.Unmarshal(content, &meta); err != nil {
		return "", fmt.Errorf("is neither protobuf of Kubernetes nor JSON: %w", err)
	}
	if meta.APIVersion == "" {
		return "", errors.New("does not tell the version of its API")
	}
	return meta.APIVersion, nil
}
