package members

import (
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestRestoring says what is restored and what to do when the backup is gone, as long as etcd
// has not served it; what is worse than a member that is not ready stays as it is.
func TestRestoring(t *testing.T) {
	const gone = "if that backup is gone meanwhile, set spec.deletionPolicy to Delete"
	for reason, test := range map[string]struct {
		was       string
		completed *time.Time
		want      string
	}{
		"a pod that is not ready": {operatorv1alpha1.ReasonMembersNotReady, nil, operatorv1alpha1.ReasonRestoring},
		"data that is lost":       {operatorv1alpha1.ReasonDataLost, nil, operatorv1alpha1.ReasonDataLost},
		"it was restored":         {operatorv1alpha1.ReasonMembersNotReady, new(time.Now()), operatorv1alpha1.ReasonMembersNotReady},
	} {
		s := &Stage{Objects: operandtest.New(t, "{}")}
		s.Identity = identity.New(s.Objects)
		s.Identity.Record = &etcd.Record{Restored: &etcd.Restored{Completed: test.completed, Report: contract.BackupReport{Location: "s3://b/one"}}}
		v := s.restoring(verdict.Waiting(test.was, "fetch fails"))
		restoring := test.want == operatorv1alpha1.ReasonRestoring
		if v.Reason != test.want || !strings.Contains(v.Message, "fetch fails") || strings.Contains(v.Message, gone) != restoring || strings.Contains(v.Message, "from s3://b/one") != restoring {
			t.Errorf("%s: %+v", reason, v)
		}
	}
}
