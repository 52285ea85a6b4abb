package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// testKilled kills the operator at random moments of installations, each of which
// must come to the same end as one that nothing happened to.
func testKilled(t *testing.T, at func(*testing.T) *site, host *framework.Host) {
	const spec = "{mode: Independent, server: {service: {hostnames: [registry.example]}}}"
	operator := framework.StartOperator(t, host)
	smooth := at(t)
	smooth.apply("fleet", spec)
	smooth.ready("fleet")
	all := len(smooth.objects("fleet"))
	rounds := 4
	if framework.Full() {
		rounds = 20
	}
	for range rounds {
		s := at(t)
		moments := []int{rand.IntN(all), rand.IntN(all + 1)}
		slices.Sort(moments)
		t.Logf("%s: killed at %d and %d of %d objects", s.namespace, moments[0], moments[1], all)
		s.apply("fleet", spec)
		for _, moment := range moments {
			s.eventually(fmt.Sprintf("%d objects of %s", moment, s.namespace), func(context.Context) error {
				if there := len(s.objects("fleet")); there < moment {
					return fmt.Errorf("there are %d", there)
				}
				return nil
			})
			operator.Kill()
			operator = framework.StartOperator(t, host)
		}
		s.ready("fleet")
		s.eventually("the same end", func(ctx context.Context) error {
			got, err := s.describe(ctx, "fleet")
			if err != nil {
				return err
			}
			want, err := smooth.describe(ctx, "fleet")
			if err == nil && got != want {
				err = fmt.Errorf("it is\n%s\nand should be\n%s", got, want)
			}
			return err
		})
	}
	operator.Stop()
}
