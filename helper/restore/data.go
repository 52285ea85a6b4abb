package restore

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/clusterregistry/operator/helper/child"
	"github.com/clusterregistry/operator/helper/command"
	"github.com/clusterregistry/operator/internal/contract"
)

// Data is the data of a new etcd of one member, which a snapshot is made.
type Data struct {
	// Etcdutl is the program, and Snapshot the file, with the checksum that etcd appends.
	Etcdutl, Snapshot string
	// Dir is where the data is made.
	Dir string
	// Member is the name of the member, and PeerURL where it serves others, with {member} in
	// place of its name.
	Member, PeerURL string
	// Token is that of which etcd makes the IDs of the cluster and of the member; see
	// contract.RestoredIdentity.
	Token string
}

// Make makes the data in place of what is in the directory, and brings it to the disk. The
// revision is raised by contract.RevisionBump, and what comes before is compacted, so that no watch or list
// continues from a revision that this etcd gives to something else. When it fails or is
// interrupted, a part of the data may be there.
func (d Data) Make(ctx context.Context) error {
	if err := os.RemoveAll(d.Dir); err != nil {
		return fmt.Errorf("remove what an interrupted restore has left: %w", err)
	}
	peer := strings.ReplaceAll(d.PeerURL, "{member}", d.Member)
	cmd := child.Command(ctx, d.Etcdutl, "snapshot", "restore", d.Snapshot, "--data-dir="+d.Dir, "--name="+d.Member,
		"--initial-cluster="+d.Member+"="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster-token="+d.Token,
		fmt.Sprintf("--bump-revision=%d", contract.RevisionBump), "--mark-compacted")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("restore the snapshot: %w: %s", err, end(string(output)))
	}
	if err := command.SyncAll(d.Dir); err != nil {
		return fmt.Errorf("bring the restored data to the disk: %w", err)
	}
	return nil
}

// end returns the end of a program's output, in one line.
func end(text string) string {
	const most = 600
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return "..." + text[len(text)-most:]
	}
	return text
}
