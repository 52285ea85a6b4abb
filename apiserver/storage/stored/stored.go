// Package stored reads all that a registry has in etcd, as its servers read it, and reports
// what they can't read. It writes nothing.
package stored

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/etcdclient"
)

// page is how many values are read at a time.
const page = 500

// Resource is a resource that is served.
type Resource struct {
	// Store serves it.
	Store *genericregistry.Store
	// Config says how its values are encoded and encrypted.
	Config *storagebackend.ConfigForResource
}

// Name is the resource's name in the keys of etcd.
func (r Resource) Name() string { return r.Config.GroupResource.Resource }

// Read reads all that is below the prefix of the storage of some resources, and lists each
// resource as clients do. The error is about this attempt; what can't be read, the report
// says.
func Read(ctx context.Context, resources []Resource) (contract.Stored, error) {
	f := findings{Stored: contract.Stored{Objects: map[string]int64{}}}
	for _, r := range resources {
		f.Objects[r.Name()] = 0
	}
	if err := f.readValues(ctx, resources); err != nil {
		return contract.Stored{}, err
	}
	for _, r := range resources {
		if f.unreadable(r.Name()) {
			continue // a list of it fails, and why is known
		}
		listed, err := list(ctx, r.Store)
		if err != nil {
			return contract.Stored{}, fmt.Errorf("list %s: %w", r.Name(), err)
		}
		if want := f.Objects[r.Name()]; listed != want {
			return contract.Stored{}, fmt.Errorf("the server lists %d %s, and etcd has %d: does something write to it?", listed, r.Name(), want)
		}
	}
	slices.Sort(f.EncryptionKeys)
	slices.Sort(f.MissingKeys)
	return f.Stored, nil
}

// readValues reads each value below the prefix once, at one revision.
func (f *findings) readValues(ctx context.Context, resources []Resource) error {
	config := resources[0].Config // they share an etcd and a prefix
	client, reason, err := connect(config.Transport)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing is left to be sent
	prefix := strings.TrimSuffix(config.Prefix, "/") + "/"
	var revision int64
	for next := prefix; next != ""; {
		answer, err := client.Get(ctx, next, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithRev(revision), clientv3.WithLimit(page))
		if err != nil {
			return fmt.Errorf("read from etcd at %s: %w", config.Transport.ServerList[0], errors.Join(err, reason()))
		}
		revision, next = answer.Header.Revision, ""
		for _, kv := range answer.Kvs {
			f.add(ctx, resources, prefix, string(kv.Key), kv.Value)
			if answer.More {
				next = string(kv.Key) + "\x00"
			}
		}
	}
	return nil
}

// connect returns a client of the first server, and why it last failed to connect.
func connect(to storagebackend.TransportConfig) (client *clientv3.Client, reason func() error, err error) {
	if len(to.ServerList) == 0 {
		return nil, nil, errors.New("--etcd-servers is required")
	}
	tls, err := etcdclient.Files{CA: to.TrustedCAFile, Cert: to.CertFile, Key: to.KeyFile}.TLS()
	if err != nil {
		return nil, nil, err
	}
	var lock sync.Mutex
	var last error
	config, err := etcdclient.Member{URL: to.ServerList[0], TLS: tls}.Config(func(err error) {
		lock.Lock()
		defer lock.Unlock()
		last = err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("--etcd-servers=%s: %w", to.ServerList[0], err)
	}
	client, err = clientv3.New(config)
	return client, func() error {
		lock.Lock()
		defer lock.Unlock()
		return last
	}, err
}

// list lists a resource page by page, and returns how many objects there are.
func list(ctx context.Context, store *genericregistry.Store) (int64, error) {
	var count int64
	options := &internalversion.ListOptions{Limit: page}
	for {
		object, err := store.List(ctx, options)
		if err != nil {
			return 0, err
		}
		count += int64(meta.LenList(object))
		if options.Continue, err = continuation(object); err != nil || options.Continue == "" {
			return count, err
		}
	}
}

func continuation(object runtime.Object) (string, error) {
	list, err := meta.ListAccessor(object)
	if err != nil {
		return "", err
	}
	return list.GetContinue(), nil
}
