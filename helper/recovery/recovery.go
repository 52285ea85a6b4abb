// Package recovery makes, of the data of an etcd member whose etcd has lost its quorum, the data
// of a new etcd that has this member alone, in the member's own container before etcd starts.
//
// The database alone lacks what is only in the write-ahead log yet, and etcd's own
// --force-new-cluster keeps the IDs, so that other members could return to what is another
// etcd by then. So etcd is started with that on a copy of the data, where it replays the log,
// and a snapshot of it is restored under other IDs, those that are recorded already. Entries
// of the log of which the member did not know yet that a majority had them are not part of it.
// No other step touches the member's data than the last one, which renames it, and the new
// data to its place.
//
// Everything is made in a directory beside the data, DIR/recovery/LINEAGE, and has its name
// there only when it is whole and on the disk: a guard that was killed anywhere continues, by
// Undo and Run. The data of before stays there until the new etcd has been recorded as ready,
// when Clean removes it.
package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterregistry/operator/helper/guard"
	"github.com/clusterregistry/operator/helper/restore"
	"github.com/clusterregistry/operator/helper/snapshot"
	"github.com/clusterregistry/operator/internal/contract"
)

// Recovery is what is to be done.
type Recovery struct {
	// Recovery is what was recorded, and what guard.Recovery has found to be about this data.
	contract.Recovery
	// DataDir is etcd's own. The directory that it is in is a volume, or a part of one, with
	// room for what is made.
	DataDir string
	// PeerURL is where a member serves others, with {member} in place of its name.
	PeerURL string
	// Etcd and Etcdutl are the programs.
	Etcd, Etcdutl string
	// Patience is for how long etcd may replay the log, and read the data; zero means 10 min.
	Patience time.Duration
	// Out is where a line is printed for each step.
	Out io.Writer

	// Tests may have the recovery killed where reached is called, have another snapshot than
	// that of an etcd, and another disk. All may be nil.
	reached func(point string)
	take    func(side) (contract.Snapshot, error)
	free    func(dir string) (int64, error)
}

// Failure is the error of a recovery that could not be completed. Etcd must not start.
type Failure struct{ err error }

func (f *Failure) Error() string { return f.err.Error() }
func (f *Failure) Unwrap() error { return f.err }

// Run makes the data, and puts it in the place of the member's. The error is a *Failure; the
// member's data is what it was then.
func (r Recovery) Run(ctx context.Context) error {
	r.say("recovering a lost quorum with the data of cluster %s, member ID %s (lineage %s)", r.ClusterID, r.MemberID, r.Lineage)
	for _, step := range []func(context.Context) error{r.begin, r.checkSpace, r.save, r.restore, r.swap} {
		if err := step(ctx); err != nil {
			if errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), "no space left on device") { // which programs write
				err = fmt.Errorf("%w. %s", err, r.room())
			}
			return &Failure{fmt.Errorf("etcd member %s (%s in the volume of claim %s) can't be recovered, and its data is as it was: %w", r.Member, r.DataDir, contract.EtcdMemberClaim(r.Member), err)}
		}
	}
	return nil
}

// say prints a line.
func (r Recovery) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Out, "etcd member %s: %s\n", r.Member, fmt.Sprintf(format, args...)) // a log that is full stops nothing
}

// at is where a test may have the recovery killed.
func (r Recovery) at(point string) {
	if r.reached != nil {
		r.reached(point)
	}
}

// save saves a snapshot of the etcd that it starts on a copy of the data, unless there is one.
// It fails where that does not have all that the member said it had.
func (r Recovery) save(ctx context.Context) error {
	s := r.side()
	if s.has(restored) {
		return nil
	}
	saved, found, err := snapshot.Existing(s.own(), snapshotName)
	if err != nil {
		return err
	}
	if !found {
		if err := r.copy(s); err != nil {
			return fmt.Errorf("copy the data: %w", err)
		}
		if saved, err = r.replay(ctx, s); err != nil {
			// The data may be another one at the next attempt: a person may have acted on it.
			return errors.Join(err, os.RemoveAll(s.path(copied)))
		}
	}
	r.say("its data ends at revision %d", saved.Revision)
	if saved.Revision < r.Revision {
		return fmt.Errorf("the data of %s ends at revision %d, and the recovery was approved for data up to %d at least: %d more revisions would be lost than a person has accepted. Set spec.recovery to another member or to a backup, or raise its acceptDataLossUpTo by %d", r.Member, saved.Revision, r.Revision, r.Revision-saved.Revision, r.Revision-saved.Revision)
	}
	r.at("saved")
	return nil
}

// copy copies the data, unless that is done.
func (r Recovery) copy(s side) error {
	if s.has(copied) {
		return nil
	}
	r.say("copying %s to %s", r.DataDir, s.path(copied))
	if err := copyTree(r.DataDir, s.path(copied+partial)); err != nil {
		return err
	}
	r.at("copying")
	if err := s.complete(copied); err != nil {
		return err
	}
	r.at("copied")
	return nil
}

