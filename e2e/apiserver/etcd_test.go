package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// members are the pods of etcd.
var members = []string{"etcd-0", "etcd-1", "etcd-2"}

// etcdctl runs etcdctl in a member's pod, on the members with the given names.
func etcdctl(ctx context.Context, e *framework.Env, on []string, args ...string) (string, error) {
	var endpoints []string
	for _, member := range on {
		endpoints = append(endpoints, fmt.Sprintf("https://%s.etcd.%s.svc:2379", member, e.Namespace))
	}
	return e.Exec(ctx, on[0], append([]string{"etcdctl", "--endpoints=" + strings.Join(endpoints, ","),
		"--cacert=/tls/ca.crt", "--cert=/tls/tls.crt", "--key=/tls/tls.key"}, args...)...)
}

// leader returns which member leads, and the members' IDs, once all agree.
func leader(ctx context.Context, e *framework.Env) (leads string, ids map[string]uint64, err error) {
	out, err := etcdctl(ctx, e, members, "endpoint", "status", "--write-out=json")
	if err != nil {
		return "", nil, err
	}
	var statuses []struct {
		Endpoint string
		Status   struct {
			Header struct {
				MemberID uint64 `json:"member_id"`
			} `json:"header"`
			Leader uint64 `json:"leader"`
		}
	}
	if err := json.Unmarshal([]byte(out), &statuses); err != nil {
		return "", nil, fmt.Errorf("etcdctl endpoint status: %w: %s", err, out)
	}
	ids = map[string]uint64{}
	for _, s := range statuses {
		name, _, _ := strings.Cut(strings.TrimPrefix(s.Endpoint, "https://"), ".")
		ids[name] = s.Status.Header.MemberID
		if s.Status.Leader != statuses[0].Status.Leader {
			return "", nil, fmt.Errorf("the members follow different leaders: %s", out)
		}
	}
	for name, id := range ids {
		if id == statuses[0].Status.Leader {
			return name, ids, nil
		}
	}
	return "", nil, fmt.Errorf("no member leads: %s", out)
}

// moveLeader hands the leadership of etcd over to another member.
func moveLeader(t *testing.T, e *framework.Env) {
	t.Helper()
	var from, to string
	var ids map[string]uint64
	e.Eventually("etcd to have a leader", func(ctx context.Context) (err error) {
		from, ids, err = leader(ctx, e)
		return err
	})
	for _, to = range members {
		if to != from {
			break
		}
	}
	// A follower that lags under load does not take over in time, and etcd gives up.
	e.Eventually("etcd to have another leader", func(ctx context.Context) error {
		now, _, err := leader(ctx, e)
		if err != nil || now == to {
			return err
		}
		if out, err := etcdctl(ctx, e, []string{now}, "move-leader", strconv.FormatUint(ids[to], 16)); err != nil {
			return fmt.Errorf("move etcd's leader: %w: %s", err, out)
		}
		return fmt.Errorf("%s led, and was told to hand over to %s", now, to)
	})
}
