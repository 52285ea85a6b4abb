package server

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/kubernetes"
	baseversion "k8s.io/component-base/version"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apiserver/openapi"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	install.Install(scheme)
	utilruntime.Must(cluster.AddFieldLabelConversions(scheme))
	// Every server needs the types that have no group: options and statuses.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
}

// Config is a server that is not checked and completed yet.
type Config struct {
	generic *genericserver.RecommendedConfig
}

type completedConfig struct{ generic genericserver.CompletedConfig }

// CompletedConfig is a complete configuration; only Complete makes one.
type CompletedConfig struct{ *completedConfig }

// Config turns the options into a configuration. It reads certificates and
// asks the host for what the mode needs.
func (o *Options) Config(ctx context.Context) (*Config, error) {
	config := genericserver.NewRecommendedConfig(codecs)
	namer := openapinamer.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIConfig.Info.Version = "Cluster Registry", baseversion.Get().GitVersion
	config.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info = config.OpenAPIConfig.Info

	if err := o.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil); err != nil {
		return nil, fmt.Errorf("a serving certificate: %w", err)
	}
	// First: the others read what it sets.
	if err := o.Run.ApplyTo(&config.Config); err != nil {
		return nil, err
	}
	if err := o.askHost(ctx, config); err != nil {
		return nil, err
	}
	if err := o.Recommended.ApplyTo(config); err != nil {
		return nil, err
	}
	// Through its own ApplyTo, EtcdOptions would ignore the media type.
	storage := o.Recommended.Etcd.StorageConfig
	storage.StorageObjectCountTracker = config.StorageObjectCountTracker
	factory := serverstorage.NewDefaultStorageFactory(storage, runtime.ContentTypeProtobuf, codecs,
		serverstorage.NewDefaultResourceEncodingConfig(scheme), serverstorage.NewResourceConfig(), nil)
	config.RESTOptionsGetter = o.Recommended.Etcd.CreateRESTOptionsGetter(factory, config.ResourceTransformers)
	drainConnections(&config.Config)
	return &Config{config}, nil
}

// askHost checks that the host can be trusted with authentication, and fits
// admission to what it serves.
func (o *Options) askHost(ctx context.Context, config *genericserver.RecommendedConfig) error {
	if err := o.Recommended.CoreAPI.ApplyTo(config); err != nil {
		return fmt.Errorf("connect to the host cluster: %w; outside of a pod, --kubeconfig names the way", err)
	}
	client, err := kubernetes.NewForConfig(config.ClientConfig)
	if err != nil {
		return err
	}
	if err := checkFrontProxy(ctx, client); err != nil {
		return err
	}
	off, err := probeHost(ctx, client, o.TolerateMissingPermissions)
	if err != nil {
		return err
	}
	for _, plugin := range off {
		if plugin == fairness {
			// The limits on requests in flight take its place.
			o.Recommended.Features.EnablePriorityAndFairness = false
			continue
		}
		o.Recommended.Admission.DefaultOffPlugins.Insert(plugin)
	}
	return nil
}

// Complete fills what follows from the rest.
func (c *Config) Complete() CompletedConfig {
	return CompletedConfig{&completedConfig{c.generic.Complete()}}
}

// New makes the server.
func (c CompletedConfig) New() (*genericserver.GenericAPIServer, error) {
	server, err := c.generic.New("clusterregistry-apiserver", genericserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	clusters, status, err := cluster.New(scheme, c.generic.RESTOptionsGetter)
	if err != nil {
		return nil, err
	}
	group := genericserver.NewDefaultAPIGroupInfo(clusterregistry.GroupName, scheme, metav1.ParameterCodec, codecs)
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"clusters":        clusters,
		"clusters/status": status,
	}
	return server, server.InstallAPIGroup(&group)
}