// errChanged is about data that is not what the recovery begins with.
var errChanged = errors.New("it was changed while it was copied")

// replay starts etcd on the copy, and saves a snapshot of it.
func (r Recovery) replay(ctx context.Context, s side) (contract.Snapshot, error) {
	// etcd would begin empty on a directory that is.
	if cluster, member, err := guard.Identity(s.path(copied)); err != nil || cluster != r.ClusterID || member != r.MemberID {
		return contract.Snapshot{}, fmt.Errorf("the copy of the data is of cluster %q, member ID %q: %w", cluster, member, cmp.Or(err, errChanged))
	}
	if r.take != nil {
		return r.take(s)
	}
	scratch := s.path(scratch)
	if err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o700)); err != nil {
		return contract.Snapshot{}, err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the next attempt removes it, too
	r.say("starting etcd on the copy, where it replays the write-ahead log")
	server, err := snapshot.StartServer(ctx, r.Etcd, s.path(copied), scratch, "--force-new-cluster", "--name="+r.Member)
	if err != nil {
		return contract.Snapshot{}, fmt.Errorf("start etcd on a copy of the data: %w", err)
	}
	defer server.Stop()
	r.at("started")
	patience := r.Patience
	if patience == 0 {
		patience = 10 * time.Minute
	}
	if err := r.disarm(ctx, server, patience); err != nil {
		return contract.Snapshot{}, err
	}
	if err := server.Ready(ctx, patience); err != nil {
		return contract.Snapshot{}, notStarted(err)
	}
	r.at("ready")
	if cut, err := filepath.Glob(filepath.Join(s.path(copied), "member", "wal", "*.broken")); err == nil && len(cut) > 0 {
		r.say("the write-ahead log is damaged, or its end was never written: etcd leaves out what comes after that")
	}
	r.say("saving a snapshot of it")
	saved, err := snapshot.Save(ctx, server.Etcd, s.own(), snapshotName)
	if err != nil {
		return contract.Snapshot{}, fmt.Errorf("save a snapshot of the copy: %w (etcd says: %s)", err, server.Log())
	}
	return saved, nil
}

// notStarted is about an etcd that does not serve the copy.
func notStarted(err error) error {
	return fmt.Errorf("etcd does not start on a copy of the data: %w. If the data is damaged, recover from another member or from a backup", err)
}

// restore makes the new data of the snapshot, unless that is done.
func (r Recovery) restore(ctx context.Context) error {
	s := r.side()
	if err := os.RemoveAll(s.path(copied)); err != nil {
		return fmt.Errorf("remove the copy of the data: %w", err)
	}
	if !s.has(restored) {
		r.say("restoring the snapshot as the data of a new etcd, with revisions raised by %d", contract.RevisionBump)
		data := restore.Data{Etcdutl: r.Etcdutl, Snapshot: s.path(snapshotName + ".db"), Dir: s.path(restored + partial), Member: r.Member, PeerURL: r.PeerURL, Token: r.Lineage}
		if err := data.Make(ctx); err != nil {
			return err
		}
		r.at("restoring")
		if err := r.checkIdentity(data.Dir); err != nil {
			return err
		}
		if err := s.complete(restored); err != nil {
			return err
		}
		r.at("restored")
	}
	return errors.Join(os.RemoveAll(s.path(snapshotName+".db")), os.RemoveAll(s.path(snapshotName+".json")))
}

// checkIdentity makes sure that the new data is what is recorded, before it is used.
func (r Recovery) checkIdentity(dir string) error {
	cluster, member, err := guard.Identity(dir)
	if err != nil {
		return fmt.Errorf("read the data that was restored: %w", err)
	}
	wantCluster, wantMember := contract.RestoredIdentity(r.Lineage, strings.ReplaceAll(r.PeerURL, "{member}", r.Member))
	if cluster != wantCluster || member != wantMember {
		return fmt.Errorf("etcdutl has made the data of cluster %s, member ID %s, and expected is cluster %s, member ID %s: the version of etcd is one that this program does not know", cluster, member, wantCluster, wantMember)
	}
	return nil
}

// swap puts the new data in the place of the member's. Between the two there is no data; Undo
// finds that.
func (r Recovery) swap(context.Context) error {
	s := r.side()
	if err := rename(r.DataDir, s.path(old)); err != nil {
		return fmt.Errorf("move the data aside: %w", err)
	}
	r.at("moved aside")
	if err := rename(s.path(restored), r.DataDir); err != nil {
		return errors.Join(fmt.Errorf("put the new data in its place: %w", err), rename(s.path(old), r.DataDir))
	}
	r.at("swapped")
	r.say("recovered; the data of before is in %s until etcd is recorded as recovered", s.path(old))
	return nil
}

// side returns where all is made.
func (r Recovery) side() side {
	return side{filepath.Join(filepath.Dir(r.DataDir), sideName), r.Lineage}
}
