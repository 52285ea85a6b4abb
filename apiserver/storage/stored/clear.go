package stored

import (
	"bytes"
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/value"
)

// InClear returns a getter whose options make storages that read what is not encrypted also where
// the encryption configuration does not have identity. They are to read only.
func InClear(options generic.RESTOptionsGetter) generic.RESTOptionsGetter { return getter{options} }

type getter struct{ generic.RESTOptionsGetter }

// GetRESTOptions returns the options of the getter below, with another transformer.
func (g getter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || options.StorageConfig == nil || options.StorageConfig.Transformer == nil {
		return options, err
	}
	config := *options.StorageConfig
	config.Transformer = inClear{config.Transformer}
	options.StorageConfig = &config
	return options, nil
}

// inClear reads what is not encrypted as it is.
type inClear struct{ value.Transformer }

// TransformFromStorage decrypts what is encrypted.
func (c inClear) TransformFromStorage(ctx context.Context, data []byte, at value.Context) ([]byte, bool, error) {
	if !bytes.HasPrefix(data, []byte("k8s:enc:")) {
		return data, false, nil
	}
	return c.Transformer.TransformFromStorage(ctx, data, at)
}
