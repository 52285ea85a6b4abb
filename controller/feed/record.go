package feed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

// sampled is of how many clusters at most it is kept that they were answered: enough to tell whether
// more than half of them are lost.
const sampled = 128

// answered is what was last answered, as it outlasts the process: the names of clusters, and of those
// that had an address.
type answered struct {
	Clusters  []string `json:"clusters"`
	Addressed []string `json:"addressed"`
}

// answeredOf returns what answers of entries have.
func answeredOf(entries []*entry) *answered {
	out := &answered{}
	for _, e := range entries {
		out.Clusters = append(out.Clusters, e.Name)
		if e.Address != "" {
			out.Addressed = append(out.Addressed, e.Name)
		}
	}
	out.Clusters, out.Addressed = sample(out.Clusters), sample(out.Addressed)
	return out
}

// sample returns some of many names: the same ones whatever the others are, as far as that can be.
func sample(names []string) []string {
	slices.Sort(names)
	if len(names) <= sampled {
		return names
	}
	hashes := make(map[string][sha256.Size]byte, len(names))
	for _, name := range names {
		hashes[name] = sha256.Sum256([]byte(name))
	}
	slices.SortFunc(names, func(a, b string) int {
		first, second := hashes[a], hashes[b]
		return bytes.Compare(first[:], second[:])
	})
	names = slices.Clone(names[:sampled])
	slices.Sort(names)
	return names
}

// lost returns some names of those that are lost, if these are more than half and many; else "".
func (a *answered) lost(of func(*answered) []string, is func(name string) bool) string {
	if a == nil {
		return ""
	}
	var lost []string
	for _, name := range of(a) {
		if is(name) {
			lost = append(lost, name)
		}
	}
	if len(lost) < many || 2*len(lost) <= len(of(a)) {
		return ""
	}
	return format.List(lost[:min(len(lost), format.MaxListed)])
}

// Record is where it is kept what was last answered: an annotation of the Lease of the controller. A
// process that is started compares with that, since its callers do. The zero value keeps nothing.
type Record struct {
	Leases          coordinationv1client.LeaseInterface
	Namespace, Name string
}

// remedy is how a person says that clusters, or addresses, may leave answers.
func (r Record) remedy() string {
	return fmt.Sprintf("kubectl annotate lease %s --namespace=%s --overwrite %s=%s", r.Name, r.Namespace, contract.FeedAnsweredAnnotation, contract.FeedAccept)
}

// read returns what is kept, "" for nothing.
func (r Record) read(ctx context.Context) (string, error) {
	if r.Leases == nil {
		return "", nil
	}
	lease, err := r.Leases.Get(ctx, r.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil // the election makes it again
	} else if err != nil {
		return "", fmt.Errorf("read the Lease %s, which has what was last answered: %w", r.Name, err)
	}
	return lease.Annotations[contract.FeedAnsweredAnnotation], nil
}

// write keeps what was last answered.
func (r Record) write(ctx context.Context, content string) error {
	if r.Leases == nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{contract.FeedAnsweredAnnotation: content}}})
	if err != nil {
		return err
	}
	_, err = r.Leases.Patch(ctx, r.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// recall compares what there is with what was last answered, and keeps what is answered now. It
// returns why there is no answer.
func (s *Server) recall(ctx context.Context) error {
	kept, err := s.Record.read(ctx)
	switch {
	case err != nil && s.fleet.answer() == nil:
		return err
	case err != nil: // what this process has answered is known all the same
	case kept == contract.FeedAccept:
		if err := s.fleet.seen(); err != nil {
			return err
		}
		s.fleet.accept()
	case kept == "":
		s.fleet.recall(nil)
	case kept == s.kept: // this process has written it, or compared with it
	default:
		last := &answered{}
		if json.Unmarshal([]byte(kept), last) != nil {
			return errors.New("what was last answered can't be read: if what there is may be answered, say so: " + s.Record.remedy())
		}
		s.fleet.recall(last)
	}
	if err == nil {
		s.kept = kept
	}
	if _, err := s.fleet.complete(); err != nil {
		return err
	}
	content, err := json.Marshal(s.fleet.answer())
	if err == nil && string(content) != s.kept {
		if err = s.Record.write(ctx, string(content)); err == nil {
			s.kept = string(content)
		}
	}
	if err != nil {
		klog.ErrorS(err, "It could not be kept what was last answered", "lease", s.Record.Name)
	}
	return nil
}
