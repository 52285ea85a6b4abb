package install

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// etcdIdentity asks a registry's etcd who it and its members are, by their names.
func etcdIdentity(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) (cluster string, members map[string]string) {
	t.Helper()
	var out string
	// While etcd elects a leader, it does not answer.
	e.Eventually("etcd to list its members", func(ctx context.Context) (err error) {
		out, err = e.Etcdctl(ctx, registry.Name+"-etcd-0", "member", "list", "--write-out=json")
		return err
	})
	var list struct {
		Header struct {
			Cluster uint64 `json:"cluster_id"`
		} `json:"header"`
		Members []struct {
			ID   uint64
			Name string
		} `json:"members"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("etcdctl member list: %v: %s", err, out)
	}
	members = map[string]string{}
	for _, member := range list.Members {
		members[member.Name] = fmt.Sprintf("%x", member.ID)
	}
	return fmt.Sprintf("%x", list.Header.Cluster), members
}
