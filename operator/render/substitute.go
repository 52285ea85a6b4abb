package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// token is a name in angle brackets in the manifests.
var token = regexp.MustCompile(`<[a-z0-9-]+>`)

// values returns what stands for each name.
func values(in Input) map[string]string {
	r, endpoints, voters := in.Registry, in.Endpoints, in.Voters
	if endpoints == nil {
		endpoints = in.Members
	}
	if voters == nil {
		voters = in.Members
	}
	out := map[string]string{
		"<name>":                     r.Name,
		"<namespace>":                r.Namespace,
		"<operator-namespace>":       in.Environment.Namespace,
		"<cluster-domain>":           in.Environment.ClusterDomain,
		"<host-version>":             in.HostVersion,
		"<stores>":                   in.Release.Stores,
		"<pull-policy>":              string(r.Spec.Images.PullPolicy),
		"<duration>":                 r.Spec.TLS.Duration.Duration.String(),
		"<etcd-endpoints>":           strings.Join(EtcdEndpoints(r, endpoints), ","),
		"<etcd-voters>":              strings.Join(EtcdEndpoints(r, voters), ","),
		"<etcd-client-secret>":       EtcdClientSecret(r),
		"<etcd-ca>":                  string(in.Trust.Etcd),
		"<etcd-trust-digest>":        digest(in.Trust.Etcd),
		"<etcd-client-ca>":           string(in.Trust.EtcdClients),
		"<etcd-client-trust-digest>": digest(in.Trust.EtcdClients),
		"<serving-ca>":               string(in.Trust.Serving),
		"<serving-ca-base64>":        encoded(in.Trust.Serving),
		"<client-ca>":                string(in.Trust.Clients),
		"<controller-files-digest>":  digest(fmt.Append(nil, controllerFiles(Asked(r)))),
		"<etcd-initial-cluster>":     initialCluster(EtcdMembers(r, in.Members)),
	}
	out[less] = "<"
	if in.Encryption != nil {
		out["<encryption-digest>"], out["<encryption-base64>"] = in.Encryption.Digest, encoded(in.Encryption.Configuration)
	}
	if in.Audit != nil {
		settings, policy, webhook := in.Audit.content()
		out["<audit-digest>"] = in.Audit.Digest()
		out["<audit-settings-base64>"], out["<audit-policy-base64>"], out["<audit-webhook-base64>"] = encoded(settings), encoded(policy), encoded(webhook)
	}
	snapshots, _ := snapshotsClaim(in)
	out["<snapshot-name>"], out["<snapshots-storage>"] = in.Snapshot, snapshots.String()
	out["<backup-task>"], out["<backup-name>"], out["<backup-uid>"] = in.Backup.Task, in.Backup.Name, in.Backup.UID
	out["<backup-release>"], out["<backup-scratch>"] = in.Release.Version, backupScratch(r, in.Volumes)
	restoreValues(in, out)
	size, quota := etcdTemplate(in), EtcdQuota(r, in.Volumes)
	out["<etcd-storage>"], out["<etcd-quota>"] = size.String(), strconv.FormatInt(quota, 10)
	return out
}

func encoded(content []byte) string { return base64.StdEncoding.EncodeToString(content) }

func initialCluster(members []EtcdMember) string {
	var out []string
	for _, member := range members {
		out = append(out, member.Name+"="+member.PeerURL())
	}
	return strings.Join(out, ",")
}

// digest returns a short hash, for objects that change with content elsewhere.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// less stands for "<" in what is not of the manifests.
const less = "<less>"

// literal returns operations in JSON. In their values, which come from the spec,
// nothing is a name to be replaced: they are after the substitution as they are
// here.
func literal(operations []operation) ([]byte, error) {
	for i := range operations {
		text, err := json.Marshal(operations[i].Value)
		if err != nil {
			return nil, err
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber() // as it was
		var tree any
		if err := decoder.Decode(&tree); err != nil {
			return nil, err
		}
		operations[i].Value = escaped(tree)
	}
	return json.Marshal(operations)
}

// escaped returns a tree of JSON whose strings are the same after substitute.
func escaped(tree any) any {
	switch node := tree.(type) {
	case string:
		return strings.ReplaceAll(node, "<", less)
	case []any:
		for i := range node {
			node[i] = escaped(node[i])
		}
	case map[string]any:
		for key := range node {
			node[key] = escaped(node[key])
		}
	}
	return tree
}

// substitute returns a tree of JSON with names replaced in all its strings. What
// a value contains is not substituted again.
func substitute(tree any, values map[string]string) (any, error) {
	switch node := tree.(type) {
	case string:
		if !strings.Contains(node, "<") {
			return node, nil // as most are
		}
		var unknown error
		out := token.ReplaceAllStringFunc(node, func(name string) string {
			value, ok := values[name]
			if !ok {
				unknown = fmt.Errorf("the manifests name %s, which has no value", name)
			}
			return value
		})
		return out, unknown
	case []any:
		for i := range node {
			var err error
			if node[i], err = substitute(node[i], values); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range node {
			var err error
			if node[key], err = substitute(node[key], values); err != nil {
				return nil, err
			}
		}
	}
	return tree, nil
}
