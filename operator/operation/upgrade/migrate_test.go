package upgrade

import (
	"errors"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestServersBefore has nothing rewritten while a server of the previous release may write in the
// version that is given up, or while that is not known.
func TestServersBefore(t *testing.T) {
	for _, test := range []struct {
		servers pass.Servers
		stage   verdict.Verdict
		want    string
	}{
		{pass.Servers{Asked: true, Before: "pod fleet-server-x"}, verdict.Verdict{}, "pod fleet-server-x of v0.1.0 may still write; if its node"},
		{pass.Servers{Asked: true}, verdict.Failed(errors.New("a webhook is away")), "it is not known which servers run"},
		{pass.Servers{}, verdict.Verdict{}, "it is not known which servers run, and one of v0.1.0 may still write: see ServerReady"},
	} {
		h := upgrading(t, "v0.1.0", "v0.2.0", "StorageMigration")
		h.Servers, h.Verdicts["ServerReady"] = test.servers, test.stage
		if v := h.migrate(t.Context()); v.Complete() || v.Err != nil || v.After == 0 || !strings.Contains(v.Message, test.want) {
			t.Errorf("%+v", v)
		}
	}
}
