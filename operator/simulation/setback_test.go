package simulation

import (
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestSetBack has two of three volumes be set back to older copies: it is said, and nothing is
// replaced until a person decides, who has the member that knows more.
func TestSetBack(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(3)
		w.until("there is something to lose", 10*time.Minute, func() bool { return len(w.etcd.log) > 40 })
		w.pass(30 * time.Second)
		disk := w.process(2).disk
		w.cuts(2, true)
		w.setsBack(0, len(w.etcd.log)-3) // to before what the operator has seen
		w.setsBack(1, len(w.etcd.log)-3)
		w.accepted = true
		w.until("it is said that etcd went back", 3*time.Minute, func() bool { return w.condition("EtcdReady").Reason == operatorv1alpha1.ReasonWentBack })
		w.cuts(2, false)
		w.pass(15 * time.Minute)
		if w.process(2).disk != disk || disk.member == 0 {
			w.fails("the member that knows more is replaced")
		}
		if w.condition("EtcdReady").Reason != operatorv1alpha1.ReasonWentBack {
			w.fails("it is said no more: %s", w.conditions())
		}
	})
}
