package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/storage/bundle"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
	"github.com/clusterregistry/operator/apiserver/storage/clusterset"
	"github.com/clusterregistry/operator/apiserver/storage/heartbeat"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
	"github.com/clusterregistry/operator/apiserver/storage/rbac"
	"github.com/clusterregistry/operator/apiserver/storage/redial"
	"github.com/clusterregistry/operator/apiserver/storage/remainder"
	"github.com/clusterregistry/operator/apiserver/storage/retry"
	"github.com/clusterregistry/operator/apiserver/storage/stored"
	"github.com/clusterregistry/operator/apiserver/storage/watchcache"
	"github.com/clusterregistry/operator/internal/contract"
)

// storage sets where objects are kept, and how they are encoded and encrypted there.
func (o *Options) storage(config *genericserver.Config) error {
	// Of the health checks, too, which go by the options.
	o.Recommended.Etcd.StorageConfig.Transport.EgressLookup = redial.Lookup(config.DrainedNotify())
	// Through its ApplyTo, EtcdOptions would ignore the media type.
	storage := o.Recommended.Etcd.StorageConfig
	storage.StorageObjectCountTracker = config.StorageObjectCountTracker
	encoding := serverstorage.NewDefaultResourceEncodingConfig(scheme)
	for resource, version := range map[string]string{"clusters": o.StorageVersion, "clustersets": v1beta1.SchemeGroupVersion.Version, "clusterheartbeats": v1beta1.SchemeGroupVersion.Version} {
		encoding.SetResourceEncoding(clusterregistry.Resource(resource), schema.GroupVersion{Group: clusterregistry.GroupName, Version: version}, clusterregistry.SchemeGroupVersion)
	}
	factory := serverstorage.NewDefaultStorageFactory(storage, runtime.ContentTypeProtobuf, codecs, encoding, serverstorage.NewResourceConfig(), nil)
	if err := o.Recommended.Etcd.ApplyWithStorageFactoryTo(factory, config); err != nil {
		return err
	}
	config.RESTOptionsGetter = bundle.Getter(remainder.Getter(retry.Getter(lock.Getter(watchcache.Getter(config.RESTOptionsGetter, o.Recommended.Etcd)))))
	return nil
}

// storageFlags are the names of the flags that say where objects are kept, and how they
// are encrypted.
var storageFlags = []string{"etcd-servers", "etcd-prefix", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "encryption-provider-config"}

// AddStorageFlags adds the flags that VerifyStorage goes by.
func (o *Options) AddStorageFlags(fs *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.Recommended.Etcd.AddFlags(all)
	for _, name := range storageFlags {
		fs.AddFlag(all.Lookup(name))
	}
}

// VerifyStorage reads all that a registry has in etcd, in whichever mode it was written,
// and reports what a server with these options can't read. It writes nothing: no server is
// started that would compact etcd, or bring back the bootstrap roles. Where inClear is true,
// what is not encrypted is read whatever the encryption configuration says.
func (o *Options) VerifyStorage(ctx context.Context, inClear bool) (contract.Stored, error) {
	etcd := o.Recommended.Etcd
	if len(etcd.StorageConfig.Transport.ServerList) == 0 {
		return contract.Stored{}, errors.New("--etcd-servers is required")
	}
	etcd.EnableWatchCache, etcd.SkipHealthEndpoints = false, true
	etcd.StorageConfig.CompactionInterval, etcd.StorageConfig.CountMetricPollPeriod, etcd.StorageConfig.DBMetricPollInterval = 0, 0, 0
	config := genericserver.NewRecommendedConfig(codecs)
	if err := o.storage(&config.Config); err != nil {
		return contract.Stored{}, err
	}
	if inClear {
		config.RESTOptionsGetter = stored.InClear(config.RESTOptionsGetter)
	}
	var resources []stored.Resource
	defer func() {
		for _, r := range resources {
			r.Store.Destroy()
		}
	}()
	stores, err := stores(config.RESTOptionsGetter)
	for _, store := range stores {
		resources = append(resources, stored.Resource{Store: store})
	}
	if err != nil {
		return contract.Stored{}, err
	}
	for i, r := range resources {
		options, err := config.RESTOptionsGetter.GetRESTOptions(r.Store.DefaultQualifiedResource, r.Store.NewFunc())
		if err != nil {
			return contract.Stored{}, fmt.Errorf("storage of %s: %w", r.Store.DefaultQualifiedResource, err)
		}
		resources[i].Config = options.StorageConfig
	}
	return stored.Read(ctx, resources)
}

// stores returns the storage of everything that servers keep in etcd, of both modes.
func stores(options generic.RESTOptionsGetter) ([]*genericregistry.Store, error) {
	clusters, _, err := cluster.New(scheme, options, rest.Unsupported, nil, cluster.Guard{})
	if err != nil {
		return nil, err
	}
	all := []*genericregistry.Store{clusters.Store}
	sets, err := clusterset.New(scheme, options, rest.Unsupported)
	if err != nil {
		return all, err
	}
	all = append(all, sets.Store)
	beats, err := heartbeat.New(scheme, options, nil)
	if err != nil {
		return all, err
	}
	all = append(all, beats.Store)
	access, err := rbac.New(scheme, options)
	if err != nil {
		return all, err
	}
	return append(all, access.Roles, access.Bindings), nil
}
