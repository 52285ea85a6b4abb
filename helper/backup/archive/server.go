package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/helper/snapshot"
	"github.com/clusterregistry/operator/internal/contract"
)

// Server is a registry's server, which reads a restored backup as it would serve it.
type Server struct {
	// Program is clusterregistry-apiserver of the release in force; without one, no server
	// reads the backup.
	Program string
	// Encryption is the file with its encryption configuration, empty when it has none.
	Encryption string
}

// read has the server read an etcd, and returns the names of the encryption keys that
// values there are encrypted with. It is an error when the server does not read as many
// objects of each resource as there are keys.
func (s Server) read(ctx context.Context, etcd snapshot.Etcd, prefix string, keys map[string]int64) ([]string, error) {
	args := []string{"verify-storage", "--etcd-servers=" + strings.Join(etcd.Endpoints, ","), "--etcd-prefix=" + strings.TrimSuffix(prefix, "/"), "--etcd-cafile=" + etcd.CA, "--etcd-certfile=" + etcd.Cert, "--etcd-keyfile=" + etcd.Key}
	if s.Encryption != "" {
		// What a backup has in clear, the servers of a restored registry can be given to read.
		args = append(args, "--encryption-provider-config="+s.Encryption, "--read-unencrypted")
	}
	cmd := exec.CommandContext(ctx, s.Program, args...)
	var said, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &failure
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("a server can't read it: %w: %s", err, end(failure.String()))
	}
	var found contract.Stored
	if err := json.Unmarshal(said.Bytes(), &found); err != nil {
		return nil, fmt.Errorf("what the server says of it: %w", err)
	}
	return found.EncryptionKeys, disagree(keys, found)
}

// disagree returns how what a server lists differs from the keys of a backup.
func disagree(keys map[string]int64, found contract.Stored) error {
	var errs []error
	for _, resource := range slices.Sorted(maps.Keys(merged(keys, found.Objects))) {
		if resource != contract.LockResource && keys[resource] != found.Objects[resource] {
			errs = append(errs, fmt.Errorf("a server lists %d of %d %s", found.Objects[resource], keys[resource], resource))
		}
	}
	return errors.Join(errs...)
}

// end returns the end of what a program has said, in one line.
func end(text string) string {
	const most = 600
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return "..." + text[len(text)-most:]
	}
	return text
}
