// Package addons holds what a cluster needs beside Kubernetes itself (DNS,
// volumes, cert-manager), applies it and waits until it serves.
package addons

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed coredns.yaml storage.yaml
var manifests embed.FS

// Values fill the manifests.
type Values struct {
	// Image returns the full reference of one of the platform's images.
	Image func(name string) string
	// DNSAddress is the cluster DNS's Service address.
	DNSAddress string
	// Volumes is the folder for volumes on each node.
	Volumes string
}

// Local returns the manifests of cluster DNS and of the default StorageClass.
func Local(values Values) ([]byte, error) {
	templates, err := template.ParseFS(manifests, "*.yaml")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, t := range templates.Templates() {
		if err := t.Execute(&out, values); err != nil {
			return nil, err
		}
		out.WriteString("\n---\n")
	}
	return out.Bytes(), nil
}

// fieldOwner owns what Apply writes.
const fieldOwner = client.FieldOwner("hack-cluster")

// Apply applies manifests (YAML documents) with server-side apply, in their
// order. An object whose kind is not served yet, because its
// CustomResourceDefinition is among the manifests, is retried until ctx ends.
func Apply(ctx context.Context, c client.Client, manifests []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		what := strings.TrimSpace(object.GetKind() + " " + object.GetName())
		if err := Wait(ctx, "apply "+what, func(ctx context.Context) error {
			err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership)
			if err != nil && !meta.IsNoMatchError(err) {
				return Stop(err)
			}
			return err
		}); err != nil {
			return err
		}
	}
}

// stopError is an error that waiting can't mend.
type stopError struct{ error }

// Stop marks an error that Wait returns at once.
func Stop(err error) error { return stopError{err} }

// Wait calls check until it returns nil. When ctx ends first, or check returns
// an error marked by Stop, the error says what was awaited and why check last
// failed.
func Wait(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		last := check(ctx)
		if last == nil {
			return nil
		}
		if stop := (stopError{}); errors.As(last, &stop) {
			return fmt.Errorf("%s: %w", what, stop.error)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting: %s: %w (%w)", what, last, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
