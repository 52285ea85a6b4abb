package members

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// at has members be at a revision.
func at(revision int64, names ...int) func(*managed) {
	return func(m *managed) {
		for _, i := range names {
			m.state.Members[i].Revision = revision
		}
	}
}

// TestWentBack changes nothing of an etcd that is at an older revision than it was known to be
// at, and keeps the member that may know more.
func TestWentBack(t *testing.T) {
	ahead := func(m *managed) {
		m.Identity.Record.Newest = etcd.Newest{Position: etcd.Position{Revision: 140}, Time: m.Now}
	}
	silent := func(m *managed) { m.state.Members[0].Err = errors.New("member fleet-etcd-0 does not answer") }
	for _, test := range []struct {
		reason  string
		changes []func(*managed)
		says    string // empty where it did not go back
	}{
		{"it is where it was", []func(*managed){at(140, 0, 1, 2), ahead}, ""},
		{"it got further", []func(*managed){at(150, 0, 1, 2), ahead}, ""},
		{"one member lags", []func(*managed){at(100, 1), at(140, 0, 2), ahead}, ""},
		{"no member says", []func(*managed){ahead}, ""},
		{"two of three were set back", []func(*managed){at(100, 1, 2), ahead, silent}, "etcd went back from revision 140 to 100"},
		{"and the third is not ready", []func(*managed){at(100, 1, 2), ahead, silent}, "may have what is missing: member fleet-etcd-0 does not answer"},
		{"by what the operator remembers alone", []func(*managed){at(100, 0, 1, 2), func(m *managed) { m.Remembered = 101 }}, "from revision 101 to 100"},
		{"it got further since", []func(*managed){at(900, 0, 1, 2), func(m *managed) { m.Identity.Record.WentBack = &etcd.WentBack{ID: "c-1", From: 140, To: 100} }}, "from revision 140 to 100"},
		{"it got further before that was noticed", []func(*managed){at(900, 0, 1, 2), func(m *managed) {
			m.Identity.Record.Newest = etcd.Newest{Position: etcd.Position{Revision: 140, Mark: 140}, Time: m.Now}
			for i := range m.state.Members {
				m.state.Members[i].Position = etcd.Position{Revision: 900, Mark: 120}
			}
		}}, "etcd went back from revision 140 to one of 120 or later, and has got further since, as after volumes were set back to older copies: at most 20 known revisions"},
		{"it is recovered, as a person decided", []func(*managed){at(900, 0, 1, 2), func(m *managed) {
			m.Identity.Record.WentBack, m.Identity.Record.Recovered = &etcd.WentBack{ID: "c-1", From: 140, To: 100}, &etcd.Recovered{}
		}}, ""},
		{"it is paused", []func(*managed){at(100, 0, 1, 2), ahead, func(m *managed) { m.Freeze("spec.paused is false") }}, "etcd went back"},
	} {
		m := newManaged(t, 3, append(test.changes, func(m *managed) { m.others = append(m.others, m.Registry.DeepCopy()) })...)
		v := m.members(t.Context())
		back := v.Reason == operatorv1alpha1.ReasonWentBack
		if back != (test.says != "") || back && (v.State != verdict.ReadOnly || len(m.evicted) > 0 || !strings.Contains(v.Message, test.says)) {
			t.Errorf("%s: %+v, evicted %q", test.reason, v, m.evicted)
		}
	}
}

// TestMark writes the operator's mark into an etcd that has grown, before it records that. Where
// the mark can't be written, the revision is recorded all the same.
func TestMark(t *testing.T) {
	for _, test := range []struct {
		reason  string
		refusal error
		want    etcd.Position
	}{
		{"it is written", nil, etcd.Position{Revision: 141, Mark: 141, Upkeep: 3}},
		{"etcd is full", errors.New("no space"), etcd.Position{Revision: 140, Mark: 100, Upkeep: 2}},
	} {
		m := newManaged(t, 1, at(140, 0), func(m *managed) {
			m.others = append(m.others, m.Registry.DeepCopy())
			m.state.Members[0].Position = etcd.Position{Revision: 140, Mark: 100, Upkeep: 2}
			m.Identity.Record.Newest = etcd.Newest{Position: etcd.Position{Revision: 100, Mark: 100, Upkeep: 1}, Time: m.Now.Add(-time.Hour)}
		})
		mark := m.Mark
		m.Mark = func(ctx context.Context, access etcd.Access, seen etcd.Position) (etcd.Position, error) {
			if test.refusal != nil {
				return seen, test.refusal
			}
			return mark(ctx, access, seen)
		}
		if v := m.wentBack(t.Context(), m.state); !v.Complete() {
			t.Errorf("%s: %+v", test.reason, v)
		}
		if got := m.Identity.Record.Newest; got.Position != test.want || !got.Time.Equal(m.Now.Truncate(time.Second)) {
			t.Errorf("%s: recorded is %+v", test.reason, got)
		}
	}
}
