package members

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
)

// TestNoteSizes is about when the sizes of a member's file are written: seldom.
func TestNoteSizes(t *testing.T) {
	s := newStage(t, "{spec: {etcd: {replicas: 3}}}")
	for _, test := range []struct {
		reason          string
		file, used      int64 // in MiB
		quota           int64
		defragmentedAgo time.Duration
		want            string
	}{
		{"as it was", 500, 300, 1000, 0, "500Mi 300Mi 1000Mi"},
		{"a little more is in use", 500, 399, 1000, 0, "500Mi 300Mi 1000Mi"},
		{"a tenth of the quota more is in use", 510, 400, 1000, 0, "510Mi 400Mi 1000Mi"},
		{"the file has become smaller", 400, 300, 1000, 0, "400Mi 300Mi 1000Mi"},
		{"the quota has grown", 500, 310, 2000, 0, "500Mi 310Mi 2000Mi"},
		{"it was defragmented just now", 480, 310, 1000, time.Minute, "480Mi 310Mi 1000Mi"},
		{"it was defragmented an hour ago", 480, 310, 1000, time.Hour, "500Mi 300Mi 1000Mi"},
		{"it does not answer", 0, 0, 0, 0, "500Mi 300Mi 1000Mi"},
		{"it does not say its quota", 500, 350, 0, 0, "500Mi 300Mi 1000Mi"},
	} {
		m := operatorv1alpha1.EtcdMember{DatabaseSize: mebibytes(500 << 20), DatabaseSizeInUse: mebibytes(300 << 20), Quota: mebibytes(1000 << 20)}
		if test.defragmentedAgo > 0 {
			m.DefragmentedTime = &metav1.Time{Time: s.Now.Add(-test.defragmentedAgo)}
		}
		s.noteSizes(&m, etcd.Member{DBSize: test.file << 20, DBSizeInUse: test.used << 20, Quota: test.quota << 20})
		if got := m.DatabaseSize.String() + " " + m.DatabaseSizeInUse.String() + " " + m.Quota.String(); got != test.want {
			t.Errorf("%s: %s, want %s", test.reason, got, test.want)
		}
	}
	m := operatorv1alpha1.EtcdMember{}
	s.noteSizes(&m, etcd.Member{DBSize: 20480, DBSizeInUse: 4096})
	if m.DatabaseSize.String() != "1Mi" || m.DatabaseSizeInUse.String() != "1Mi" || m.Quota != nil {
		t.Errorf("the first time: %+v", m)
	}
}
