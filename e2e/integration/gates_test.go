package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestFeatureGates turns on what is off by default, by the flag of a server with a watch cache and
// etcd: lists by shard say so, answers are in CBOR, and objects are stored as ever.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
	etcd := framework.StartEtcd(t, 1)
	_, _, config := independentOn(t, etcd, "--feature-gates=ShardedListAndWatch=true,CBORServingAndStorage=true")
	admin := setsOf(t, config)
	for _, name := range strings.Split("abcdefghijklmnopqrst", "") {
		if _, err := admin.put(t.Context(), name, ""); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, half := range []string{"'0x0000000000000000', '0x8000000000000000'", "'0x8000000000000000', '0x10000000000000000'"} {
		for _, version := range []string{"", "&resourceVersion=0"} {
			shard := "shardRange(object.metadata.uid, " + half + ")"
			var list v1beta1.ClusterList
			content := fetch(t, config, "?shardSelector="+url.QueryEscape(shard)+version, "application/json")
			if err := json.Unmarshal(content, &list); err != nil {
				t.Fatal(err)
			}
			if list.ShardInfo == nil || list.ShardInfo.Selector == "" || len(list.Items) == 0 || len(list.Items) == 20 {
				t.Errorf("half %s%s has %d clusters, and says that its shard is %v", half, version, len(list.Items), list.ShardInfo)
			}
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
		}
	}
	slices.Sort(names)
	if len(names) != 40 || len(slices.Compact(names)) != 20 {
		t.Errorf("the halves, read twice, have %q", names)
	}
	// What tells that a document is in CBOR.
	if content := fetch(t, config, "", runtime.ContentTypeCBOR); !strings.HasPrefix(string(content), "\xd9\xd9\xf7") {
		t.Errorf("a list in CBOR begins with %.20q", content)
	}
	stored, err := etcd.Client.Get(t.Context(), "/registry/clusterregistry.k8s.io/clusters/a")
	if err != nil || len(stored.Kvs) != 1 || !strings.HasPrefix(string(stored.Kvs[0].Value), "k8s\x00") {
		t.Errorf("stored is %v, %v", stored, err)
	}
	if _, err := admin.Clusters().Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// fetch returns a list of clusters in an encoding.
func fetch(t *testing.T, config *rest.Config, query, accept string) []byte {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/apis/clusterregistry.k8s.io/v1beta1/clusters"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s in %s: %d %.200s %v", query, accept, response.StatusCode, content, err)
	}
	return content
}
