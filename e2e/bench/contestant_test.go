package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/scheme"
)

// encoding is how objects are written on the wire.
type encoding struct {
	name, media string
	encoder     runtime.Encoder
}

var (
	inJSON     = encoding{"JSON", "application/json", json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})}
	inProtobuf = encoding{"protobuf", "application/vnd.kubernetes.protobuf", protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)}
)

// contestant is one way to clusters, in one encoding.
type contestant struct {
	site
	encoding
	name string
	// administrator is true when the requests are those of one.
	administrator bool
	// base is the index of the contestant that this one is compared with.
	base int
	// root is the API group's, url the collection's.
	root, url string
	// connections are independent: each has a transport of its own.
	connections []*http.Client
	// populates is true for one contestant of each storage.
	populates bool
	// ca is a certificate authority in PEM, to fill objects with.
	ca []byte
}

// processes are the servers, and after them the members of their etcd.
func (c *contestant) processes() []*process { return slices.Concat(c.servers, c.stores) }

// body returns the encoded object of the given name. The number decides what
// selectors see of it: each value is one of a hundred.
func (c *contestant) body(name string, number int) ([]byte, error) {
	return runtime.Encode(c.encoder, &v1alpha1.Cluster{
		TypeMeta:   metav1.TypeMeta{Kind: "Cluster", APIVersion: c.group + "/v1alpha1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team(number)}},
		Spec: v1alpha1.ClusterSpec{
			KubernetesAPIEndpoints: v1alpha1.KubernetesAPIEndpoints{CABundle: c.ca, ServerEndpoints: []v1alpha1.ServerAddressByClientCIDR{
				{ClientCIDR: "10.0.0.0/8", ServerAddress: name + ".internal.example:6443"}, {ServerAddress: "https://" + name + ".example"}}},
			AuthInfo: v1alpha1.AuthInfo{Providers: []v1alpha1.AuthProviderConfig{{Name: "people", Type: v1alpha1.AuthProviderType{Name: "oidc"},
				Config: map[string]string{"idp-issuer-url": "https://idp.example", "client-id": "kubernetes"}}}},
		},
	})
}

// identified returns an encoded object with an id, in v1beta1, which says as much as body's.
func (c *contestant) identified(name string, number int) ([]byte, error) {
	return runtime.Encode(c.encoder, &v1beta1.Cluster{
		TypeMeta:   metav1.TypeMeta{Kind: "Cluster", APIVersion: c.group + "/v1beta1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team(number)}},
		Spec: v1beta1.ClusterSpec{
			ID: name + ".id.example",
			Endpoints: []v1beta1.Endpoint{
				{Name: "inside", URL: "https://" + name + ".internal.example:6443", ClientCIDRs: []string{"10.0.0.0/8"}, CABundle: c.ca},
				{Name: "outside", URL: "https://" + name + ".example"}},
			Access: []v1beta1.Access{{Name: "people", Audience: v1beta1.AudienceUser, OIDC: &v1beta1.OIDCAccess{IssuerURL: "https://idp.example", ClientID: "kubernetes"}}},
		},
	})
}

// note returns a merge patch that changes an object, each number in another way.
func note(number int64) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{"example.com/note":"%012d"}}}`, number)
}

func team(number int) string              { return fmt.Sprintf("team-%02d", number%100) }
func kubernetesVersion(number int) string { return fmt.Sprintf("v1.%d.0", number%100) }

// get returns the request for a path below the collection, with a query.
func (c *contestant) get(ctx context.Context, path string, query url.Values) (*http.Request, error) {
	return c.request(ctx, http.MethodGet, path+"?"+query.Encode(), "", nil)
}

// create returns the request that creates a cluster.
func (c *contestant) create(ctx context.Context, name string, number int) (*http.Request, error) {
	body, err := c.body(name, number)
	if err != nil {
		return nil, err
	}
	return c.request(ctx, http.MethodPost, "", c.media, body)
}

// createIdentified returns the request that creates a cluster with an id, in v1beta1.
func (c *contestant) createIdentified(ctx context.Context, name string, number int) (*http.Request, error) {
	body, err := c.identified(name, number)
	if err != nil {
		return nil, err
	}
	request, err := c.request(ctx, http.MethodPost, "", c.media, body)
	if err != nil {
		return nil, err
	}
	request.URL.Path = strings.Replace(request.URL.Path, "/v1alpha1/", "/v1beta1/", 1)
	return request, nil
}

func (c *contestant) request(ctx context.Context, method, path, contentType string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", c.media)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return request, nil
}

// do sends a request and reads the answer to its end, without decoding it: the
// client shares the computer with the servers. What it costs is returned.
func (c *contestant) do(connection *http.Client, request *http.Request) (time.Duration, error) {
	start := time.Now()
	response, err := c.open(connection, request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return time.Since(start), err
}

// open sends a request and expects success in the contestant's own encoding.
// The caller closes the body.
func (c *contestant) open(connection *http.Client, request *http.Request) (*http.Response, error) {
	response, err := connection.Do(request)
	if err != nil {
		return nil, err
	}
	if got := response.Header.Get("Content-Type"); response.StatusCode >= http.StatusBadRequest || !strings.HasPrefix(got, c.media) {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s: %s %s: status %s, %s: %s", c.name, request.Method, request.URL, response.Status, got, said)
	}
	return response, nil
}

// parallel runs do on all connections at once; the test fails when one fails.
func (c *contestant) parallel(t *testing.T, do func(connection *http.Client) error) {
	t.Helper()
	var group errgroup.Group
	for _, connection := range c.connections {
		group.Go(func() error { return do(connection) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// each calls do for the numbers from first to before last, one after the other
// on each connection.
func (c *contestant) each(t *testing.T, first, last int, do func(connection *http.Client, number int) error) {
	t.Helper()
	var next atomic.Int64
	next.Store(int64(first))
	c.parallel(t, func(connection *http.Client) error {
		for n := int(next.Add(1) - 1); n < last; n = int(next.Add(1) - 1) {
			if err := do(connection, n); err != nil {
				return err
			}
		}
		return nil
	})
}
