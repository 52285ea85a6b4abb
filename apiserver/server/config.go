package server

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	baseversion "k8s.io/component-base/version"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/openapi"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
	"github.com/clusterregistry/operator/apiserver/storage/clusterset"
	"github.com/clusterregistry/operator/apiserver/storage/heartbeat"
	"github.com/clusterregistry/operator/apiserver/storage/rbac"
	"github.com/clusterregistry/operator/apiserver/storage/reviews"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	install.Install(scheme)
	utilruntime.Must(cluster.AddFieldLabelConversions(scheme))
	utilruntime.Must(heartbeat.AddFieldLabelConversions(scheme))
	utilruntime.Must(rbac.AddToScheme(scheme))
	utilruntime.Must(reviews.AddToScheme(scheme))
	// Every server needs the types that have no group: options and statuses.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
}

// Config is a server that is not checked and completed yet.
type Config struct {
	generic *genericserver.RecommendedConfig
	// collection is what the garbage collector does, if there is one.
	collection rest.GarbageCollectionPolicy
	// guarded is what becomes of a write that changes guarded fields without permission.
	guarded cluster.GuardedFields
	// visible is which clusters a caller sees.
	visible visible
	// extend adds what a mode serves besides clusters. It may be nil.
	extend func(*genericserver.GenericAPIServer) error
}

type completedConfig struct {
	generic    genericserver.CompletedConfig
	collection rest.GarbageCollectionPolicy
	guarded    cluster.GuardedFields
	visible    visible
	extend     func(*genericserver.GenericAPIServer) error
}

// CompletedConfig is a complete configuration; only Complete makes one.
type CompletedConfig struct{ *completedConfig }

// Config turns the options into a configuration. It reads certificates and
// asks the host for what the mode needs.
func (o *Options) Config(ctx context.Context) (*Config, error) {
	config := &Config{generic: genericserver.NewRecommendedConfig(codecs), collection: rest.DeleteDependents, guarded: o.GuardedFields, visible: o.visible()}
	if err := o.common(&config.generic.Config); err != nil {
		return nil, err
	}
	var err error
	switch o.Mode {
	case Aggregated:
		err = o.aggregated(ctx, config)
	case Independent:
		err = o.independent(ctx, config)
	default:
		err = fmt.Errorf("mode %q is unknown", o.Mode)
	}
	if err != nil {
		return nil, err
	}
	config.generic.AdmissionControl = cluster.Complete(config.generic.AdmissionControl)
	return config, nil
}

// common applies what is the same in every mode.
func (o *Options) common(config *genericserver.Config) error {
	describe(config)
	if err := o.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		return fmt.Errorf("a serving certificate: %w", err)
	}
	// First: the others read what it sets.
	if err := o.Run.ApplyTo(config); err != nil {
		return err
	}
	if err := o.storage(config); err != nil {
		return err
	}
	if err := o.Recommended.EgressSelector.ApplyTo(config); err != nil {
		return err
	}
	if err := o.Recommended.Traces.ApplyTo(config.EgressSelector, config); err != nil {
		return err
	}
	if err := o.Recommended.SecureServing.ApplyToConfig(config); err != nil {
		return err
	}
	keepSpare(config.SecureServing)
	if err := o.Recommended.Audit.ApplyTo(config); err != nil {
		return err
	}
	drainConnections(config)
	answerInTime(config)
	return nil
}

// describe sets how the API is described. Server-side apply merges by it.
func describe(config *genericserver.Config) {
	namer := openapinamer.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIConfig.Info.Version = "Cluster Registry", baseversion.Get().GitVersion
	config.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info = config.OpenAPIConfig.Info
}

// Complete fills what follows from the rest.
func (c *Config) Complete() CompletedConfig {
	refuseApply(&c.generic.Config)
	boundWatches(&c.generic.Config)
	boundBodies(&c.generic.Config)
	boundSelectors(&c.generic.Config)
	return CompletedConfig{&completedConfig{c.generic.Complete(), c.collection, c.guarded, c.visible, c.extend}}
}

// New makes the server.
func (c CompletedConfig) New() (*genericserver.GenericAPIServer, error) {
	server, err := c.generic.New("clusterregistry-apiserver", genericserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	if err := c.serveRegistry(server); err != nil {
		return nil, err
	}
	if c.extend == nil {
		return server, nil
	}
	return server, c.extend(server)
}

// serveRegistry adds the registry's own API group, and has the server count the clusters
// in each set and remove the heartbeats of those that are gone.
func (c CompletedConfig) serveRegistry(server *genericserver.GenericAPIServer) error {
	sets, err := clusterset.New(scheme, c.generic.RESTOptionsGetter, c.collection)
	if err != nil {
		return err
	}
	clusters, status, err := cluster.New(scheme, c.generic.RESTOptionsGetter, c.collection, sets, cluster.Guard{Fields: c.guarded, Authorizer: server.Authorizer})
	if err != nil {
		return err
	}
	sets.Members = clusters.InSet
	if err := server.AddPostStartHook("clustersets", func(hook genericserver.PostStartHookContext) error {
		go sets.Count(hook.Context, clusters)
		return nil
	}); err != nil {
		return err
	}
	beats, err := heartbeat.New(scheme, c.generic.RESTOptionsGetter, clusters)
	if err != nil {
		return err
	}
	if err := server.AddPostStartHook("clusterheartbeats", func(hook genericserver.PostStartHookContext) error {
		go beats.Sweep(hook.Context)
		return nil
	}); err != nil {
		return err
	}
	old, shownBeats, err := c.visible.resources(c.generic.RESTOptionsGetter, server.Authorizer, clusters, status, sets, beats)
	if err != nil {
		return err
	}
	full := maps.Clone(old)
	full["clustersets"], full["clusterheartbeats"] = sets, shownBeats
	return serve(server, clusterregistry.GroupName, map[string]resources{v1alpha1.SchemeGroupVersion.Version: old, v1beta1.SchemeGroupVersion.Version: full})
}

// resources are those of one version of an API group, by name.
type resources = map[string]rest.Storage

// serve adds an API group with its versions.
func serve(server *genericserver.GenericAPIServer, name string, versions map[string]resources) error {
	group := genericserver.NewDefaultAPIGroupInfo(name, scheme, metav1.ParameterCodec, codecs)
	// The group's own serializer sends large lists in pieces.
	group.NegotiatedSerializer = cluster.RefuseClusterName(group.NegotiatedSerializer)
	group.VersionedResourcesStorageMap = versions
	return server.InstallAPIGroup(&group)
}

// serveVersion adds an API group that has one version.
func serveVersion(server *genericserver.GenericAPIServer, of resources, version schema.GroupVersion) error {
	return serve(server, version.Group, map[string]resources{version.Version: of})
}
