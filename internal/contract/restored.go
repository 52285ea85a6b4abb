package contract

import (
	"crypto/sha1" //nolint:gosec // G505: it is what etcd makes IDs of
	"encoding/binary"
	"strconv"
)

// RestoredIdentity returns the IDs, as etcdctl prints them, of the cluster and of its only
// member that etcdutl makes of a snapshot: of the token, and of the URL at which the member
// serves others. So RaftCluster and Member of
// go.etcd.io/etcd/server/v3/etcdserver/api/membership have it.
func RestoredIdentity(token, peerURL string) (cluster, member string) {
	id := sha1.Sum([]byte(peerURL + token)) //nolint:gosec // G401: it is what etcd makes IDs of
	of := sha1.Sum(id[:8])                  //nolint:gosec // G401
	text := func(sum [sha1.Size]byte) string { return strconv.FormatUint(binary.BigEndian.Uint64(sum[:8]), 16) }
	return text(of), text(id)
}
